"""The queries of `--monitor prometheus=URL`, evaluated by Prometheus itself (promtool)."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from loadstone.monitor.sources.prometheus import read_queries

PROMTOOL = shutil.which("promtool")


@pytest.mark.processes
@pytest.mark.skipif(PROMTOOL is None, reason="apt-get install prometheus")
def test_servers_of_haproxy_that_are_not_up_have_no_limit(tmp_path: Path) -> None:
    (query,) = (one.query for one in read_queries() if one.metric == "sessions_limit")
    names = {name: f'instance="lb:8404",proxy="api",server="{name}"' for name in ("a", "b")}
    series = {f"haproxy_server_limit_sessions{{{names[name]}}}": "8" for name in names}
    for name, is_up in (("a", 1), ("b", 0)):
        series[f'haproxy_server_status{{{names[name]},state="UP"}}'] = str(is_up)
        series[f'haproxy_server_status{{{names[name]},state="DOWN"}}'] = str(1 - is_up)
    expected = {"labels": f"haproxy_server_limit_sessions{{{names['a']}}}", "value": 8}
    case = {
        "input_series": [{"series": key, "values": value} for key, value in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "0m", "exp_samples": [expected]}],
    }
    path = tmp_path / "case.yml"
    path.write_text(yaml.safe_dump({"tests": [case]}))
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
