"""What docs/tasks.md says that an iteration of each scenario sends."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
ROW = re.compile(r"^\| `([A-Z]\w+\.\w+)` \| ((?:`[A-Z]+ /\S*`(?:, )?)+) \|$", re.MULTILINE)


def stated() -> dict[str, list[str]]:
    """Give the requests by scenario: "DELETE /users/ID"."""
    return {
        name: re.findall(r"`([^`]+)`", requests) for name, requests in ROW.findall(PAGE.read_text())
    }
