"""A sizing of services whose costs are known."""

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from realistic import keystone
from rich.console import Console

from loadstone.audit.facts import Facts, Value
from loadstone.audit.readers import capacity
from loadstone.cli import main
from loadstone.diagnosis.bottleneck import Bottleneck
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse
from loadstone.diagnosis.resources import Resources
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.monitor.identity_requests import IdentityRequests, KindCount, RequestKind
from loadstone.monitor.roles import Role
from loadstone.report import html, terminal
from loadstone.result.model import Measurement, Run
from loadstone.size.demand import demands
from loadstone.size.section import report_of
from loadstone.size.sizing import ScenarioLoad, Sizing, size
from loadstone.store.store import Store

RESULT, _ = keystone()
ISSUE, VALIDATE = "Authenticate.keystone", "Keystone.validate_token"
BOOT = "NovaServers.boot_and_list_server"
# CPU seconds that one iteration really costs, and how long it holds a worker.
COSTS = {
    ISSUE: {Role.KEYSTONE: 0.240, Role.DATABASE: 0.004, Role.GENERATOR: 0.0002},
    VALIDATE: {Role.KEYSTONE: 0.006, Role.DATABASE: 0.001, Role.GENERATOR: 0.0001},
}
HELD_S = {ISSUE: 0.260, VALIDATE: 0.010}
MARIADB = (
    ("conf.cache.backend", "dogpile.cache.pymemcache"),
    ("conf.uses_memcached", "true"),
    ("conf.database.max_pool_size", "5"),
    ("conf.database.max_overflow", "50"),
)
WITHOUT_NOISE = np.random.default_rng(0)


def resources(
    scenario: str, rate_rps: float, spread: float, random: np.random.Generator
) -> Resources:
    """Return what a monitor reads at a rate, each cost with an error of its own."""
    uses = []
    for role, cost in COSTS[scenario].items():
        read = cost * float(np.exp(random.normal(0.0, spread)))
        busy = read * rate_rps
        uses.append(
            ResourceUse(role.value, BottleneckKind.CPU, role.value, busy, 2.0, "cores", read)
        )
    seen = Observation(20.0, int(20 * rate_rps), tuple(uses), (("statements_per_request", 12.0),))
    return Resources(seen, Bottleneck(BottleneckKind.NONE, "machine", None, None, ""), ())


def measured(scenario: str, spread: float, random: np.random.Generator) -> Measurement:
    """Return a search whose trials are at 30, 80, 90 and 100 % of what two cores bear."""
    [like] = [trial for trial in RESULT.measurements[0].trials if trial.number == 3]
    trials = []
    for number, share in enumerate((0.3, 0.8, 0.9, 1.0), 1):
        rate = share * 2 / sum(COSTS[scenario].values())
        service = replace(like.stats.service, mean_s=HELD_S[scenario] * (1 if share < 0.5 else 2))
        stats = replace(like.stats, throughput_rps=rate, load_s=20.0, service=service)
        of_trial = resources(scenario, rate, spread, random)
        trials.append(replace(like, number=number, rate_rps=rate, stats=stats, resources=of_trial))
    return replace(RESULT.measurements[0], scenario=scenario, trials=tuple(trials), title=scenario)


def run(number: int, spread: float, random: np.random.Generator) -> Run:
    measurements = tuple(measured(scenario, spread, random) for scenario in COSTS)
    environment = replace(RESULT.environment, facts=MARIADB)
    started = f"2026-11-{number:02}T09:31:07Z"
    return replace(
        RESULT,
        run_id=f"202611{number:02}-0931-ab12cd",
        started_at=started,
        measurements=measurements,
        environment=environment,
    )


