"""Scenarios of services beside identity, through openstacksdk in worker processes."""

from collections import Counter
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
from fake_cloud import PASSWORD, fake_cloud

from loadstone.cloud import connect, from_environment
from loadstone.engine.callables.model import ITERATION, PAUSE, CallPlan
from loadstone.engine.callables.run import run
from loadstone.keystone.resources import User
from loadstone.plan.load import ClosedLoad
from loadstone.rally.functions.actor import rows
from loadstone.rally.functions.actor import settings as access_settings
from loadstone.rally.functions.catalogue import FUNCTIONS, SWEEPS
from loadstone.rally.task.catalogue.scenarios import SCENARIOS

ANN = User("u", "ann", PASSWORD, "p", "P", "d", "D")
(USER,) = rows([ANN])
IMAGE, FLAVOR = {"name": "^cirros.*"}, {"name": "m1.tiny"}


@pytest.fixture(scope="module")
def cloud():
    with fake_cloud() as made:
        yield made


@pytest.fixture
def fake(cloud):
    fake = cloud[0]
    fake.__init__()
    return fake


def call(cloud, name, *, times=1, user=USER, **arguments):
    return call_as((user,), cloud, name, ClosedLoad(min(times, 2), iterations=times), **arguments)


def call_as(users, cloud, name, load, **arguments):
    return run(CallPlan(FUNCTIONS[name], load, arguments, rows=users, settings=cloud[1]))


def actions(called):
    samples = called.measured.samples
    numbers = Counter(samples.action.tolist())
    return {name: numbers[i] for i, name in enumerate(called.actions) if name[0] != "("}


def test_every_function_is_in_the_catalogue_and_can_be_imported():
    from loadstone.engine.callables.worker import load

    assert set(FUNCTIONS) <= set(SCENARIOS)
    assert all(callable(load(function)) for function in FUNCTIONS.values())


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("nova", {("GET", "compute/v2.1"): 1, ("GET", "compute/v2.1/flavors/detail"): 3}),
        ("glance", {("GET", "image/v2/images"): 3}),
        ("cinder", {("GET", "volume/v3/types"): 3}),
        ("neutron", {("GET", "network/v2.0/networks"): 3}),
        ("heat", {("GET", "heat/v1/stacks"): 3}),
        ("octavia", {("GET", "lb/v2.0/lbaas/loadbalancers"): 3}),
        ("ceilometer", {("GET", "metering/v2/meters"): 3}),
        ("monasca", {("GET", "monitoring/metrics"): 3}),
    ],
)
def test_a_validation_is_one_token_and_so_many_calls(cloud, fake, name, requests):
    called = call(cloud, f"Authenticate.validate_{name}", repetitions=3)
    assert called.failures == ()
    assert actions(called) == {f"authenticate.validate_{name}": 1}
    assert fake.calls == {("POST", "identity/v3/auth/tokens"): 1, **requests}


@pytest.mark.parametrize("name", ["nova", "glance", "neutron", "heat", "ceilometer", "monasca"])
def test_other_services_are_called_at_the_interface_that_the_cloud_names(cloud, fake, name):
    internal = (cloud[0], {**cloud[1], "interface": "internal"})
    called = call(internal, f"Authenticate.validate_{name}", repetitions=1)
    # The fake serves nothing there.
    assert [failure.count for failure in called.failures] == [1]
    others = [path for _, path in fake.calls if not path.startswith("identity")]
    assert others
    assert all(path.startswith("internal/") for path in others)


def test_the_catalog_is_read_by_the_interface_that_the_environment_names(cloud):
    _, settings = cloud
    environment = {
        "OS_AUTH_URL": settings["auth_url"],
        "OS_USERNAME": "ann",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "P",
        "OS_USER_DOMAIN_NAME": "D",
        "OS_PROJECT_DOMAIN_NAME": "D",
    }
    for named, path in (({}, "/compute"), ({"OS_ENDPOINT_TYPE": "internalURL"}, "/internal")):
        with connect(from_environment({**environment, **named})) as access:
            assert urlsplit(access.service_url("compute")).path.startswith(path)
            assert access_settings(access, "x")["interface"] == access.cloud.interface


def test_users_log_in_to_a_project_of_another_domain(cloud, fake):
    (far,) = rows([replace(ANN, project_domain_name="far")])
    called = call(cloud, "Authenticate.validate_heat", user=far, repetitions=1)
    assert called.failures == ()
    (login,) = [body for method, path, body in fake.requests if path.endswith("/auth/tokens")]
    assert login["auth"]["scope"]["project"] == {"name": "P", "domain": {"name": "far"}}
    assert login["auth"]["identity"]["password"]["user"]["domain"] == {"name": "D"}


