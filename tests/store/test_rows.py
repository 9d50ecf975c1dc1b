import json
from dataclasses import replace

from made_runs import SAMPLES
from made_workloads import steps, workload
from realistic import keystone

from loadstone.report import html
from loadstone.report.sections.run import report_of
from loadstone.result.task_workload import TaskWorkload
from loadstone.store import codec, rows
from loadstone.store.store import Store
from loadstone.system.redaction import MASK, Redaction

RESULT, _ = keystone()
SECRET = "s3cret-canary"
# Settings that share their names with Loadstone's own fields.
GIVEN = TaskWorkload(
    scenario={"Plugin.scenario": {"name": SECRET, "kind": [SECRET], "state": {"unit": SECRET}}},
    runner={"constant": {"times": 9, "action": SECRET}},
    hooks=({"action": {"sys_call": f"mysql {SECRET}"}, "trigger": {"event": {"name": SECRET}}},),
)


def test_a_known_secret_is_masked_wherever_a_workload_has_it():
    measurement = steps(workload(SAMPLES[0, 3], given=GIVEN), [GIVEN.runner])
    redaction = Redaction(frozenset({SECRET}))
    found = (
        rows.measurement_row("run", 0, measurement),
        rows.trial_row("run", 0, measurement.trials[0], measurement),
    )
    bodies = [rows.hidden(row, redaction)["body"] for row in found]
    assert [SECRET in row["body"] for row in found] == [True, True]
    assert [SECRET in body for body in bodies] == [False, False]
    assert json.loads(bodies[0])["workload"]["hooks"][0]["action"]["sys_call"] == f"mysql {MASK}"
    assert json.loads(bodies[0])["scenario"] == measurement.scenario


def test_a_workload_and_its_runner_come_back_as_they_were():
    measurement = steps(workload(SAMPLES[0, 3], given=GIVEN), [{"rps": {"rps": 2.5}}])
    assert codec.loads(type(measurement), codec.dumps(measurement)).workload == GIVEN
    (trial,) = measurement.trials
    assert codec.loads(type(trial), codec.dumps(trial)).runner == {"rps": {"rps": 2.5}}


def test_a_name_that_is_not_utf_8_can_be_stored(tmp_path):
    run = replace(RESULT, command="loadstone run t\udcff.yaml", title="\udcff\0")
    with Store.open(tmp_path) as store:
        store.begin(run)
        found = store.get(run.run_id)
    assert found.command == "loadstone run t\N{REPLACEMENT CHARACTER}.yaml"
    html.write((report_of(found),), tmp_path / "page.html")
