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
from loadstone.search.settings import LONGEST_BUDGET_S, SearchSettings

# There is no result before the first trial of these, and all of them take long.
PROCEDURES = {"isp-ras-2015": SCRIPT, "isp-ras-2015-text": TEXT}

STRATEGIES: dict[str, Callable[[SearchSettings], Strategy]] = {
    "meter": meter,
    "bisect": bisect,
    **{name: partial(isp_ras_2015, procedure=one) for name, one in PROCEDURES.items()},
    "closed-loop-peak": closed_loop_peak,
    "step-concurrency": step_concurrency,
    "mlrsearch": mlrsearch,
}
DEFAULT = "meter"

# Methods that use a trial's verdict; the published ones have their own rules.
JUDGE_OBJECTIVES = ("meter", "bisect")


def strategy(name: str, settings: SearchSettings) -> Callable[[], Strategy]:
    """Return a factory of searches."""
    if name not in STRATEGIES:
        raise InvalidInput(f"method {name!r} is not known; known are {', '.join(STRATEGIES)}")
    if settings.has_objectives and name not in JUDGE_OBJECTIVES:
        raise InvalidInput(
            f"--method {name} ignores latency objectives; use "
            f"{' or '.join(JUDGE_OBJECTIVES)}, or leave --objective out"
        )
    if settings.curve_s and name not in JUDGE_OBJECTIVES:
        raise InvalidInput(
            f"--method {name} measures no --curve; use {' or '.join(JUDGE_OBJECTIVES)}, or leave "
            "--curve out"
        )
    if name == "mlrsearch" and settings.ceiling_rps <= LOWEST_RPS:
        raise InvalidInput(
            f"--max-rate {settings.ceiling_rps:g} is too low for --method mlrsearch, which begins "
            f"at {LOWEST_RPS:g}/s; try --max-rate {2 * LOWEST_RPS:g}, or --method meter"
        )
    procedure = PROCEDURES.get(name)
    if procedure is not None and settings.budget_s < procedure.trial_s:
        whole_s = procedure.most_trials * procedure.trial_s
        raise InvalidInput(
            f"--budget {settings.budget_s:.0f}s is less than one trial of {name} "
            f"({procedure.trial_s:.0f} s), and it takes up to {procedure.most_trials}; "
            f"try --budget {min(whole_s, LONGEST_BUDGET_S) / 60:.0f}m"
        )
    return partial(STRATEGIES[name], settings)
