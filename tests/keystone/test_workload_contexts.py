import pytest
from fake_keystone import FakeKeystone

from loadstone.cloud import connect, from_environment
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import clean, remaining
from loadstone.keystone.contexts.model import DummyContext, Quotas, Roles, Users
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import contexts
from loadstone.keystone.resources import CreatedByIterations, ResourceKind, User
from loadstone.keystone.scenarios import Scenario

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"
SOMEONE = User("u1", "ann", "x", "p1", "office", "default", "Default")


def scenario_that_makes(*made: CreatedByIterations) -> Scenario:
    return Scenario("A.scenario", "", "", (), makes=made)


def test_users_are_made_as_the_file_says_and_removed(fake, access, journal, said):
    wanted = [Users(tenants=2, users_per_tenant=3), Roles(("reader",))]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append) as actors:
        assert [user.project_name for user in actors.users] == [f"{NAME}-p1", f"{NAME}-p2"] * 3
        assert {role for _, _, role in fake.grants} == {"r-member", "r-reader"}
        assert len(fake.grants) == 12
    assert not any(fake.things.values())
    assert remaining(journal) == ()


def test_look_ups_are_made_once_however_many_users(fake, access, journal, said):
    wanted = [Users(tenants=2, users_per_tenant=10), Roles(("reader", "admin"))]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append):
        assert fake.calls["GET", "/v3/roles"] == 1
        assert fake.calls["POST", "/v3/domains"] == 1


def test_users_in_a_domain_that_the_file_names_leave_it_as_it_was(fake, access, journal, said):
    fake.add("domains", "Staff", id="d-staff")
    fake.add("users", "operator", domain_id="d-staff", password="x")
    wanted = [Users(users_per_tenant=2, user_domain="Staff", project_domain="Staff")]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append) as actors:
        assert {user.domain_id for user in actors.users} == {"d-staff"}
        assert fake.names("domains") == ["Staff"]
        assert len(fake.names("users")) == 3
    assert (fake.names("users"), fake.names("projects")) == (["operator"], [])
    assert fake.names("domains") == ["Staff"]


def test_users_that_exist_take_turns_and_nothing_is_made(fake, access, journal, said):
    others = [SOMEONE, User("u2", "bob", "x", "p1", "office", "default", "Default")]
    wanted = [Users(choice="round_robin", may_be_existing=True)]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append, others) as actors:
        assert actors.users == tuple(others)
        assert actors.turns() == (0, 1)
    assert not any(fake.things.values())


def test_a_random_choice_is_the_same_each_time(access, journal, said):
    wanted = [Users(users_per_tenant=3)]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append) as actors:
        assert actors.turns() == actors.turns()
        assert set(actors.turns()) == {0, 1, 2}


def test_roles_of_users_that_exist_are_not_touched(access, journal, said):
    wanted = [Users(may_be_existing=True), Roles(("admin",))]
    with (
        pytest.raises(InvalidInput, match="exist already"),
        contexts(access, RunJournal(RUN, journal), wanted, said.append, [SOMEONE]),
    ):
        pass


def test_what_iterations_made_is_removed_and_nothing_of_anyone_else(fake, access, journal, said):
    fake.add("users", "operator", domain_id="default", password="x")
    fake.add("users", f"{NAME}9-w1-i1", domain_id="default", password="x")
    fake.add("users", f"{NAME}-w1-i1x", domain_id="default", password="x")
    kept = fake.names("users")
    with contexts(access, RunJournal(RUN, journal), [Users()], said.append) as actors:
        actors.announce(scenario_that_makes(CreatedByIterations(ResourceKind.USER, "default")))
        for number in range(30):
            fake.add("users", f"{NAME}-w1-i{number}", domain_id="default", password="x")
    assert fake.names("users") == kept
    assert remaining(journal) == ()


def test_what_iterations_made_and_would_not_go_is_a_leftover(fake, access, journal, said):
    run = RunJournal(RUN, journal, " --store mine")
    with contexts(access, run, [Users()], said.append) as actors:
        actors.announce(scenario_that_makes(CreatedByIterations(ResourceKind.USER, "default")))
        stuck = fake.add("users", f"{NAME}-w1-i1", domain_id="default", password="x")
        fake.disturb = lambda method, path: (
            403 if (method, path) == ("DELETE", f"/v3/users/{stuck['id']}") else None
        )
    assert "results clean" in said[-2]
    assert said[-2].endswith(" --store mine")
    assert f"{NAME}-w1-i1" in said[-1]
    assert remaining(journal)
    fake.disturb = lambda *_: None
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