def test_servers_are_booted_and_wait_to_be_active(cloud, fake):
    called = call(cloud, "NovaServers.boot_server", times=3, image=IMAGE, flavor=FLAVOR)
    assert called.failures == ()
    assert actions(called) == {"nova.boot_server": 3}
    names = {server["name"] for server in fake.servers.values()}
    assert names == {f"loadstone-r1-i{i}" for i in (1, 2, 3)}
    assert {server["imageRef"] for server in fake.servers.values()} == {"i-2"}
    assert {server["flavorRef"] for server in fake.servers.values()} == {"f-1"}
    # A worker keeps its user's token: two workers, two tokens.
    assert fake.calls["POST", "identity/v3/auth/tokens"] == 2


def test_an_iteration_that_logs_in_anew_has_a_token_of_its_own(cloud, fake):
    anew = (cloud[0], {**cloud[1], "logs_in_anew": "yes"})
    called = call(anew, "NovaServers.boot_server", times=5, image=IMAGE, flavor=FLAVOR)
    assert called.failures == ()
    assert fake.calls["POST", "identity/v3/auth/tokens"] == 5


@pytest.mark.parametrize(
    ("more", "networks"),
    [
        ({"auto_assign_nic": True}, ["n-2", "n-1", "n-2"]),  # in turn, by the iteration's number
        ({"auto_assign_nic": False, "nics": None}, ["n-1"] * 3),
        ({"auto_assign_nic": True, "nics": [{"net-id": "n-3"}]}, ["n-3"] * 3),
        ({"nics": "auto"}, ["auto"] * 3),
    ],
)
def test_a_server_gets_the_network_of_its_project_that_rally_gives_it(cloud, fake, more, networks):
    user = {**USER, "networks": "n-1 n-2"}
    name, given = "NovaServers.boot_and_show_server", {"image": IMAGE, "flavor": FLAVOR, **more}
    assert call(cloud, name, user=user, times=3, **given).failures == ()
    servers = sorted(fake.servers.values(), key=lambda one: one["name"])
    asked = [one["networks"] for one in servers]
    assert [one if isinstance(one, str) else one[0]["uuid"] for one in asked] == networks


def test_without_networks_of_the_run_nova_chooses(cloud, fake):
    name, given = "NovaServers.boot_server", {"image": IMAGE, "flavor": FLAVOR}
    assert call(cloud, name, auto_assign_nic=True, **given).failures == ()
    (server,) = fake.servers.values()
    assert server.get("networks") in (None, "auto")


def test_a_network_may_be_named(cloud, fake):
    fake.networks = {f"n-{name}": {"id": f"n-{name}", "name": name} for name in ("blue", "red")}
    nics = [{"net-name": "red", "v6-fixed-ip": "fd00::1"}]
    given = {"image": IMAGE, "flavor": FLAVOR, "nics": nics}
    assert call(cloud, "NovaServers.boot_server", **given).failures == ()
    (server,) = fake.servers.values()
    assert server["networks"] == [{"uuid": "n-red", "fixed_ip": "fd00::1"}]


def test_a_network_that_is_named_is_that_of_the_users_own_project(cloud, fake):
    fake.networks = {
        f"n-{project}": {"id": f"n-{project}", "name": "private", "only_of": project}
        for project in ("P", "Q")
    }
    users = rows([ANN, User("v", "bob", PASSWORD, "q", "Q", "d", "D")])
    given = {"image": IMAGE, "flavor": FLAVOR, "nics": [{"net-name": "private"}]}
    one_worker = ClosedLoad(1, iterations=4)
    called = call_as(users, cloud, "NovaServers.boot_server", one_worker, **given)
    assert called.failures == ()
    asked = [server["networks"][0]["uuid"] for server in fake.servers.values()]
    assert sorted(asked) == ["n-P", "n-P", "n-Q", "n-Q"]


@pytest.mark.parametrize(
    ("flavor", "chosen"),
    [({"name": "^m1.tiny$"}, "f-1"), ({"regex": "2$"}, "f-2"), ({"name": "m1.ti"}, None)],
)
def test_a_flavor_may_be_named_by_a_pattern_that_only_it_has(cloud, fake, flavor, chosen):
    called = call(cloud, "NovaServers.boot_server", image=IMAGE, flavor=flavor)
    assert [one["flavorRef"] for one in fake.servers.values()] == ([chosen] if chosen else [])
    assert ["more than one flavor" in one.cause for one in called.failures] == [True] * (not chosen)


def test_servers_are_listed(cloud):
    called = call(cloud, "NovaServers.list_servers", detailed=True)
    assert called.failures == ()
    assert actions(called) == {"nova.list_servers": 1}


def test_files_are_put_into_a_server(cloud, fake):
    given = {"image": IMAGE, "flavor": FLAVOR, "files": {"/etc/motd": "hello"}}
    assert call(cloud, "NovaServers.boot_server", **given).failures == ()
    (server,) = fake.servers.values()
    assert server["personality"] == [{"path": "/etc/motd", "contents": "aGVsbG8="}]


