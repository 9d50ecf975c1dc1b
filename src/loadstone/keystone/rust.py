"""What Keystone in Rust (openstack-experimental/keystone) does not serve of the scenarios."""

from collections.abc import Collection

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.keystone.scenarios.model import Scenario
from loadstone.plan.mix import is_mix, weights_of

# By the names on the command line: its answers are not those of Keystone in Python.
UNSERVED = (
    "app-credential",  # 401: the method is not served
    "app-credential-life",  # 400 without roles
    "catalog",  # 404
    "group-life",  # 404
)


def require_served(scenario: Scenario, unserved: Collection[str], about: str) -> None:
    """Refuse a scenario, or a mix with one, that the service does not have.

    `about` begins the message.
    """
    names = weights_of(scenario.name) if is_mix(scenario.name) else (scenario.name,)
    known = {SCENARIOS[name].name: name for name in unserved}
    lacking = [known.get(name, name) for name in names if name in unserved or name in known]
    if lacking:
        raise InvalidInput(
            f"{about}Keystone in Rust does not serve {', '.join(lacking)}; choose another "
            "scenario, or implementation=python"
        )