def boots(*requests: tuple[int, int]) -> Run:
    """Return a run of workloads with 25 boots each that caused so many logins and validations."""
    made = run(2, 0.0, WITHOUT_NOISE)
    measurement = made.measurements[0]
    measurements = []
    for logins, validations in requests:
        kinds = (
            KindCount(RequestKind.LOGIN, logins, 0.0),
            KindCount(RequestKind.VALIDATION, validations, 0.0),
            KindCount(RequestKind.SERVICE_LOGIN, 3, 0.0),
        )
        counted = IdentityRequests(25, kinds)
        trial = replace(measurement.trials[0], resources=None, identity=counted)
        measurements.append(replace(measurement, scenario=BOOT, trials=(trial,)))
    cloud = (("middleware cache", "local"), ("service tokens", "on"))
    environment = replace(made.environment, target=(*made.environment.target, *cloud))
    return replace(made, measurements=tuple(measurements), environment=environment)


def over_ssh(watched: Run, shares: dict[str, float], cores: dict[str, int]) -> Run:
    """Return a run whose Keystone was on other machines, each with a share of its CPU.

    A machine that `cores` leaves out was watched without its cores.
    """
    measurements = []
    for measurement in watched.measurements:
        trials = []
        for trial in measurement.trials:
            assert trial.resources is not None
            uses: list[ResourceUse] = []
            for use in trial.resources.observation.uses:
                if use.role == Role.GENERATOR.value:
                    uses.append(use)
                    continue
                for host, share in shares.items():
                    assert use.demand_s is not None
                    name, busy = f"{use.role} on {host}", use.busy * share
                    at = replace(use, name=name, busy=busy, demand_s=use.demand_s * share)
                    uses.append(at)
            for host, count in cores.items():
                name = f"the machine's CPU of {host}"
                uses.append(
                    ResourceUse(name, BottleneckKind.CPU, "machine", 1.0, float(count), "cores")
                )
            observation = replace(trial.resources.observation, uses=tuple(uses))
            seen = replace(trial.resources, observation=observation)
            trials.append(replace(trial, resources=seen))
        measurements.append(replace(measurement, trials=tuple(trials)))
    return replace(watched, measurements=tuple(measurements))


def sized(
    runs: Sequence[Run],
    logins: float,
    validations: float,
    cores_per_node: int | None = 8,
    utilisation: float = 0.6,
) -> Sizing:
    found = demands((ISSUE, VALIDATE), sorted(runs, key=lambda one: one.started_at, reverse=True))
    loads = [ScenarioLoad(found[0], logins), ScenarioLoad(found[1], validations)]
    return size(loads, cores_per_node=cores_per_node, utilisation=utilisation)


def statements(found: Sizing) -> list[str]:
    """Return the sentences that are printed below the figures."""
    return [one.text for one in report_of(found).sections[0].statements]


def test_exact_costs_give_the_cores_workers_nodes_and_connections_of_the_utilisation_law() -> None:
    found = sized([run(1, 0.0, WITHOUT_NOISE)], logins=40, validations=2000)
    cores = dict(found.cores)
    assert cores[Role.KEYSTONE].value == pytest.approx((40 * 0.240 + 2000 * 0.006) / 0.6)
    assert cores[Role.DATABASE].value == pytest.approx((40 * 0.004 + 2000 * 0.001) / 0.6)
    assert Role.GENERATOR not in cores
    # Held without queueing: of the trial at the lowest rate.
    assert found.workers.value == pytest.approx((40 * 0.260 + 2000 * 0.010) / 0.6)
    assert found.nodes.value == pytest.approx(cores[Role.KEYSTONE].value / 8)
    assert found.database is not None
    assert found.database.held == 2 * 51  # 50.7 workers, a connection for the thread and one more
    assert found.database.limit == 170
    assert found.cache is not None
    assert found.cache.held == 51 * 8  # a connection for each of Keystone's cache regions
    assert found.cache.limit == 680
    assert found.statements_rps == pytest.approx(2040 * 12)
    # Of the two cores, with the load generator on them.
    busy = 40 * 0.2442 + 2000 * 0.0071
    assert found.full is not None
    assert found.full.at.value == pytest.approx(2 / busy)


def test_no_link_of_the_page_leads_nowhere() -> None:
    page = html.render(report_of(sized([run(1, 0.0, WITHOUT_NOISE)], 40, 2000)))
    assert set(re.findall('href="#(.*?)"', page)) <= set(re.findall(' id="(.*?)"', page))


