"""The lines that are shown while load is made."""

from loadstone.analysis.model import Trial
from loadstone.engine.progress import Progress
from loadstone.report import figures


def now(
    purpose: str,
    progress: Progress,
    *,
    latency_ms: float | None,
    count: int | None = None,
    at_most_s: float | None = None,
) -> str:
    """Give rate, throughput, latency, errors and time left of a stretch of load in one line.

    `count`: so many iterations end it; `at_most_s`: so many seconds from now end it at the latest.
    """
    elapsed_s = max(progress.elapsed_s, 1e-9)
    ended = progress.ok + progress.failed
    latency = figures.MISSING if latency_ms is None else f"{latency_ms:.0f} ms"
    parts = [
        f"  {purpose}",
        f"{progress.elapsed_s:.0f} s",
        f"due {progress.due / elapsed_s:.1f}/s",
        f"done {progress.ok / elapsed_s:.1f}/s",
        f"latency {latency}",
        f"waiting {progress.in_flight}",
        f"errors {progress.failed}",
    ]
    if count is not None:
        parts.append(f"{ended:,} of {count:,}")
    if count is not None and ended:
        about_s = progress.elapsed_s * (count - ended) / ended
        parts.append(f"about {min(about_s, at_most_s or about_s):.0f} s left")
    elif at_most_s is not None:
        parts.append(f"at most {at_most_s:.0f} s left")
    return " | ".join(parts)


def ended(trial: Trial) -> tuple[str, str, str]:
    """Give a trial's number and rate, its verdict, and what it showed."""
    rate = figures.MISSING if trial.rate_rps is None else f"{trial.rate_rps:.2f}/s"
    why = trial.verdict.reasons[0] if trial.verdict.reasons else ""
    if figures.is_metered(trial):  # that no constant rate was offered is the dash
        why = f"{trial.purpose}, mean {figures.plain_ms(trial.summary.latency.mean_ms)} ms"
    done = f"{trial.summary.throughput_rps:7.2f}/s done  {why}"
    return f"  {trial.number:>3}  {rate:>10}  ", figures.verdict(trial), done
