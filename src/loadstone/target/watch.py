"""Reads resources of a target and its machine while it is measured."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from loadstone.cloud.cloud import Endpoint
from loadstone.cloud.permission import is_loopback
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.resources import Watch
from loadstone.diagnosis.service import MeasuredService
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.service import Members
from loadstone.monitor.source import Source
from loadstone.monitor.sources.open import open_sources
from loadstone.system.say import Say
from loadstone.target.local_service import members_at

if TYPE_CHECKING:
    from loadstone.lab.deployment import Deployment


def watching(
    lab: "Deployment", say: Say, more: tuple[str, ...] = ()
) -> AbstractContextManager[Watch]:
    """Read resources of this machine and of a lab until the end; say what cannot be read."""
    from loadstone.lab import deployment

    name = lab.name  # read each time: parts may have been restarted
    sources = open_sources(lambda: deployment.load(name).members(), lab.statistics(), more)
    return watching_sources(sources, lab.setup(), say)


@contextmanager
def watching_service(
    endpoint: Endpoint, say: Say, more: tuple[str, ...], service: MeasuredService
) -> Iterator[tuple[Members, Watch]]:
    """Read resources of this machine and of a service that was not chosen as a lab."""
    members = members_at(endpoint)
    is_elsewhere = not is_loopback(endpoint.host, endpoint.port)
    setup = Setup(is_elsewhere=is_elsewhere, service=service)
    with watching_sources(open_sources(members, (), more), setup, say) as watch:
        yield members, watch


@contextmanager
def watching_sources(sources: Sequence[Source], setup: Setup, say: Say) -> Iterator[Watch]:
    """Read sources until the end; say what cannot be read."""
    with Monitor(sources) as monitor:
        monitor.sample()
        for source in monitor.missing:
            say(str(source))
        yield Watch(monitor, setup)
