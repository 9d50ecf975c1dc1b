"""The load generator's health over all trials of a search."""

from dataclasses import dataclass

from loadstone.analysis.model import Cause
from loadstone.result.model import Measurement
from loadstone.search.model import Capacity


@dataclass(frozen=True, slots=True)
class Generator:
    """The worst send lag and the CPU usage over the valid trials; without any, over all trials.

    A trial is valid if the generator was not the limit.
    """

    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    threads: int  # of the engine; each can use a core
    cpu_share: float  # of one core per engine thread
    cpu_share_max: float  # in the trial where it was highest
    is_valid: bool  # what is known of N is based on valid trials
    invalid_trials: tuple[int, ...]
    reasons: tuple[str, ...]  # why it was the limit, trial by trial


def cores_of(threads: int) -> str:
    """Return what the CPU shares of an engine with so many threads are of."""
    return "a core" if threads <= 1 else f"{threads} cores"


def generator_of(measurement: Measurement) -> Generator | None:
    """Summarise the generator's health; None without a trial of Loadstone's own generator."""
    known = [(trial, trial.health) for trial in measurement.trials if trial.health is not None]
    invalid = [(trial, health) for trial, health in known if not health.is_valid]
    valid = [health for _, health in known if health.is_valid]
    healths = valid or [health for _, health in invalid]
    if not healths:
        return None
    thread_s = sum(health.wall_s * health.threads for health in healths)
    return Generator(
        lag_p50_ms=max(health.lag_p50_ms for health in healths),
        lag_p99_ms=max(health.lag_p99_ms for health in healths),
        lag_max_ms=max(health.lag_max_ms for health in healths),
        threads=max(health.threads for health in healths),
        cpu_share=sum(health.cpu_s for health in healths) / thread_s if thread_s > 0 else 0.0,
        cpu_share_max=max(health.cpu_share for health in healths),
        is_valid=not invalid or (bool(valid) and _is_known(measurement.capacity)),
        invalid_trials=tuple(trial.number for trial, _ in invalid),
        reasons=tuple(
            f"trial {trial.number}: {limit}" for trial, health in invalid for limit in health.limits
        ),
    )


def _is_known(found: Capacity | None) -> bool:
    """Return whether a search found N or a bound of it, which only its valid trials give."""
    if found is None or Cause.GENERATOR in found.causes:
        return False
    return (found.rate_rps, found.low_rps, found.high_rps) != (None, None, None)
