from pathlib import Path

import pytest
from fake_cloud import FakeCloud
from fake_server import serving
from made_users import users

from loadstone.cloud import Access, connect, from_environment
from loadstone.errors import InvalidInput
from loadstone.keystone.clean import clean, list_leftovers, remaining
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.journal import Journal, JournalContents, read
from loadstone.keystone.resources import (
    ANY,
    Leftover,
    Resource,
    ResourceKind,
    resource_name,
)

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"
GONE_USER = "DELETE", "/v3/users"


class Killed(BaseException):
    """Stands for a SIGKILL: nothing is cleaned up."""


@pytest.fixture
def killed(access, journal, monkeypatch):
    """Make users, and die before any is removed."""
    with monkeypatch.context() as dead:
        dead.setattr("loadstone.keystone.contexts.users._remove", lambda *_: None)
        with (
            pytest.raises(Killed),
            users(access, RUN, Users(2, 3), journal, lambda _: None),
        ):
            raise Killed


@pytest.mark.usefixtures("killed")
def test_what_a_killed_run_left_is_removed_and_again_is_nothing(fake, access, journal, said):
    assert len(remaining(journal)) == 9
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())
    assert clean(access, journal, said.append) == ()
    assert remaining(journal) == ()


@pytest.mark.usefixtures("killed")
def test_nothing_of_anyone_else_is_touched(fake, access, journal, said):
    near = fake.add("domains", f"{NAME}5", enabled=True)
    fake.add("users", f"{NAME}-u1", domain_id=near["id"], password="x")
    fake.add("users", f"{NAME}-u1", domain_id="default", password="x")
    fake.add("users", "operator", domain_id="default", password="x")
    fake.add("projects", f"{NAME}-p1", domain_id="default")
    others = {kind: dict(things) for kind, things in fake.things.items()}
    for thing in read(journal).remaining:
        others[f"{thing.kind}s"].pop(thing.id)
    assert clean(access, journal, said.append) == ()
    assert fake.things == others


@pytest.mark.usefixtures("killed")
def test_a_stranger_in_the_domain_of_the_run_keeps_it(fake, access, journal, said):
    (domain,) = fake.things["domains"].values()
    fake.add("users", "visitor", domain_id=domain["id"], password="x")
    (leftover,) = clean(access, journal, said.append)
    assert (leftover.thing.kind, leftover.why) == (ResourceKind.DOMAIN, "it holds user visitor")
    assert fake.names("users") == ["visitor"]
    assert fake.names("projects") == []


@pytest.mark.usefixtures("killed")
def test_projects_in_each_other_are_removed_from_below(fake, access, journal, said):
    (domain,) = fake.things["domains"].values()
    parent = None
    for number in range(6):
        place = {"domain_id": domain["id"], "parent_id": parent}
        parent = fake.add("projects", f"{NAME}-t{number}", **place)["id"]
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_a_project_with_somebody_elses_below_it_is_left_and_named(fake, access, journal, said):
    (domain,) = fake.things["domains"].values()
    place = {"domain_id": domain["id"]}
    parent = fake.add("projects", f"{NAME}-t0", **place)["id"]
    fake.add("projects", "of-a-visitor", parent_id=parent, **place)
    leftovers = clean(access, journal, said.append)
    assert {leftover.thing.kind for leftover in leftovers} == {ResourceKind.DOMAIN}
    assert fake.names("projects") == [f"{NAME}-t0", "of-a-visitor"]


def test_what_was_made_without_an_id_coming_back_is_found_by_name(fake, access, journal, said):
    Journal.start(journal, RUN, access).create(ResourceKind.DOMAIN, NAME)
    fake.add("domains", NAME)
    assert clean(access, journal, said.append) == ()
    assert fake.names("domains") == []


def test_what_was_announced_and_never_made_is_no_leftover(access, journal, said):
    Journal.start(journal, RUN, access).create(ResourceKind.DOMAIN, NAME)
    assert len(remaining(journal)) == 1
    assert clean(access, journal, said.append) == ()
    assert remaining(journal) == ()