def test_one_of_each_is_named_in_the_singular_and_has_no_interval_that_is_unknown() -> None:
    single = run(1, 0.0, WITHOUT_NOISE)
    searches = tuple(replace(one, trials=one.trials[-1:]) for one in single.measurements)
    found = sized([replace(single, measurements=searches)], 0, 1, cores_per_node=1)
    [section] = report_of(found).sections
    assert section.answer.sentence == "1 node of 1 core, with 1 worker of Keystone"
    assert [one.text for one in section.facts] == ["1"]


def test_the_loads_are_named_once() -> None:
    report = report_of(sized([run(1, 0.0, WITHOUT_NOISE)], 40, 2000))
    printed = StringIO()
    terminal.show_in_full(report, Console(file=printed, width=200))
    loads = f"40/s {ISSUE}, 2000/s {VALIDATE}, at 60 % utilisation"
    assert printed.getvalue().startswith(f"what it needs   {loads}\n")


def test_an_error_of_floating_point_adds_no_worker_and_no_connection() -> None:
    # Exactly 21 workers, each with two connections to the database; 42 / 0.7 is a little above 60.
    found = sized([run(1, 0.0, WITHOUT_NOISE)], logins=0, validations=1470, utilisation=0.7)
    assert found.workers.value > 21
    assert report_of(found).sections[0].answer.sentence.endswith("21 workers of Keystone")
    assert found.database is not None
    assert (found.database.held, found.database.limit) == (42, 60)
    assert found.cache is not None
    assert found.cache.held == 21 * 8


@pytest.mark.parametrize("backend", ["dogpile.cache.pymemcache", "oslo_cache.memcache_pool"])
def test_connections_to_memcached_are_as_many_as_the_audit_counts(backend: str) -> None:
    measured_run = run(1, 0.0, WITHOUT_NOISE)
    settings = (
        ("conf.cache.backend", backend),
        ("conf.cache.memcache_pool_maxsize", "10"),
        ("conf.uses_memcached", "true"),
    )
    environment = replace(measured_run.environment, facts=settings)
    found = sized([replace(measured_run, environment=environment)], logins=40, validations=2000)
    workers: dict[str, Value] = {"web.processes": 51, "web.threads": 1}
    cache: dict[str, Value] = {
        "conf.cache.backend": backend,
        "conf.cache.memcache_pool_maxsize": 10,
    }
    audited = capacity.read(Facts(workers | cache)).values
    assert found.cache is not None
    assert found.cache.held == audited["capacity.cache_connections"]


def test_cores_of_a_huge_cloud_have_all_their_digits() -> None:
    random = np.random.default_rng(7)
    found = sized([run(1, 0.05, random)], logins=5000, validations=20_000)
    rows = report_of(found).sections[0].tables[0].rows
    [cores] = [row.cells for row in rows if row.cells[0] == "cores of Keystone"]
    exact = dict(found.cores)[Role.KEYSTONE]
    assert exact.low is not None
    assert exact.high is not None
    assert cores[1:] == (f"{exact.value:,.0f}", f"{exact.low:,.0f} to {exact.high:,.0f}")


def test_intervals_hold_the_true_cores_in_95_percent() -> None:
    random = np.random.default_rng(7)
    truth = (40 * 0.240 + 2000 * 0.006) / 0.6
    held, count = 0, 100
    for _ in range(count):
        cores = dict(sized([run(1, 0.05, random)], 40, 2000).cores)[Role.KEYSTONE]
        assert cores.low is not None
        assert cores.high is not None
        held += cores.low <= truth <= cores.high
    # 95 % less three standard deviations of 100 draws.
    assert held / count >= 0.885


def test_from_three_runs_on_the_scatter_is_that_between_runs() -> None:
    random = np.random.default_rng(8)
    runs = [run(day, 0.05, random) for day in (1, 2, 3)]
    [issue, _] = demands((ISSUE, VALIDATE), runs[::-1])
    assert issue.runs == tuple(one.run_id for one in runs[::-1])
    assert issue.trials == 9  # those at 30 % tell of the idle service


