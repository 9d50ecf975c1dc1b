"""A client that loads from two processes until it is killed: `fleet_client.py PORT`."""

import sys

from known_service import ISSUE

from loadstone.engine.fleet import connect
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.progress import Progress
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Plan


def main(port: int) -> None:
    limits = Limits(max_rate_rps=5000.0, load_s=60.0)
    plan = Plan(Origin("http", "127.0.0.1", port), (ISSUE,), OpenLoad(60.0, 40.0), limits=limits)

    def watch(progress: Progress) -> bool:
        if progress.ok:
            print("loads", flush=True)
        return True

    with connect.opened(LocalFleet(2)) as fleet:
        fleet.run(plan, watch)


if __name__ == "__main__":
    main(int(sys.argv[1]))
