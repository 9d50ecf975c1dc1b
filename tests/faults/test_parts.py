"""Which parts of a deployment a sentence means."""

from pathlib import Path
from random import Random

import pytest

from loadstone.errors import InvalidInput
from loadstone.faults import parts
from loadstone.faults.parts import FAULT, hit
from loadstone.faults.sentence import read
from loadstone.lab import processes
from loadstone.lab.processes import Command, Process
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record

KEYSTONE = ("mariadb", "uwsgi-1", "uwsgi-2", "haproxy")
CLOUD = (
    *("compute-database", "compute-memcached", "epmd", "rabbitmq", "placement", "glance"),
    *("neutron", "nova-conductor", "nova-scheduler", "nova-compute", "nova"),
)


def deployment(*parts: str) -> DeploymentState:
    records = tuple(
        Record(part, Process(number, 1), 15, ()) for number, part in enumerate(parts, 1)
    )
    return DeploymentState(
        "c", "r", DeploymentPhase.RUNNING, processes.boot_id(), (), records=records
    )


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        # As OpenStack's reliability tests of Nova have them.
        ("kill rabbitmq service on one node", {"rabbitmq"}),
        ("reboot one node with rabbitmq service", {"rabbitmq"}),
        ("kill mysql service on one node", {"mariadb", "compute-database"}),
        ("restart keystone service on one node", {"uwsgi-1"}),
        (
            "disconnect management network on one node with nova-scheduler service",
            {"nova-scheduler"},
        ),
        ("disconnect storage network on one node with nova-compute service", {"nova-compute"}),
        # Names as os-faults has them.
        ("freeze nova-api service for 3 seconds", {"nova"}),
        ("restart neutron-server service", {"neutron"}),
        ("reboot one node", {"uwsgi-1"}),
    ],
)
def test_a_sentence_means_these_parts(sentence: str, parts: set[str]) -> None:
    found = hit(read(sentence), deployment(*KEYSTONE, *CLOUD), Random(0))
    assert {record.part for record in found} == parts


def test_keystone_in_rust_is_keystone() -> None:
    for sentence in ("kill keystone service", "reboot one node"):
        found = hit(read(sentence), deployment("mariadb", "opa", "rust-keystone"), Random(0))
        assert [record.part for record in found] == ["rust-keystone"]


@pytest.mark.processes
def test_a_part_that_starts_again_leaves_the_processes_of_other_faults(tmp_path: Path) -> None:
    def started(variables: dict[str, str]) -> Process:
        command = Command(("sleep", "60"), tmp_path / "log", tmp_path, variables)
        return processes.start(command)

    forgotten, of_a_fault = started({}), started({FAULT: "mark"})
    try:
        assert parts._unknown(tmp_path, deployment()) == (forgotten,)
    finally:
        processes.end((forgotten, of_a_fault), grace_s=0.0)


def test_a_service_that_the_lab_lacks_is_said_with_its_parts() -> None:
    with pytest.raises(InvalidInput, match=r"has no rabbitmq; its parts are mariadb, uwsgi-1"):
        hit(read("kill rabbitmq service"), deployment(*KEYSTONE), Random(0))
