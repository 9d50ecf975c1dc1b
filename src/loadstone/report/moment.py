"""Progress lines during a load."""

from collections.abc import Iterable

from loadstone.analysis.model import Trial
from loadstone.engine.progress import Progress
from loadstone.report import figures, trial_figures
from loadstone.search.model import TrialRequest


def now(
    purpose: str,
    progress: Progress,
    *,
    latency_ms: float | None,
    count: int | None = None,
    at_most_s: float | None = None,
    is_paced: bool = True,
) -> str:
    """Return rate, throughput, latency, errors and time left of a phase of load in one line.

    The load ends after `count` iterations, at the latest in `at_most_s` seconds. If it `is_paced`,
    iterations are due at a rate (open loop); otherwise the end of one starts the next.
    """
    elapsed_s = max(progress.elapsed_s, 1e-9)
    ended = progress.ok + progress.failed
    latency = figures.MISSING if latency_ms is None else f"{latency_ms:.0f} ms"
    parts = [
        f"  {purpose}",
        f"{progress.elapsed_s:.0f} s",
        f"{'due' if is_paced else 'started'} {progress.due / elapsed_s:.1f}/s",
        f"done {progress.ok / elapsed_s:.1f}/s",
        f"latency {latency}",
        f"waiting {progress.in_flight}",
        f"errors {progress.failed}",
    ]
    if count is not None:
        parts.append(f"{ended:,} of {count:,}")
    if at_most_s == 0:
        parts.append(f"load over, waiting for {figures.counted(progress.in_flight, 'answer')}")
    elif count is not None and ended:
        about_s = progress.elapsed_s * (count - ended) / ended
        parts.append(f"about {min(about_s, at_most_s or about_s):.0f} s left")
    elif at_most_s is not None:
        parts.append(f"at most {at_most_s:.0f} s left")
    return " | ".join(parts)


def busiest(uses: Iterable[tuple[str, float]]) -> str:
    """Return the names of resources, and the share that is in use, in one line."""
    return "  busy: " + " | ".join(f"{name} {100 * share:.0f} %" for name, share in uses)


def purpose(request: TrialRequest) -> str:
    """Return a trial's purpose, with the N that the search would report without it."""
    found = request.so_far
    if found is None or found.rate_rps is None:
        return request.purpose
    return f"{request.purpose} | N so far {figures.n(found)} ({figures.interval(found)})"


def ended(trial: Trial) -> tuple[str, str, str]:
    """Return a trial's number and rate, its verdict, and its throughput with the reason."""
    rate = figures.MISSING if trial.rate_rps is None else f"{_rate(trial.rate_rps)}/s"
    why = trial.verdict.reasons[0] if trial.verdict.reasons else ""
    if trial_figures.is_without_rate(trial):  # the dash shows that no constant rate was offered
        why = f"{trial.purpose}, mean {figures.plain_ms(trial.stats.total.mean_s * 1000)} ms"
    done = f"{_rate(trial.stats.throughput_rps):>7}/s done  {why}"
    return f"  {trial.number:>3}  {rate:>10}  ", trial_figures.verdict(trial), done


def _rate(value_rps: float) -> str:
    """Return a rate with two decimals, or with three digits below 1/s."""
    return f"{value_rps:.2f}" if value_rps >= 1 else figures.rate(value_rps)