@pytest.mark.usefixtures("killed")
def test_a_list_that_comes_in_parts_is_removed_whole(fake, access, journal, said):
    fake.page = 2
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_what_stays_although_it_was_removed_is_not_removed_without_end(
    fake, access, journal, said, monkeypatch
):
    monkeypatch.setattr("loadstone.keystone.clean._STALE_WAITS_S", (0.0,) * 4)
    Journal(journal, RUN).create(ResourceKind.USER, f"{NAME}-w{ANY}", "default")
    fake.add("users", f"{NAME}-w1-i1", domain_id="default", password="x")
    fake.disturb = lambda method, path: (204, None) if (method, path[:9]) == GONE_USER else None
    left = {one.thing.name: one.why for one in clean(access, journal, said.append)}
    assert left[NAME].startswith("it holds user ")
    assert left[f"{NAME}-w{ANY}"].endswith("it was removed and is still there")
    assert fake.calls["DELETE", "/v3/users/ID"] == 7 * 5
    fake.disturb = lambda _method, _path: None
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_a_list_that_lags_behind_is_waited_for(fake, access, journal, said, monkeypatch):
    monkeypatch.setattr("loadstone.keystone.clean._STALE_WAITS_S", (0.0,) * 4)
    kept = iter([True] * 6 * 3)
    fake.disturb = lambda method, path: (
        (204, None) if (method, path[:9]) == GONE_USER and next(kept, False) else None
    )
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_what_someone_has_removed_by_hand_is_no_obstacle(fake, access, journal, said):
    for plural in ("users", "projects"):
        fake.things[plural].popitem()
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_another_cloud_is_not_searched(variables, journal, said):
    with connect(from_environment(variables, "--cloud prod")) as same_place:
        assert clean(same_place, journal, said.append) == ()
    text = journal.read_text().replace("127.0.0.1", "192.0.2.7") + (
        '{"event": "create", "kind": "user", "name": "x"}\n'
    )
    journal.write_text(text)
    with (
        connect(from_environment(variables, "--cloud prod")) as elsewhere,
        pytest.raises(InvalidInput, match=r"was made in http://192\.0\.2\.7.*\(--lab test\)"),
    ):
        clean(elsewhere, journal, said.append)


@pytest.mark.parametrize("chosen", ["OS_*", "--cloud prod"])
def test_a_cloud_of_the_same_name_at_another_url_is_another_cloud(variables, journal, said, chosen):
    with connect(from_environment(variables, chosen)) as access:
        Journal.start(journal, RUN, access).create(ResourceKind.DOMAIN, NAME)
        journal.write_text(journal.read_text().replace("127.0.0.1", "192.0.2.7"))
        # Else the wrong cloud, which has nothing of it, would pass for a clean one.
        with pytest.raises(InvalidInput, match="choose that cloud"):
            clean(access, journal, said.append)
        assert len(remaining(journal)) == 1


@pytest.fixture
def services(fake):
    """Other services in region R, in which a killed run left a server, a network and a group."""
    services = FakeCloud()
    services.token_is_good = True
    services.servers["s-1"] = {"id": "s-1", "name": f"{NAME}-s0", "status": "ACTIVE"}
    services.networks["n-1"] = {"id": "n-1", "name": f"{NAME}-n0-0"}
    services.ensure_group("p-1")
    with serving(services.handler()) as url:
        fake.catalog = services.catalog(url)
        yield services


def left_in_region(access: Access, path: Path) -> None:
    """Write the journal of the run that left what `services` has."""
    journal = Journal.start(path, RUN, access)
    journal.create(ResourceKind.DOMAIN, NAME)
    for kind in (ResourceKind.SERVER, ResourceKind.NETWORK):
        journal.create(kind, resource_name(RUN, kind, ANY))
    journal.created(Resource(ResourceKind.SECURITY_GROUP, "default of p", "p-1"))


def test_servers_of_another_region_are_not_taken_for_removed(variables, services, journal, said):
    own = variables | {"OS_REGION_NAME": "R"}
    with connect(from_environment(own)) as access:
        left_in_region(access, journal)
    words = r"made its servers and networks in region R, not in region R2; choose that region"
    with (
        connect(from_environment(variables | {"OS_REGION_NAME": "R2"})) as elsewhere,
        pytest.raises(InvalidInput, match=words),
    ):
        clean(elsewhere, journal, said.append)
    assert len(remaining(journal)) == 4
    with connect(from_environment(own)) as access:
        assert clean(access, journal, said.append) == ()
    assert (services.servers, services.networks, services.groups) == ({}, {}, {})


