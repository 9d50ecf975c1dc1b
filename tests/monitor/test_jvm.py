from pathlib import Path

import pytest

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.cpu_quota import CpuQuota, quota_of
from loadstone.monitor.sources.jvm import readings
from loadstone.monitor.sources.open import open_source

# Of Keycloak 26.7.3 after some logins; a part of its 1,240 lines.
PAGE = """\
# TYPE jvm_memory_used_bytes gauge
jvm_memory_used_bytes{area="nonheap",id="Metaspace"} 1.61315264E8
jvm_memory_used_bytes{area="heap",id="G1 Survivor Space"} 1.6252928E7
jvm_memory_used_bytes{area="heap",id="G1 Old Gen"} 1.04690208E8
jvm_memory_used_bytes{area="heap",id="G1 Eden Space"} 6.815744E7
# TYPE jvm_memory_max_bytes gauge
jvm_memory_max_bytes{area="heap",id="G1 Survivor Space"} -1.0
jvm_memory_max_bytes{area="heap",id="G1 Old Gen"} 5.36870912E8
jvm_memory_max_bytes{area="heap",id="G1 Eden Space"} -1.0
jvm_gc_pause_seconds_count{action="end of minor GC",cause="G1 Evacuation Pause",gc="G1 Young Generation"} 54.0
jvm_gc_pause_seconds_sum{action="end of minor GC",cause="G1 Evacuation Pause",gc="G1 Young Generation"} 1.573
jvm_gc_pause_seconds_sum{action="end of major GC",cause="Metadata GC Threshold",gc="G1 Old Generation"} 0.427
process_cpu_time_ns_total 5.942E10
agroal_active_count{datasource="default"} 1.0
agroal_available_count{datasource="default"} 10.0
agroal_blocking_time_total_milliseconds{datasource="default"} 921.0
http_server_requests_seconds_count{method="GET",outcome="SUCCESS",status="200",uri="/realms/lab"} 7.0
"""  # noqa: E501 (as published)


def test_the_page_of_a_jvm_becomes_heap_pauses_and_pool() -> None:
    found = {one.metric: one.value for one in readings("jvm", PAGE)}
    assert found["heap_used_bytes"] == 1.6252928e7 + 1.04690208e8 + 6.815744e7
    assert found["heap_limit_bytes"] == 512 * 2**20  # spaces without a limit do not count
    assert found["gc_pause_seconds_total"] == pytest.approx(2.0)
    assert found["cpu_seconds_total"] == pytest.approx(59.42)
    assert (found["pool_active"], found["pool_idle"]) == (1.0, 10.0)
    assert found["pool_wait_seconds_total"] == pytest.approx(0.921)
    assert "pool_waiting" not in found


def test_what_is_no_page_of_metrics_is_named() -> None:
    assert not list(readings("jvm", "<html>not found</html>"))
    with pytest.raises(Unreadable, match="not in Prometheus' format"):
        list(readings("jvm", 'jvm_memory_used_bytes{area="heap" nonsense\n'))


def test_it_is_named_by_its_url() -> None:
    assert open_source("jvm://127.0.0.1:9000/metrics?name=jvm-1").name == "jvm-1"


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of control groups, and a process in the inner one of two."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    read_text = Path.read_text

    def fake(path: Path, *rest: object) -> str:
        known = path == Path("/proc/7/cgroup")
        return "0::/outer/inner\n" if known else read_text(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", fake)
    return inner


def test_the_smallest_quota_up_the_tree_counts(group: Path, tmp_path: Path) -> None:
    assert quota_of(7, tmp_path) is None
    (group / "cpu.max").write_text("max 100000\n")
    assert quota_of(7, tmp_path) is None
    (group.parent / "cpu.max").write_text("150000 100000\n")
    assert quota_of(7, tmp_path) == CpuQuota(str(group.parent), 1.5)
    (group / "cpu.max").write_text("50000 100000\n")
    assert quota_of(7, tmp_path) == CpuQuota(str(group), 0.5)


def test_a_process_that_has_ended_has_no_quota(tmp_path: Path) -> None:
    assert quota_of(2**30, tmp_path) is None
