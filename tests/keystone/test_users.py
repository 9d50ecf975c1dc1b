import errno
import json
import shutil
import threading
import time
from types import SimpleNamespace

import pytest
from fake_server import handled, serving
from made_users import users

from loadstone.cloud import connect, from_environment
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import clean, remaining
from loadstone.keystone.contexts.credentials import with_credentials
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import Resource, ResourceKind, Token, User
from loadstone.keystone.scenarios.model import Need

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"
SIX = Users(tenants=2, users_per_tenant=3)


def left(fake):
    """Everything in the cloud."""
    return [name for plural in fake.things for name in fake.names(plural)]


def test_users_are_made_in_projects_of_one_domain_of_the_run(fake, access, journal, said):
    with users(access, RUN, SIX, journal, said.append) as made:
        assert fake.names("domains") == [NAME]
        assert fake.names("projects") == [f"{NAME}-p1", f"{NAME}-p2"]
        assert fake.names("users") == [f"{NAME}-u{n}" for n in range(1, 7)]
        assert [user.name for user in made] == [f"{NAME}-u{n}" for n in range(1, 7)]
        assert [user.project_name[-2:] for user in made] == ["p1", "p2"] * 3
        assert fake.grants == {(user.project_id, user.id, "r-member") for user in made}
        assert len({user.password for user in made}) == 6
    assert left(fake) == []
    assert remaining(journal) == ()


