"""A trial's offered rate, verdict and failures, as tables show them."""

from loadstone.analysis.model import Trial, TrialState
from loadstone.report.figures import MISSING, rate
from loadstone.search.low_load import is_low_load


def offered(trial: Trial) -> str:
    """Return a trial's offered rate; a dash for closed loops."""
    return MISSING if trial.rate_rps is None else rate(trial.rate_rps)


def verdict(trial: Trial) -> str:
    """Return a trial's verdict; a trial without a constant rate has none."""
    if is_without_rate(trial):
        return "low load" if is_low_load(trial) else "saturated"
    return trial.verdict.state.value


def is_without_rate(trial: Trial) -> bool:
    """Return whether no constant rate was offered, so that there is no verdict."""
    return trial.rate_rps is None and trial.verdict.state is TrialState.UNDECIDED


def is_metered(trial: Trial) -> bool:
    """Return whether the trial measured the throughput of a saturated service."""
    return is_without_rate(trial) and not is_low_load(trial)


def errors(trial: Trial) -> str:
    """Return the number of failures and the most frequent kind."""
    if not trial.stats.errors:
        return "0"
    kind, count = trial.stats.errors[0]
    total = trial.stats.failed
    return f"{total} ({kind})" if total == count else f"{total} ({kind} {count}, ...)"
