"""The search methods by name."""

from collections.abc import Callable
from functools import partial

from loadstone.errors import InvalidInput
from loadstone.search.bisect import bisect
from loadstone.search.meter import meter
from loadstone.search.model import Strategy
from loadstone.search.published.closed_peak import closed_loop_peak
from loadstone.search.published.isp_ras import Reading, isp_ras_2015
from loadstone.search.published.mlrsearch import mlrsearch
from loadstone.search.published.step_concurrency import step_concurrency
from loadstone.search.settings import Settings

STRATEGIES: dict[str, Callable[[Settings], Strategy]] = {
    "meter": meter,
    "bisect": bisect,
    "isp-ras-2015": partial(isp_ras_2015, reading=Reading()),
    "isp-ras-2015-s-per-min": partial(isp_ras_2015, reading=Reading("s/min")),
    "isp-ras-2015-ms-per-s": partial(isp_ras_2015, reading=Reading("ms/s")),
    "isp-ras-2015-as-printed": partial(isp_ras_2015, reading=Reading("s/min", trial_s=120.0)),
    "isp-ras-2015-unconfirmed": partial(isp_ras_2015, reading=Reading(confirms=False)),
    "closed-loop-peak": closed_loop_peak,
    "step-concurrency": step_concurrency,
    "mlrsearch": mlrsearch,
}
DEFAULT = "meter"


def strategy(name: str, settings: Settings) -> Callable[[], Strategy]:
    """Give what makes a search from the start."""
    if name not in STRATEGIES:
        raise InvalidInput(f"method {name!r} is not known; known are {', '.join(STRATEGIES)}")
    return partial(STRATEGIES[name], settings)
