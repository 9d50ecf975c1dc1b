"""What can be loaded, by the command line's names."""

from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN, VALIDATE_TOKEN
from loadstone.keystone.scenarios.beyond import BEYOND
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.scenarios.tokens import TOKEN_LIFE

SCENARIOS: dict[str, Scenario] = {
    "issue": ISSUE_TOKEN,
    "validate": VALIDATE_TOKEN,
    **TOKEN_LIFE,
    **BEYOND,
}

__all__ = ["SCENARIOS", "Scenario"]