def test_a_role_that_was_not_watched_in_one_of_the_scenarios_is_said() -> None:
    whole = run(1, 0.0, WITHOUT_NOISE)
    issue, validate = whole.measurements
    trials = []
    for trial in validate.trials:
        assert trial.resources is not None
        seen = trial.resources.observation
        uses = tuple(one for one in seen.uses if one.role != Role.DATABASE.value)
        unseen = replace(trial.resources, observation=replace(seen, uses=uses))
        trials.append(replace(trial, resources=unseen))
    unwatched = replace(validate, trials=tuple(trials))
    found = sized([replace(whole, measurements=(issue, unwatched))], 40, 2000)
    said = f"{VALIDATE}: no CPU of the database was counted, so that its cores are without this"
    assert [one for one in found.assumptions if one.startswith(said)]
    assert not [one for one in sized([whole], 40, 2000).assumptions if "was counted" in one]


def test_a_local_run_has_the_cores_and_the_processor_of_this_machine() -> None:
    local = run(1, 0.0, WITHOUT_NOISE)
    machine = (("cores", "2"), ("processor", "Laptop CPU"))
    local = replace(local, environment=replace(local.environment, machine=machine))
    found = sized([local], 40, 2000, cores_per_node=None)
    assert found.cores_per_node == 2
    assert statements(found)[0] == (
        "The machine that was measured, with everything on it, the load generator too, would be "
        "full at 170/s of this mix."
    )
    assert statements(found)[1].startswith("A core is one of those measured (Laptop CPU);")
    assert not [one for one in found.assumptions if "CPU was counted on" in one]


def test_several_hosts_give_their_own_cores_and_not_those_of_the_load_generator() -> None:
    shares, cores = {"node-1": 0.5, "node-2": 0.5}, {"node-1": 32, "node-2": 32}
    watched = over_ssh(run(1, 0.0, WITHOUT_NOISE), shares, cores)
    found = sized([watched], 40, 2000, cores_per_node=None)
    assert dict(found.cores)[Role.KEYSTONE].value == pytest.approx((40 * 0.24 + 2000 * 0.006) / 0.6)
    assert found.cores_per_node == 32
    assert found.full is not None
    # Each machine has half of the costs, and the load generator is on none of them.
    assert found.full.at.value == pytest.approx(32 / ((40 * 0.244 + 2000 * 0.007) / 2))
    full, core, counted, *_ = statements(found)
    assert full.startswith("Of the machines that were measured, node-1 would be full first: at ")
    assert "load generator" not in full
    assert "(processor of node-1, node-2 not known)" in core
    assert "CPU was counted on node-1, node-2." in counted


def test_hosts_with_different_cores_ask_for_the_cores_of_a_node() -> None:
    shares, cores = {"node-1": 0.5, "node-2": 0.5}, {"node-1": 32, "node-2": 16}
    watched = over_ssh(run(1, 0.0, WITHOUT_NOISE), shares, cores)
    with pytest.raises(InvalidInput, match=r"\(node-1 32, node-2 16\): give --cores-per-node"):
        sized([watched], 40, 2000, cores_per_node=None)
    found = sized([watched], 40, 2000)
    assert found.full is not None
    assert found.full.machine.name == "node-2"
    assert found.full.at.value == pytest.approx(16 / ((40 * 0.244 + 2000 * 0.007) / 2))


def test_a_host_whose_cores_are_unknown_asks_for_the_cores_of_a_node() -> None:
    shares = {"node-1": 0.5, "node-2": 0.5}
    watched = over_ssh(run(1, 0.0, WITHOUT_NOISE), shares, {"node-1": 32})
    with pytest.raises(InvalidInput, match="cores node-2 had is not known: give --cores-per-node"):
        sized([watched], 40, 2000, cores_per_node=None)
    found = sized([watched], 40, 2000)
    assert found.full is None
    assert statements(found)[0] == (
        "The rate of this mix at which a measured machine is full is unknown: how many cores "
        "node-2 had is not known."
    )


