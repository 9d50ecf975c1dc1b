"""What can be loaded, by the command line's names."""

from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN, VALIDATE_TOKEN
from loadstone.keystone.scenarios.model import Scenario

SCENARIOS: dict[str, Scenario] = {
    "issue": ISSUE_TOKEN,
    "validate": VALIDATE_TOKEN,
}

__all__ = ["SCENARIOS", "Scenario"]