def test_unnamed_things_are_not_left_with_users_that_exist(access, journal, said):
    leaving = Scenario("A.scenario", "", "", (), leaves_with_users=("EC2 credentials",))
    with (
        contexts(
            access,
            RunJournal(RUN, journal),
            [Users(may_be_existing=True)],
            said.append,
            [SOMEONE],
        ) as actors,
        pytest.raises(InvalidInput, match="EC2 credentials"),
    ):
        actors.announce(leaving)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing is cleaned up."""


def test_users_of_a_killed_run_are_taken_over(fake, access, journal, said, monkeypatch):
    wanted = [Users(tenants=2, users_per_tenant=2)]
    with monkeypatch.context() as dead:
        dead.setattr("loadstone.keystone.contexts.users._remove", lambda *_: None)
        with pytest.raises(Killed), contexts(access, RunJournal(RUN, journal), wanted, said.append):
            raise Killed
    made = fake.calls["POST", "/v3/users"]
    more = [Users(tenants=2, users_per_tenant=4)]
    with contexts(access, RunJournal(RUN, journal), more, said.append) as actors:
        assert fake.calls["POST", "/v3/users"] == made + 4
        assert len({user.id for user in actors.users}) == 8
    assert not any(fake.things.values())


def test_a_user_that_a_killed_run_never_confirmed_gets_our_password(
    fake: FakeKeystone, access, journal, said
):
    domain = fake.add("domains", NAME)
    fake.add("users", f"{NAME}-u1", domain_id=domain["id"], password="nobody knows")
    with contexts(access, RunJournal(RUN, journal), [Users()], said.append) as actors:
        (user,) = actors.users
        assert fake.things["users"][user.id]["password"] == user.password


def test_quotas_of_a_service_that_the_cloud_lacks_are_named(access, journal, said):
    wanted = [Users(), Quotas({"nova": {"cores": 1}})]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append):
        pass
    assert [one for one in said if one.startswith("quotas of nova are left out: the catalog of ")]


@pytest.mark.parametrize("path", ["/compute", "/compute/v2.1", "/compute/v2.1/a-project"])
def test_quotas_of_nova_are_set_whatever_the_catalog_has_of_its_url(
    fake, url, variables, journal, path
):
    endpoint = {"id": "e", "interface": "public", "region": "R", "url": url + path}
    fake.catalog = [{"id": "nova", "type": "compute", "name": "nova", "endpoints": [endpoint]}]
    put = []

    def nova(method, asked):
        if not asked.startswith("/compute/"):
            return None
        put.append((method, asked))
        return 200, {}

    fake.disturb = nova
    wanted = [Users(), Quotas({"nova": {"cores": 1}})]
    with (
        connect(from_environment(variables)) as access,
        contexts(access, RunJournal(RUN, journal), wanted, [].append) as actors,
    ):
        project = actors.users[0].project_id
    assert put == [("PUT", f"/compute/v2.1/os-quota-sets/{project}")]


def test_quotas_of_projects_that_exist_are_not_set_and_that_is_reported(access, journal, said):
    wanted = [Users(may_be_existing=True), Quotas({"nova": {"cores": 1}})]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append, [SOMEONE]):
        pass
    assert "quotas: not set, because the projects exist already" in said


def test_a_dummy_context_that_cannot_be_set_up_leaves_nothing(fake, access, journal, said):
    wanted = [Users(), DummyContext(fail_setup=True)]
    with (
        pytest.raises(EnvironmentUnusable, match="fail_setup"),
        contexts(access, RunJournal(RUN, journal), wanted, said.append),
    ):
        pass
    assert not any(fake.things.values())


def test_a_dummy_context_that_fails_to_clean_up_is_told_and_breaks_nothing(
    fake, access, journal, said
):
    """As in Rally, where it breaks no SLA."""
    wanted = [Users(), DummyContext(fail_cleanup=True)]
    with contexts(access, RunJournal(RUN, journal), wanted, said.append):
        pass
    assert any("as fail_cleanup says" in one for one in said)
    assert not any(fake.things.values())
