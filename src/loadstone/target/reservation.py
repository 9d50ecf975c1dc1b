"""Targets that are reserved, so that no other measurement falsifies one at the same time."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from loadstone.cloud.cloud import Endpoint
from loadstone.system import paths
from loadstone.target.local_service import lab_at

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from loadstone.lab.measurement import ActiveMeasurement


def reserved(endpoint: Endpoint, *, anyway: bool) -> "AbstractContextManager[ActiveMeasurement]":
    """Reserve a target that was not chosen as a lab, by its host and port."""
    from loadstone.lab.measurement import measuring

    return measuring(_reservations(endpoint), endpoint.place, anyway=anyway, shares=True)


def measured_by(endpoint: Endpoint) -> tuple[str, ...]:
    """Return who measures the service at an endpoint now, from this machine."""
    from loadstone.lab import measurement

    return measurement.measured_by(_reservations(endpoint), endpoint.place)


def _reservations(endpoint: Endpoint) -> Path:
    """Return the folder of the lab at an endpoint, else the one that stands for host and port."""
    lab = lab_at(endpoint)
    return paths.targets() / quote(endpoint.place, safe="") if lab is None else lab.folder