@pytest.mark.parametrize("public", [False, None])
def test_flavors_are_listed_as_the_task_file_asks(cloud, fake, public):
    called = call(cloud, "NovaFlavors.list_flavors", min_ram=512, limit=1, is_public=public)
    assert called.failures == ()
    assert actions(called) == {"nova.list_flavors": 1}
    [path] = [path for _, path, _ in fake.requests if "flavors" in path]
    assert path.partition("?")[0] == "/compute/v2.1/flavors/detail"
    asked = dict(parse_qsl(path.partition("?")[2]))
    assert asked == {"minRam": "512", "limit": "1", "is_public": str(public)}


def test_networks_are_created_listed_and_swept_by_name(cloud, fake):
    name, given = "NeutronNetworks.create_and_list_networks", {"description": "mine"}
    called = call(cloud, name, times=2, network_create_args=given)
    assert called.failures == ()
    assert actions(called) == {"neutron.create_network": 2, "neutron.list_networks": 2}
    assert {made["name"] for made in fake.networks.values()} == {
        "loadstone-r1-i1",
        "loadstone-r1-i2",
    }
    assert {made["description"] for made in fake.networks.values()} == {"mine"}
    fake.networks["n-x"] = {"id": "n-x", "name": "loadstone-r10-i1"}
    plan = CallPlan(
        SWEEPS[name].function, ClosedLoad(1, iterations=1), rows=(USER,), settings=cloud[1]
    )
    assert run(plan).failures == ()
    assert set(fake.networks) == {"n-x"}


def test_what_a_task_file_says_of_a_server_reaches_nova(cloud, fake):
    called = call(
        cloud,
        "NovaServers.boot_server",
        image={"id": "i-9"},
        flavor={"id": "f-9"},
        nics=[{"net-id": "n-1"}],
        security_groups=["web"],
        meta={"a": "b"},
        key_name="mine",
    )
    assert called.failures == ()
    (server,) = fake.servers.values()
    assert server["networks"] == [{"uuid": "n-1"}]
    assert server["security_groups"] == [{"name": "web"}]
    assert server["metadata"] == {"a": "b"}
    assert (server["key_name"], server["imageRef"], server["flavorRef"]) == ("mine", "i-9", "f-9")


def test_a_booted_server_is_in_the_list(cloud, fake):
    called = call(cloud, "NovaServers.boot_and_list_server", image=IMAGE, flavor=FLAVOR)
    assert called.failures == ()
    assert actions(called) == {"nova.boot_server": 1, "nova.list_servers": 1}
    assert fake.calls["GET", "compute/v2.1/servers/detail"] == 1


@pytest.mark.parametrize(
    ("force", "action"), [(False, "nova.delete_server"), (True, "nova.force_delete_server")]
)
def test_a_booted_server_is_deleted_after_a_pause_that_is_kept_apart(cloud, fake, force, action):
    called = call(
        cloud,
        "NovaServers.boot_and_delete_server",
        image=IMAGE,
        flavor=FLAVOR,
        min_sleep=0.01,
        max_sleep=0.02,
        force_delete=force,
    )
    assert called.failures == ()
    assert actions(called) == {"nova.boot_server": 1, action: 1}
    assert PAUSE in called.actions
    assert fake.servers == {}


def test_a_sweep_removes_what_the_run_made_and_nothing_else(cloud, fake):
    call(cloud, "NovaServers.boot_server", times=2, image=IMAGE, flavor=FLAVOR)
    fake.servers["s-x"] = {"id": "s-x", "name": "loadstone-r10-i1", "status": "ACTIVE"}
    fake.servers["s-y"] = {"id": "s-y", "name": "somebody's", "status": "ACTIVE"}
    swept = run(
        CallPlan(
            SWEEPS["NovaServers.boot_server"].function,
            ClosedLoad(1, iterations=1),
            rows=(USER,),
            settings=cloud[1],
        )
    )
    assert swept.failures == ()
    assert set(fake.servers) == {"s-x", "s-y"}


def test_a_refusal_is_told_with_its_status_and_its_words(cloud, fake):
    fake.refuse_boot = True
    called = call(cloud, "NovaServers.boot_server", times=4, image=IMAGE, flavor=FLAVOR)
    (failure,) = called.failures
    assert (failure.action, failure.count) == ("nova.boot_server", 4)
    assert "Quota exceeded for instances" in failure.cause
    assert set(called.measured.samples.status.tolist()) == {0, 403}


def test_a_password_that_is_refused_or_repeated_by_a_service_is_told_nowhere(cloud, fake):
    fake.down.add("image")
    called = call(cloud, "Authenticate.validate_glance", repetitions=1)
    (failure,) = called.failures
    assert "503" in failure.cause
    assert PASSWORD not in repr(called)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ({"name": "no such"}, "no image is {'name': 'no such'}"),
        ({"name": "no such (1"}, "no image is {'name': 'no such (1'}"),
        ({"regex": "cirros", "accurate": True}, "more than one image"),
    ],
)
def test_an_image_that_cannot_be_chosen_is_said(cloud, fake, image, words):
    called = call(cloud, "NovaServers.boot_server", image=image, flavor=FLAVOR)
    (failure,) = called.failures
    assert failure.action == ITERATION
    assert words in failure.cause
    assert fake.servers == {}
