"""What the script on another machine prints, without ssh."""

import io
from types import SimpleNamespace

import pytest

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.ssh import RoleCpu, Ssh, block_readings, own_kernel

pytestmark = pytest.mark.pure
FIELDS_BEFORE_CPU = 11


def stat(pid: int, cpu_s: float) -> str:
    """A line of /proc/PID/stat."""
    ticks = str(round(100 * cpu_s))
    fields = ["S", *["0"] * (FIELDS_BEFORE_CPU - 1), ticks, "0", *["0"] * 6, str(pid)]
    return f"{pid} (a name) {' '.join(fields)}"


def block(processes: dict[int, float], commands: dict[int, str] | None = None) -> str:
    lines = ["@processes", *(stat(*one) for one in processes.items())]
    if commands is not None:
        lines += ["@commands", *(f"{pid} {command}" for pid, command in commands.items())]
    return "\n".join(lines) + "\n"


def keystone_s(cpu: RoleCpu, text: str) -> float:
    found = {one.source: one.value for one in block_readings(text, "node", cpu)}
    return found["keystone@node"]


OLD = {10: "keystone-wsgi-public", 11: "sleep"}


def test_cpu_time_before_a_process_is_known_by_its_command_is_counted():
    cpu = RoleCpu()
    assert keystone_s(cpu, block({10: 5.0, 11: 7.0}, OLD)) == 0
    assert keystone_s(cpu, block({10: 6.0, 11: 8.0})) == 1.0
    # Restarted: of the new process, only the CPU time is known for some seconds.
    assert keystone_s(cpu, block({11: 8.0, 12: 0.5})) == 1.0
    assert keystone_s(cpu, block({11: 8.0, 12: 1.5}, {11: "sleep", 12: OLD[10]})) == 2.5
    assert keystone_s(cpu, block({11: 9.0, 12: 2.0})) == 3.0


def test_a_block_that_came_late_is_not_lost_with_its_command_lines():
    source = Ssh("node")
    source._process = object()  # it has been started
    source._blocks.put(block({10: 5.0}, OLD))
    source._blocks.put(block({10: 6.0}))
    [reading] = source.read()
    assert (reading.source, reading.value) == ("keystone@node", 1.0)


def test_this_machine_is_not_counted_a_second_time():
    source = Ssh("localhost")
    source._process = object()
    source._blocks.put(f"@kernel\n{own_kernel()}\n{block({10: 5.0}, OLD)}")
    with pytest.raises(Unreadable, match="it is this machine, which is watched already"):
        tuple(source.read())


def test_a_lost_connection_is_reported_and_opened_again(monkeypatch):
    connections = iter(([block({10: 5.0}, OLD), None], [block({10: 6.0}, OLD)]))

    def start(source: Ssh) -> SimpleNamespace:
        for one in next(connections):
            source._blocks.put(one)
        stderr = io.StringIO("Connection to node closed by remote host.\n")
        end = {"terminate": lambda: None, "wait": lambda _: None}
        return SimpleNamespace(stdout=None, stderr=stderr, **end)

    monkeypatch.setattr(Ssh, "_start", start)
    source = Ssh("node")
    with pytest.raises(Unreadable, match=r"Connection to node closed by remote host\."):
        tuple(source.read())
    [reading] = source.read()
    assert (reading.source, reading.value) == ("keystone@node", 1.0)