def test_one_remote_host_is_named_as_the_machine_that_was_measured() -> None:
    watched = over_ssh(run(1, 0.0, WITHOUT_NOISE), {"node-1": 1.0}, {"node-1": 32})
    found = sized([watched], 40, 2000, cores_per_node=None)
    assert found.cores_per_node == 32
    assert statements(found)[0] == (
        "The machine that was measured, node-1, would be full at 2,747/s of this mix if only the "
        "service ran on it."
    )


def test_scenarios_that_were_measured_on_different_hosts_do_not_say_what_is_full() -> None:
    whole = run(1, 0.0, WITHOUT_NOISE)
    issue = over_ssh(whole, {"node-1": 1.0}, {"node-1": 32}).measurements[0]
    validate = over_ssh(whole, {"node-2": 1.0}, {"node-2": 32}).measurements[1]
    found = sized([replace(whole, measurements=(issue, validate))], 40, 2000, cores_per_node=None)
    assert found.full is None
    assert statements(found)[0].endswith("the scenarios were measured on different machines.")
    assert report_of(found).data["measured_machine_full_at"] is None


def test_runs_that_did_not_watch_the_same_hosts_are_not_mixed() -> None:
    cores = {"node-1": 32, "node-2": 32}
    both = over_ssh(run(2, 0.0, WITHOUT_NOISE), {"node-1": 0.5, "node-2": 0.5}, cores)
    one = over_ssh(run(1, 0.0, WITHOUT_NOISE), {"node-1": 0.5}, cores)
    [issue] = demands((ISSUE,), [both, one])
    assert issue.runs == (both.run_id,)


def test_a_trial_in_which_a_host_could_not_be_read_says_nothing_of_the_cost() -> None:
    cores = {"node-1": 32, "node-2": 32}
    whole = over_ssh(run(1, 0.0, WITHOUT_NOISE), {"node-1": 0.5, "node-2": 0.5}, cores)
    lost = over_ssh(run(1, 0.0, WITHOUT_NOISE), {"node-1": 0.5}, cores)
    issue = whole.measurements[0]
    trials = (*issue.trials[:-1], lost.measurements[0].trials[-1])
    [found] = demands((ISSUE,), [replace(whole, measurements=(replace(issue, trials=trials),))])
    assert found.trials == 2  # at 80 and 90 %
    keystone = found.of(Role.KEYSTONE)
    assert keystone is not None
    assert keystone.value == pytest.approx(0.240)


def test_runs_with_other_settings_are_not_mixed_in() -> None:
    old = run(1, 0.0, WITHOUT_NOISE)
    workers = replace(old.environment, target=(*old.environment.target, ("threads", "4")))
    other = replace(old, environment=workers)
    [issue, _] = demands((ISSUE, VALIDATE), [run(2, 0.0, WITHOUT_NOISE), other])
    assert issue.runs == ("20261102-0931-ab12cd",)


def test_a_search_while_a_fault_is_held_says_nothing_of_the_cost() -> None:
    whole = run(1, 0.0, WITHOUT_NOISE)
    broken = tuple(replace(one, held_fault="take node 2 out") for one in whole.measurements)

    with pytest.raises(EnvironmentUnusable, match="no stored run says what"):
        demands((ISSUE,), [replace(whole, measurements=broken)])


def test_without_a_run_that_watched_the_servers_it_is_said_what_to_measure() -> None:
    with pytest.raises(EnvironmentUnusable, match=r"no stored run.*capacity --lab") as refused:
        demands((ISSUE,), [RESULT])
    assert refused.value.exit_code == 3


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    with Store.open(tmp_path) as store:
        store.begin(run(1, 0.0, WITHOUT_NOISE))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["loadstone", "size", "--store", str(tmp_path), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code, *capfd.readouterr())

    return call


