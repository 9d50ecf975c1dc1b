"""Scenarios that Keystone in Rust (openstack-experimental/keystone) does not serve."""

from collections.abc import Collection

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.keystone.scenarios.model import Scenario
from loadstone.plan.mix import is_mix, weights_of

# By the names on the command line. At commit 34d5fb9d (August 2026): no application credentials
# without roles (400) and no tokens for them (401), no roles of groups and in domains (404), no
# scope of a trust (400), no second factor, no check of signatures, no tags, no members of groups,
# no catalog of its own (404).
UNSERVED = (
    *("access-rules-life", "app-credential", "app-credential-life", "catalog", "ec2"),
    *("group-life", "issue-domain", "issue-groups", "login-totp", "oauth2", "oauth2-mtls"),
    *("project-tags", "s3", "validate-access-rules", "validate-app-credential"),
    *("validate-domain", "validate-groups", "validate-trust"),
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
