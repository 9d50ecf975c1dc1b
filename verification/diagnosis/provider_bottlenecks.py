"""Keycloaks that are limited on purpose, and what is named first.

    python -m verification.diagnosis.provider_bottlenecks

Each target is a Keycloak of the lab whose limit is known by construction. Logins load it, after
some seconds that are not counted, because the JVM compiles meanwhile. The table tells how often
which finding came first, beside the one that is right. The quota of CPU time needs root.

The smallest pool of connections with which Keycloak starts has two. Beside a near database that is
enough for what two cores answer, so that Keycloak talks to a database that is some milliseconds
away, as in another availability zone.
"""

import argparse
import collections
import contextlib
import functools
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

from loadstone.diagnosis.resources import Resources
from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import compose, settings
from loadstone.lab.ports import HOST
from loadstone.lab.provider.keycloak import KeycloakDatabase
from loadstone.oidc.prepare import PreparedOidc, prepare
from loadstone.oidc.scenarios import named
from loadstone.plan.load import ClosedLoad, Load, OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.target.connect import issuer_of_lab
from loadstone.target.measured import measured_target
from verification.diagnosis.quota import quota

HALF_A_CORE = 0.5
AWAY_S = 0.004  # of the far database, in each direction
MOST_S = 3600  # until the delay ends by itself, if nobody ends it
WARM_UP_S = 20.0


def half_a_core(running: Deployment) -> contextlib.AbstractContextManager[None]:
    """Limit the processes of a deployment to half a core of CPU time."""
    return quota(running.pids(), HALF_A_CORE)


@contextlib.contextmanager
def far_database() -> Iterator[None]:
    """Let each Keycloak that starts within the block reach its database through a delay."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def delayed(port: int) -> int:
            near = free_port()
            words = (str(near), str(port), str(AWAY_S), str(MOST_S))
            proxy = subprocess.Popen((sys.executable, "-m", "loadstone.faults.proxy", *words))
            stack.callback(proxy.wait)
            stack.callback(proxy.terminate)
            return near

        def far(kind: str, url: str, user: str, password: str) -> KeycloakDatabase:
            place = re.search(rf"//{re.escape(HOST)}:(\d+)/", url)
            assert place is not None
            through = f"//{HOST}:{delayed(int(place[1]))}/"
            return KeycloakDatabase(kind, url.replace(place[0], through), user, password)

        stack.enter_context(mock.patch.object(compose, "KeycloakDatabase", far))
        yield


def free_port() -> int:
    """Return a port on loopback that nothing listens on."""
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment whose limit is known, and the load that shows it."""

    right: str
    settings: tuple[str, ...] = ()
    load: Load = field(default_factory=lambda: ClosedLoad(8, duration_s=12.0))
    change: Callable[[Deployment], contextlib.AbstractContextManager[None]] = field(
        default=lambda _: contextlib.nullcontext()
    )
    around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


TARGETS = {
    "a quota of half a core": Target("service-cpu", change=half_a_core),
    "a heap that is too small": Target("jvm-heap", ("heap-mb=128",)),
    "a pool of two connections": Target(
        "connection-pool",
        ("database=mariadb", "db-pool=2", "hash=pbkdf2-sha512", "hash-iterations=1000"),
        around=far_database,
    ),
    "nothing": Target("no-bottleneck", load=OpenLoad(1.0, 12.0)),
}


def loaded(prepared: PreparedOidc, load: Load) -> int:
    """Send a load; return how many of its logins ended well."""
    plan = prepared.plan(load, Limits(64, drain_s=30.0), Placement())
    samples = gate.run(plan, Allowance(200.0, 120.0), lambda _: True).samples
    good = sum(1 for code in samples.outcome if Outcome(code) is Outcome.OK)
    return good // len(prepared.actions)


def rounds(name: str, times: int) -> Iterator[Resources]:
    """Start a target and yield what was seen each time; the target is gone afterwards."""
    target, lab = TARGETS[name], f"verify-{os.getpid()}"
    words = ("service=keycloak", "realm-users=8", *target.settings)
    with contextlib.ExitStack() as stack:
        stack.enter_context(target.around())
        chosen = settings.read(map(settings.split, words))
        running = deployment.up(lab, chosen, lambda _: None, owned=True)
        stack.callback(deployment.down, lab, purge=True)
        choice = issuer_of_lab(lab)
        assert choice is not None
        with measured_target(choice, lambda _: None) as measured, target.change(running):
            assert measured.provider is not None
            assert measured.watch is not None
            prepared = prepare(named("oidc-login"), measured.provider, lambda _: None)
            loaded(prepared, ClosedLoad(4, duration_s=WARM_UP_S))
            monitor = measured.watch.monitor
            for _ in range(times):
                since_s = monitor.sample()
                count = loaded(prepared, target.load)
                monitor.sample()
                yield measured.watch.resources(
                    monitor.metrics(since_s),
                    count,
                    None,
                    is_generator_valid=True,
                    is_overloaded=False,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--target", choices=list(TARGETS), action="append", help="repeat")
    options = parser.parse_args()
    print("| limited by | right finding | named first | logins per second |")
    print("|---|---|---|---|")
    for name in options.target or TARGETS:
        counts: collections.Counter[str] = collections.Counter()
        rates: list[float] = []
        for seen in rounds(name, options.times):
            first = seen.findings[0].id
            counts[first] += 1
            rates.append(seen.observation.throughput_rps)
            figures = dict(seen.observation.figures)
            kept = ("gc_pause_share", "heap_live_share", "pool_waiting", "cores_wanted")
            shown = ", ".join(f"{key} {figures.get(key, -1):.2f}" for key in kept)
            print(f"  {first}: {seen.bottleneck.sentence} [{shown}]", file=sys.stderr, flush=True)
        right = TARGETS[name].right
        shown = ", ".join(f"`{key}` {count}" for key, count in counts.most_common())
        span = f"{min(rates):.3g} to {max(rates):.3g}"
        print(f"| {name} | `{right}`: {counts[right]} of {options.times} | {shown} | {span} |")


if __name__ == "__main__":
    main()
