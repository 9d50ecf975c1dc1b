"""Golden files: what Loadstone prints, in tests/golden. `make golden` rewrites them."""

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "golden"
UPDATE = "--golden-update"
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{6,}(?:e[+-]?\d+)?(?![\w.])")

Golden = Callable[[str, dict[str, str]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(UPDATE, action="store_true", help="Only rewrite the golden files.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Update golden files without running other tests."""
    if config.getoption(UPDATE):
        items[:] = [one for one in items if "golden" in getattr(one, "fixturenames", ())]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare titled texts with a golden file, or write it."""

    def compare(name: str, texts: dict[str, str]) -> None:
        path = FOLDER / name
        rendered = "".join(f"{'=' * 8} {title}\n{_clean(text)}\n" for title, text in texts.items())
        if request.config.getoption(UPDATE):
            path.write_text(rendered)
            return
        kept = path.read_text().splitlines() if path.exists() else []
        difference = difflib.unified_diff(kept, rendered.splitlines(), name, "rendered", "", "", 2)
        text = "\n".join(difference)
        assert not text, f"{text}\nIf this is what should be printed: make golden"

    return compare


def _clean(text: str) -> str:
    """Return it without spaces at the ends of lines, numbers to six figures.

    The last digits of a float depend on the machine.
    """
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return NUMBER.sub(lambda number: f"{float(number[0]):.6g}", "\n".join(lines)) + "\n"
