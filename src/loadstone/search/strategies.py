"""The search methods by name."""

from collections.abc import Callable
from functools import partial

from loadstone.errors import InvalidInput
from loadstone.search.bisect import bisect
from loadstone.search.meter import meter
from loadstone.search.model import Strategy
from loadstone.search.settings import Settings

STRATEGIES: dict[str, Callable[[Settings], Strategy]] = {
    "meter": meter,
    "bisect": bisect,
}
DEFAULT = "meter"


def strategy(name: str, settings: Settings) -> Callable[[], Strategy]:
    """Give what makes a search from the start."""
    if name not in STRATEGIES:
        raise InvalidInput(f"method {name!r} is not known; known are {', '.join(STRATEGIES)}")
    return partial(STRATEGIES[name], settings)
