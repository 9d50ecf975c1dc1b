"""The search methods by name."""

from collections.abc import Callable
from functools import partial

from loadstone.errors import InvalidInput
from loadstone.search.bisect import bisect
from loadstone.search.meter import meter
from loadstone.search.model import Strategy
from loadstone.search.published.closed_peak import closed_loop_peak
from loadstone.search.published.isp_ras import SCRIPT, TEXT, isp_ras_2015
from loadstone.search.published.mlrsearch import LOWEST_RPS, mlrsearch
from loadstone.search.published.step_concurrency import step_concurrency
from loadstone.search.settings import SearchSettings

STRATEGIES: dict[str, Callable[[SearchSettings], Strategy]] = {
    "meter": meter,
    "bisect": bisect,
    "isp-ras-2015": partial(isp_ras_2015, procedure=SCRIPT),
    "isp-ras-2015-text": partial(isp_ras_2015, procedure=TEXT),
    "closed-loop-peak": closed_loop_peak,
    "step-concurrency": step_concurrency,
    "mlrsearch": mlrsearch,
}
DEFAULT = "meter"

# Methods that use a trial's verdict; the published ones have their own rules.
JUDGE_OBJECTIVES = ("meter", "bisect")

# Seconds of load of the first trial of a published method, before which there is no result.
LEAST_BUDGET_S = {"isp-ras-2015": SCRIPT.trial_s, "isp-ras-2015-text": TEXT.trial_s}


def strategy(name: str, settings: SearchSettings) -> Callable[[], Strategy]:
    """Return a factory of searches."""
    if name not in STRATEGIES:
        raise InvalidInput(f"method {name!r} is not known; known are {', '.join(STRATEGIES)}")
    if settings.has_objectives and name not in JUDGE_OBJECTIVES:
        raise InvalidInput(
            f"--method {name} ignores latency objectives; use "
            f"{' or '.join(JUDGE_OBJECTIVES)}, or leave --objective out"
        )
    if name == "mlrsearch" and settings.ceiling_rps <= LOWEST_RPS:
        raise InvalidInput(
            f"--max-rate {settings.ceiling_rps:g} is too low for --method mlrsearch, which begins "
            f"at {LOWEST_RPS:g}/s; try --max-rate {2 * LOWEST_RPS:g}, or --method meter"
        )
    least_s = LEAST_BUDGET_S.get(name, 0.0)
    if settings.budget_s < least_s:
        raise InvalidInput(
            f"--budget {settings.budget_s:.0f}s is less than one trial of {name} "
            f"({least_s:.0f} s), and it takes up to 13; try --budget {13 * least_s / 60:.0f}m"
        )
    return partial(STRATEGIES[name], settings)
