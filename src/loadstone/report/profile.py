"""CPU profile of the workers as sentences, as data and as the tree of a flame graph."""

from collections.abc import Iterator
from typing import Any

from loadstone.analysis.model import Trial
from loadstone.diagnosis.cpu_profile import CpuProfile, Frame
from loadstone.report import figures
from loadstone.result.model import Measurement
from loadstone.search.profiling import without_profiler

MOST_NAMED = 6
LEAST_SHARE = 0.01


def as_data(measurement: Measurement) -> dict[str, Any] | None:
    """Return the profile as JSON-compatible data, or None if there is none."""
    trial = measurement.profiled
    if trial is None or trial.profile is None:
        return None
    found = trial.profile
    return {
        "trial": trial.number,
        "seconds": found.seconds,
        "workers": found.workers,
        "samples": found.samples,
        "rate_hz": found.rate_hz,
        "parts": {part.name: found.share(part) for part in found.parts},
        "idle": found.idle,
        "profiler_cores": _cores(found),
        "file": found.file,
        "words": list(sentences(measurement)),
    }


def sentences(measurement: Measurement) -> Iterator[str]:
    """Describe where the workers' time goes, and the cost of the profiler."""
    trial = measurement.profiled
    if trial is None or trial.profile is None:
        return
    found = trial.profile
    named = [part for part in found.parts if found.share(part) >= LEAST_SHARE][:MOST_NAMED]
    listed = ", ".join(f"{part.name} {figures.percent(found.share(part))}" for part in named)
    idle = found.idle
    none = "" if idle is None else f"; they had none for {figures.percent(idle)} of the time"
    yield (
        f"where the workers' time goes while they have a request: {listed} ("
        f"{figures.counted(found.samples, 'sample')}{none})"
    )
    yield _cost(trial, found, without_profiler(measurement.trials))


def tree(frame: Frame) -> dict[str, Any]:
    """Return a flame graph's tree in the format of d3-flame-graph."""
    return {
        "name": frame.name,
        "value": frame.samples,
        "children": [tree(one) for one in frame.children],
    }


def _cost(trial: Trial, found: CpuProfile, beside: Trial | None) -> str:
    took = f"the profiler took {_cores(found):.2f} of a core"
    with_s, without_s = _cpu_per_request(trial), _cpu_per_request(beside)
    if with_s is None or without_s is None:
        return took
    return (
        f"{took}; a request cost {figures.milliseconds(1000 * with_s)} of CPU with it, "
        f"{figures.milliseconds(1000 * without_s)} without"
    )


def _cores(found: CpuProfile) -> float:
    return found.profiler_cpu_s / found.seconds if found.seconds > 0 else 0.0


def _cpu_per_request(trial: Trial | None) -> float | None:
    if trial is None or trial.usage is None or not trial.usage.service_cpu_s or not trial.stats.ok:
        return None
    return trial.usage.service_cpu_s / trial.stats.ok
