"""The Grafana dashboard queries metrics that exist, and is what its script writes."""

import importlib.util
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from made_runs import runs

from loadstone.live import metrics, state
from loadstone.live.state import FaultSpan, HostPoint, LiveState
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, TrialRequest

FOLDER = Path(__file__).parents[1] / "dashboards"
PROMTOOL = shutil.which("promtool")
KEPT = json.loads((FOLDER / "loadstone.json").read_text())


def queries():
    found = [target["expr"] for panel in KEPT["panels"] for target in panel.get("targets", ())]
    found += [one["expr"] for one in KEPT["annotations"]["list"]]
    variables = [one["query"] for one in KEPT["templating"]["list"]]
    return found, variables


def everything():
    """The state of a command that has all metrics."""
    now = LiveState(
        *(0.0, 10.0),
        run_ids=("r1",),
        kind="capacity",
        so_far=(Capacity(60.0, 55.0, 65.0, 0.95),),
        faults=(FaultSpan("restart", 1.0),),
    )
    for trial in runs()["search"].measurements[0].trials:
        now = state.ended(now, "r1", trial, None)
    now = replace(now, totals=replace(now.totals, errors=(("status 503", 3),)))
    now = state.began(now, "r1", TrialRequest(OpenLoad(5.0, 1.0), "probe"))
    host = HostPoint("load1", 60.0, 58.0, 0.25, 1, 2, 1.5, "")
    return replace(now, loads=tuple(replace(one, hosts=(host,)) for one in now.loads))


def test_the_file_is_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("make_dashboard", FOLDER / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert make.text() == (FOLDER / "loadstone.json").read_text(), "run dashboards/make.py"


def test_grafanas_own_types_read_it():
    again = json.loads(json.dumps(Dashboard.from_json(KEPT), cls=JSONEncoder))
    assert again == KEPT


def test_every_metric_that_it_queries_is_exposed_and_all_are_shown():
    text = metrics.render(everything())
    exposed = {re.split(r"[ {]", line)[0] for line in text.splitlines() if line[0] != "#"}
    expressions, variables = queries()
    queried = set(re.findall(r"loadstone_\w+", " ".join(expressions + variables)))
    assert queried <= exposed
    counts = {one for one in exposed if one.endswith("_count")}  # of histograms; +Inf has it, too
    assert exposed - counts - queried == set()


def test_its_labels_exist():
    text = metrics.render(everything())
    for label in ("bound", "kind", "verdict", "run_id", "le"):
        assert re.search(rf'[{{,]{label}="', text), label


@pytest.mark.processes
@pytest.mark.skipif(PROMTOOL is None, reason="apt-get install prometheus")
def test_prometheus_understands_its_queries(tmp_path):
    expressions, _ = queries()
    rules = [
        {"record": f"query:{number}", "expr": one.replace("$__rate_interval", "1m")}
        for number, one in enumerate(expressions)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(
        [PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