@pytest.mark.usefixtures("killed")
def test_users_have_no_region(fake, variables, journal, said):
    with connect(from_environment(variables | {"OS_REGION_NAME": "R2"}, "--lab test")) as access:
        assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


def test_a_service_that_the_catalog_lacks_has_not_removed_its_resources(
    fake, services, access, variables, journal, said
):
    left_in_region(access, journal)
    # Older journals do not say the region.
    journal.write_text(journal.read_text().replace(', "region": ""', ""))
    fake.add("domains", NAME)
    with connect(from_environment(variables | {"OS_REGION_NAME": "R2"})) as elsewhere:
        left = {one.thing.kind: one.why for one in clean(elsewhere, journal, said.append)}
    assert " has no compute for region R2, interface public" in left["server"]
    assert " has no network for region R2, interface public" in left["network"]
    assert " has no network for region R2" in left["security group"]
    assert fake.names("domains") == []
    assert clean(access, journal, said.append) == ()
    assert (services.servers, services.networks, services.groups) == ({}, {}, {})


IMPOSSIBLE = ("http://127.0.0.1:$(port)s/v2.1", "http://127.0.0.1:99999", "http://[::1", "/nova")


@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_an_impossible_url_in_the_catalog_keeps_only_the_resources_of_its_service(
    fake, services, variables, journal, said, impossible
):
    (compute,) = [one for one in fake.catalog if one["type"] == "compute"]
    compute["endpoints"][0]["url"] = impossible
    fake.add("domains", NAME)
    with connect(from_environment(variables)) as access:
        left_in_region(access, journal)
        (leftover,) = clean(access, journal, said.append)
    assert leftover.thing.kind is ResourceKind.SERVER
    assert "the catalog's compute endpoint is not a URL that can be used (" in leftover.why
    assert (services.networks, services.groups, fake.names("domains")) == ({}, {}, [])


@pytest.mark.parametrize(
    ("service", "kinds"),
    [("compute", ("server",)), ("network", ("network", "security group"))],
)
def test_a_gateway_that_does_not_know_a_service_has_not_removed_its_resources(
    fake, services, variables, journal, service, kinds
):
    (entry,) = [one for one in fake.catalog if one["type"] == service]
    known = entry["endpoints"][0]["url"]
    entry["endpoints"][0]["url"] = known.replace(f"/{service}", "/moved")  # 404 with JSON
    with connect(from_environment(variables)) as access:
        left_in_region(access, journal)
        left = {str(one.thing.kind): one.why for one in clean(access, journal, [].append)}
    assert sorted(left) == sorted(kinds)
    assert all("of all projects: HTTP 404" in why for why in left.values())
    entry["endpoints"][0]["url"] = known
    with connect(from_environment(variables)) as access:
        assert clean(access, journal, [].append) == ()
    assert (services.servers, services.networks, services.groups) == ({}, {}, {})


def test_a_neutron_without_security_groups_has_none_left(
    services, access, journal, said, monkeypatch
):
    left_in_region(access, journal)
    none = {"NeutronError": {"message": "no such resource"}}
    monkeypatch.setattr(services, "neutron_group", lambda *_: (404, none))
    assert clean(access, journal, said.append) == ()


def test_what_was_removed_is_not_listed_beside_what_would_not_go(
    fake, services, access, journal, said
):
    services.locks_first = True
    left_in_region(access, journal)
    Journal(journal, RUN).create(ResourceKind.USER, f"{NAME}-w{ANY}", "default")
    fake.add("users", f"{NAME}-w1-i1", domain_id="default", password="x")
    leftovers = clean(access, journal, said.append)
    assert [one.thing.kind for one in leftovers] == [ResourceKind.SERVER]
    assert (services.networks, services.groups, fake.names("users")) == ({}, {}, [])


@pytest.fixture
def of_a_domain(variables):
    with connect(from_environment(variables | {"OS_DOMAIN_ID": "default"}, "--lab test")) as access:
        yield access


