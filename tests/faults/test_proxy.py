"""The process that stands for the network of a node."""

import subprocess
from dataclasses import replace

import pytest

from loadstone.faults.carried import HELD_S
from loadstone.faults.inject import proxy_command
from loadstone.faults.sentence import read
from loadstone.lab.ports import choose

SENTENCES = (
    "disconnect network on one node",
    "delay network on one node by 100 ms",
    "lose 10% of packets on one node",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_it_lasts_as_long_as_its_fault_is_held(sentence):
    held = replace(read(sentence), hold_s=HELD_S)
    assert float(proxy_command(held, 1, 2)[-1]) > HELD_S


@pytest.mark.processes
@pytest.mark.parametrize("sentence", SENTENCES)
def test_it_ends_by_itself_if_nobody_is_left_to_end_it(sentence):
    *command, _ = proxy_command(read(sentence), choose(), 9)
    assert subprocess.run((*command, "0.2"), check=False, timeout=60).returncode == 0