def test_no_domain_is_made_that_a_token_of_a_domain_could_not_remove(
    fake, variables, journal, said
):
    with (
        connect(from_environment(variables | {"OS_DOMAIN_ID": "default"})) as access,
        pytest.raises(InvalidInput, match="choose a project or the system"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert left(fake) == []
    assert fake.calls["POST", "/v3/domains"] == 0


@pytest.mark.parametrize(
    ("known", "found"),
    [
        (("_member_", "Member"), "Member"),
        (("_member_", "admin"), "_member_"),
        (("_member_", "Member", "member"), "member"),
    ],
)
def test_the_default_role_may_be_written_otherwise_as_in_rally(
    fake, access, journal, said, known, found
):
    fake.roles = {f"r-{name}": name for name in known}
    with users(access, RUN, Users(), journal, said.append) as (user,):
        assert fake.grants == {(user.project_id, user.id, f"r-{found}")}


def test_a_trust_gives_the_role_that_the_users_have(fake, access, journal, said):
    fake.roles = {"r-old": "_member_"}
    with users(access, RUN, Users(), journal, said.append) as made:
        with_credentials(access, made, (Need.TRUST,))
    (trust,) = (body["trust"] for body in fake.bodies if body and "trust" in body)
    assert trust["roles"] == [{"id": "r-old"}]


def test_a_further_role_is_found_by_its_exact_name_only_as_in_rally(access, journal, said):
    with (
        pytest.raises(EnvironmentUnusable, match="has no role 'Reader'"),
        users(access, RUN, Users(), journal, said.append, ("Reader",)),
    ):
        pass


def test_a_role_that_the_first_part_of_a_list_lacks_is_found(fake, access, journal, said):
    fake.page = 1
    with users(access, RUN, Users(), journal, said.append, ("reader",)) as _:
        assert {role for _, _, role in fake.grants} == {"r-member", "r-reader"}


def test_a_role_that_does_not_exist_names_those_that_do(fake, access, journal, said):
    with (
        pytest.raises(EnvironmentUnusable, match="'_member_'; it has admin, member, reader"),
        users(access, RUN, Users(), journal, said.append, ("_member_",)),
    ):
        pass
    assert left(fake) == []


def test_as_many_calls_at_once_as_told(fake, access, journal, said):
    together = threading.Barrier(3)

    def meet(method, path):
        if (method, path) == ("POST", "/v3/users"):
            together.wait(timeout=30)

    fake.disturb = meet
    settings = Users(users_per_tenant=6, workers=3)
    with users(access, RUN, settings, journal, said.append) as made:
        assert len(made) == 6
        assert fake.most_at_once == 3


@pytest.mark.parametrize(
    "answers",
    [
        (504, "POST", 429),
        (504, "POST", 403),
        (0, "POST", 400),
        (504, "GET", 403),  # after a 409
    ],
)
def test_a_refusal_does_not_hide_what_an_earlier_attempt_made(fake, access, journal, said, answers):
    lost, method, status = answers
    made = []
    refusals = [status] * (1 if method == "GET" else 9)

    def disturb(*call):
        is_next = made and refusals and call == (method, "/v3/domains")
        return refusals.pop() if is_next else None

    def after(*call):
        if made or call != ("POST", "/v3/domains"):
            return None
        made.append(call)
        return lost

    fake.disturb, fake.after = disturb, after
    with (
        pytest.raises(EnvironmentUnusable, match=f"HTTP {status}"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert left(fake) == []


def test_a_domain_that_was_certainly_not_made_is_not_looked_for(fake, access, journal, said):
    fake.disturb = lambda _method, path: 403 if path == "/v3/domains" else None
    with (
        pytest.raises(EnvironmentUnusable, match="could not create domain"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert remaining(journal) == ()


def test_what_a_user_of_the_run_may_not_do_is_not_laid_to_the_administrator(
    fake, access, journal, said
):
    fake.disturb = lambda _method, path: 403 if path.endswith("/trusts") else None
    with (
        pytest.raises(EnvironmentUnusable, match=r"could not create a trust: HTTP 403 as told$"),
        users(access, RUN, Users(), journal, said.append) as made,
    ):
        with_credentials(access, made, (Need.TRUST,))


def test_no_password_is_shown_or_kept(access, journal, said):
    with users(access, RUN, SIX, journal, said.append) as made:
        kept = journal.read_text() + repr(made) + "".join(said)
        assert not [user.name for user in made if user.password in kept]
        assert made[0].name in kept


def test_what_passes_is_tried_again(fake, access, journal, said):
    """A locked database, a front without a backend, a lost connection."""
    answers = iter([500, None, 503, 0, None, 502, 0, None, 429] + [None] * 100)
    fake.disturb = lambda _method, _path: next(answers)
    with users(access, RUN, SIX, journal, said.append) as made:
        assert len(made) == 6
    assert left(fake) == []


@pytest.mark.parametrize(
    ("asked", "waited_s"), [("7", 7.0), ("86400", 30.0), ("", 0.0), ("Mon, 30 Nov 2026", 0.0)]
)
def test_a_rate_limiter_is_asked_again_when_it_says(fake, access, monkeypatch, asked, waited_s):
    waits = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    monkeypatch.setattr("loadstone.keystone.identity.time", clock)
    limited = 429, {"error": {"message": "slow down"}}, (("Retry-After", asked),)
    answers = iter([limited, None])
    fake.disturb = lambda _method, _path: next(answers)
    Identity(access).create(ResourceKind.DOMAIN, NAME, {})
    assert (fake.names("domains"), waits) == ([NAME], [waited_s])


@pytest.mark.parametrize("status", [200, 202])
def test_a_domain_that_another_success_status_made_is_removed(fake, access, journal, said, status):
    fake.after = lambda method, path: (
        (status, b"") if (method, path) == ("POST", "/v3/domains") else None
    )
    with (
        pytest.raises(EnvironmentUnusable, match=f"could not create domain .*HTTP {status}"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert left(fake) == []
    assert remaining(journal) == ()


def test_a_create_whose_answer_was_lost_is_not_made_twice(fake, access, journal, said):
    lost = iter([0, None, 504, None])
    fake.after = lambda method, path: (
        next(lost, None) if (method, path) == ("POST", "/v3/users") else None
    )
    with users(access, RUN, Users(users_per_tenant=2), journal, said.append) as made:
        assert fake.names("users") == [user.name for user in made]
        assert {user.id for user in made} == set(fake.things["users"])
    assert left(fake) == []


def test_a_failure_half_way_leaves_nothing(fake, access, journal, said):
    fourth = iter([None, None, None, 400])
    fake.disturb = lambda method, path: (
        next(fourth, 400) if (method, path) == ("POST", "/v3/users") else None
    )
    with (
        pytest.raises(EnvironmentUnusable, match=f"create user {NAME}-u.*HTTP 400"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert left(fake) == []
    assert remaining(journal) == ()


def test_a_process_that_still_loads_its_policy_is_asked_again(fake, access, journal, said):
    early = iter([403, 403])
    fake.disturb = lambda method, path: (
        next(early, None) if (method, path) == ("POST", "/v3/users") else None
    )
    with users(access, RUN, SIX, journal, said.append) as made:
        assert {user.id for user in made} == set(fake.things["users"])
    assert left(fake) == []


def test_who_may_not_make_domains_is_told_the_role(fake, access, journal, said):
    fake.disturb = lambda method, path: 403 if (method, path) == ("POST", "/v3/domains") else None
    with (
        pytest.raises(EnvironmentUnusable, match="user admin needs the role admin"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert remaining(journal) == ()
    assert not [line for line in said if "left" in line]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_in_the_middle_of_the_run_leaves_nothing(fake, access, journal, said, error):
    with pytest.raises(error), users(access, RUN, SIX, journal, said.append):
        raise error
    assert left(fake) == []


def test_what_cannot_be_removed_is_listed_with_the_command(fake, access, journal, said):
    fake.disturb = lambda method, path: (
        403 if (method, "users" in path) == ("DELETE", True) else None
    )
    with users(access, RUN, Users(), journal, said.append):
        pass
    told = "\n".join(said)
    assert f"loadstone results clean {RUN} --lab test" in told
    assert f"user {NAME}-u1" in told
    assert "HTTP 403" in told
    assert {item.thing.name for item in remaining(journal)} == {NAME, f"{NAME}-u1"}
    fake.disturb = lambda _method, _path: None
    assert clean(access, journal, said.append) == ()
    assert left(fake) == []


def test_the_first_error_is_not_hidden_by_the_clean_up(fake, access, journal, said):
    """Keystone dies in the middle: the user hears that, and what is left."""

    def die():
        fake.disturb = lambda _method, _path: 0
        raise RuntimeError("it died")

    with (
        pytest.raises(RuntimeError, match="it died"),
        users(access, RUN, Users(), journal, said.append),
    ):
        die()
    told = "\n".join(said)
    assert "3 left in" in told
    assert f"loadstone results clean {RUN} --lab test" in told


def test_a_second_ctrl_c_leaves_the_rest_to_the_command(fake, access, journal, said, monkeypatch):
    def interrupt(*_):
        monkeypatch.setattr("loadstone.keystone.contexts.users.clean_journal", interrupt)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), users(access, RUN, SIX, journal, said.append):
        interrupt()
    assert "9 left in" in "\n".join(said)
    monkeypatch.undo()
    assert clean(access, journal, said.append) == ()
    assert left(fake) == []


def test_the_journal_names_each_thing_before_it_is_made(fake, access, journal, said):
    unannounced = []

    def check(method, path):
        if method == "POST" and path != "/v3/auth/tokens":
            plural = path.removeprefix("/v3/")
            announced = {
                json.loads(line)["name"]
                for line in journal.read_text().splitlines()
                if json.loads(line)["event"] == "create"
            }
            unannounced.extend(set(fake.names(plural)) - announced)

    fake.after = check
    with users(access, RUN, SIX, journal, said.append):
        pass
    assert fake.calls["POST", "/v3/users"] == 6
    assert unannounced == []


def test_a_full_disk_stops_the_making_and_not_the_removal(fake, access, journal, said, monkeypatch):
    written = []

    def fsync(descriptor):
        written.append(descriptor)
        if len(written) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("loadstone.keystone.journal.os.fsync", fsync)
    with (
        pytest.raises(EnvironmentUnusable, match=r"created\.jsonl: cannot be written \(No space"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert fake.calls["POST", "/v3/users"] > 0
    assert left(fake) == []


def test_a_token_that_ends_in_the_middle_is_replaced(fake, access, journal, said):
    with users(access, RUN, SIX, journal, said.append):
        fake.tokens.clear()
    assert left(fake) == []


def in_place_of_json(fake, call):
    """Serve a proxy's page in place of one call's answer."""
    page = b"<html>proxy</html>"

    def serve(request):
        if (request.command, request.path.partition("?")[0]) == call:
            request.answer(201 if call[0] == "POST" else 200, page)
        else:
            fake.serve(request)

    return handled(serve)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (("GET", "/v3/roles"), "list roles"),
        (("POST", "/v3/domains"), f"create domain {NAME}"),
        (("POST", "/v3/users"), f"create user {NAME}-u1"),
        (("GET", "/v3/domains"), "list domains"),
    ],
)
def test_a_proxys_page_in_place_of_json_is_one_line(fake, variables, journal, said, call, what):
    with (
        serving(in_place_of_json(fake, call)) as front,
        connect(from_environment({**variables, "OS_AUTH_URL": f"{front}/v3"})) as access,
    ):
        try:
            with users(access, RUN, Users(), journal, said.append):
                pass
        except EnvironmentUnusable as problem:
            said.append(str(problem))
        line = next(line for line in said if "does a proxy" in line)
    assert f"could not {what}: HTTP 20" in line
    assert "that is not Keystone's JSON" in line


def test_an_id_with_a_space_and_a_slash_is_one_segment_of_a_path(fake, access):
    made = fake.add("users", "name with / and ?", domain_id="d")
    odd = fake.things["users"]["a/b c?"] = fake.things["users"].pop(made["id"])
    odd["id"] = "a/b c?"
    thing = Resource(ResourceKind.USER, odd["name"], odd["id"])
    identity = Identity(access)
    identity.update(thing, {"password": "new"})
    assert fake.things["users"]["a/b c?"]["password"] == "new"
    identity.remove(thing)
    assert fake.names("users") == []
    fake.add("domains", "our / domain", id="x")
    assert identity.domain("our / domain").id == "x"


def test_an_application_credential_whose_answer_was_lost_is_made_under_another_name(fake, access):
    answers = iter([409, None])
    fake.disturb = lambda method, path: (
        next(answers) if (method, path[-24:]) == ("POST", "/application_credentials") else None
    )
    fake.tokens["t"] = {}
    user = User("u 1", "n", "p", "p-1", "P", "d", "D")
    made = Identity(access).create_application_credential(user, Token("t", 0.0), "loadstone-1")
    assert made == ("loadstone-1-again", "its secret")


def test_what_was_made_is_removed_also_when_its_journal_is_gone(fake, access, tmp_path, said):
    folder = tmp_path / "runs" / RUN
    folder.mkdir(parents=True)
    with users(access, RUN, SIX, folder / "created.jsonl", said.append):
        shutil.rmtree(tmp_path / "runs")
    assert left(fake) == []


def test_what_cannot_be_removed_is_named_also_when_its_journal_is_gone(
    fake, access, tmp_path, said
):
    folder = tmp_path / "runs" / RUN
    folder.mkdir(parents=True)
    with users(access, RUN, Users(), folder / "created.jsonl", said.append):
        shutil.rmtree(tmp_path / "runs")
        fake.disturb = lambda method, _path: 403 if method == "DELETE" else None
    (line,) = [one for one in said if " left in " in one]
    assert f"remove it by hand: all that is named {NAME}*" in line
    assert any(f"user {NAME}-u1: " in one for one in said)
    assert any(f"domain {NAME}: " in one for one in said)