def test_the_command_gives_a_table_and_data_and_spells_out_its_assumptions(command, tmp_path):
    code, shown, _ = command("--logins", "40/s", "--validations", "2000/s")
    assert code == 0
    assert "cores of Keystone" in shown
    assert "a process with one thread" in shown
    (tmp_path / "mix.yaml").write_text("validate: 120000/min\n")
    words = ("--logins", "40", "--mix", str(tmp_path / "mix.yaml"), "--cores-per-node", "8")
    code, shown, _ = command(*words, "--json", "-")
    found = json.loads(shown)
    assert found["rates_rps"] == {ISSUE: 40.0, VALIDATE: 2000.0}
    assert found["cores"]["keystone"]["value"] == pytest.approx(36.0)
    assert (found["workers"]["value"], found["nodes"]["value"]) == (51, 5)
    assert found["demands"][0]["cpu_ms"]["keystone"]["value"] == pytest.approx(240.0)
    assert found["assumptions"]
    code, _, told = command("--logins", "40/s", "--lab", "demo", "--run", "latest")
    assert code == 2
    assert "give one of the two" in told


def test_a_run_that_is_named_twice_is_refused_and_does_not_count_as_two(command) -> None:
    run_id = run(1, 0.0, WITHOUT_NOISE).run_id
    code, shown, told = command("--logins", "40/s", "--run", "latest", "--run", run_id)
    assert (code, shown) == (2, "")
    assert f"run {run_id} is given twice" in told


def test_the_command_asks_for_the_cores_of_a_node_if_the_hosts_differ(command, tmp_path):
    shares, cores = {"node-1": 0.5, "node-2": 0.5}, {"node-1": 32, "node-2": 16}
    with Store.open(tmp_path) as store:
        store.begin(over_ssh(run(2, 0.0, WITHOUT_NOISE), shares, cores))
    code, shown, told = command("--logins", "40/s")
    assert (code, shown) == (2, "")
    assert "give --cores-per-node" in told
    code, _, _ = command("--logins", "40/s", "--cores-per-node", "16")
    assert code == 0


def test_a_damaged_run_is_left_out_and_named(command, tmp_path):
    with Store.open(tmp_path) as store:
        store.begin(run(2, 0.0, WITHOUT_NOISE))
        newest, older = store.every()
    with closing(sqlite3.connect(tmp_path / "results.db")) as database, database:
        database.execute("UPDATE trials SET body = '{' WHERE run_id = ?", (newest.run_id,))
    code, shown, told = command("--logins", "40/s", "--json", "-")
    assert code == 0
    assert json.loads(shown)["demands"][0]["runs"] == [older.run_id]
    assert f"'{newest.run_id}' cannot be read" in told


@pytest.mark.processes
def test_boots_take_what_their_logins_and_validations_take(command, tmp_path):
    code, _, told = command("--boots", "5/s")
    assert code == 3
    assert "no stored run says what a boot asks of Keystone" in told
    with Store.open(tmp_path) as store:
        store.begin(boots((1, 3), (25, 75)))  # tokens kept, new tokens
    code, shown, _ = command("--boots", "5/s", "--logins", "60/min", "--json", "-")
    assert code == 0
    found = json.loads(shown)
    assert found["rates_rps"] == {ISSUE: 6.0, VALIDATE: 15.0}
    assert found["cores"]["keystone"]["value"] == pytest.approx((6 * 0.240 + 15 * 0.006) / 0.6)
    assert (found["boots"]["logins"], found["boots"]["validations"]) == (1.0, 3.0)
    assert found["boots"]["counted"] == 25
    code, shown, _ = command("--boots", "300/min")
    assert code == 0
    assert "5/s boots of servers" in shown
    assert "(middleware cache local, service tokens on)" in shown
    assert "its cheapest asked for 0.160 requests" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("validate: fast", "'fast' is not a rate"),
        ("validate: 1/s\nvalid: 40/s", ":2: no scenario 'valid'"),
        ("- 40/s", "must be SCENARIO: RATE"),
        ("validate: 1/s\nissue: 1/s", ":2: issue is given twice"),
    ],
)
def test_a_wrong_mix_is_refused_with_its_place(command, tmp_path, text, why):
    file = tmp_path / "mix.yaml"
    file.write_text(text)
    code, _, told = command("--logins", "40", "--mix", str(file))
    assert code == 2
    assert f"{file}:" in told
    assert why in told