@pytest.mark.usefixtures("killed")
def test_a_token_of_a_domain_hides_the_runs_and_removes_nothing(
    fake, access, of_a_domain, journal, said
):
    leftovers = clean(of_a_domain, journal, said.append)
    assert len(leftovers) == len(remaining(journal)) == 9
    assert {leftover.why for leftover in leftovers} == {
        "Keystone lists for the token of a domain only what is in that domain; "
        "choose a project or the system"
    }
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


def test_a_token_of_a_domain_removes_what_is_in_that_domain(fake, of_a_domain, journal, said):
    place = Journal.start(journal, RUN, of_a_domain)
    place.create(ResourceKind.USER, f"{NAME}-w{ANY}", "default")
    fake.add("users", f"{NAME}-w1-i1", domain_id="default", password="x")
    assert clean(of_a_domain, journal, said.append) == ()
    assert fake.names("users") == []


@pytest.mark.usefixtures("killed")
def test_a_domain_that_no_list_has_is_looked_up_by_its_id(fake, access, journal, said):
    (domain,) = fake.things["domains"].values()
    domain["name"] = "renamed"
    (leftover,) = [
        one for one in clean(access, journal, said.append) if one.thing.kind is ResourceKind.DOMAIN
    ]
    assert leftover.why == "no domain of this name is listed, and the one made is still there"
    domain["name"] = NAME
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_a_lab_on_another_port_is_the_same_cloud(fake, access, journal, said):
    journal.write_text(journal.read_text().replace(str(access.endpoint.port), "1"))
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.usefixtures("killed")
def test_a_line_cut_off_by_the_kill_does_no_harm(fake, access, journal, said):
    with journal.open("a") as file:
        file.write('{"event": "create", "ki')
    assert len(remaining(journal)) == 9
    assert clean(access, journal, said.append) == ()
    assert remaining(journal) == ()
    assert not any(fake.things.values())


def test_no_journal_is_nothing_to_do(access, journal, said):
    assert read(journal) is None
    assert remaining(journal) == ()
    assert clean(access, journal, said.append) == ()
    assert said == []


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("methods", [("GET", "DELETE"), ("DELETE",)])
def test_a_404_of_a_proxy_is_not_taken_for_removed(fake, access, journal, said, methods):
    page = 404, b"default backend - 404"
    fake.disturb = lambda method, _path: page if method in methods else None
    leftovers = clean(access, journal, said.append)
    assert len(leftovers) == len(remaining(journal)) == 9
    assert "HTTP 404 Not Found" in leftovers[-1].why
    fake.disturb = lambda _method, _path: None
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


def test_a_404_of_a_proxy_before_another_service_is_not_taken_for_removed(
    services, access, journal, said, monkeypatch
):
    left_in_region(access, journal)
    known = services.answer
    monkeypatch.setattr(services, "answer", lambda *_: (404, b"<html>404 Not Found</html>"))
    left = {one.thing.kind: one.why for one in clean(access, journal, said.append)}
    assert set(left) == {"server", "network", "security group"}
    monkeypatch.setattr(services, "answer", known)
    assert clean(access, journal, said.append) == ()
    assert (services.servers, services.networks, services.groups) == ({}, {}, {})


def test_a_dead_service_is_given_up_at_once(fake, access, journal, said):
    started = Journal.start(journal, RUN, access)
    for number in range(1, 50):
        started.created(Resource(ResourceKind.USER, f"{NAME}-u{number}", "1" * 32))
    before = sum(fake.calls.values())
    fake.disturb = lambda _method, _path: 0
    leftovers = clean(access, journal, said.append)
    assert len(leftovers) == 49
    assert sum(fake.calls.values()) - before < 49


def test_leftovers_with_one_reason_are_one_line(journal):
    journal.write_text("")
    record = JournalContents(RUN, "OS_*", "http://127.0.0.1:5000/v3", ())
    things = [Resource(ResourceKind.USER, f"user-{number}") for number in range(24)]
    first_one, *others = things
    left = [Leftover(first_one, "HTTP 500"), *(Leftover(one, "it is in use") for one in others)]
    said = []
    list_leftovers(record, journal, tuple(left), said.append)
    first, own, alike, more = said
    assert first.startswith("24 left in http://127.0.0.1:5000/v3; remove with: loadstone results")
    assert own == "  user user-0: HTTP 500"
    assert alike.startswith("  user user-1, user user-2, ")
    assert alike.endswith("user user-19: it is in use")
    assert more == "  and 4 more"
