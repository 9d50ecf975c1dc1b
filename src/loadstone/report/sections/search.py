"""A search for N as a section."""

import re
from collections.abc import Iterator

from loadstone.analysis.model import Cause, TrialState
from loadstone.diagnosis.limit import named_limit, taken_by_others
from loadstone.plan import hosts
from loadstone.report import figures, prediction, trial_figures
from loadstone.report.generator import generator_of
from loadstone.report.section import VALID, Answer, Certainty, Fact, NamedFigure
from loadstone.report.sections import statements
from loadstone.report.sections.trials import Edge, edge, kept_up
from loadstone.result.model import Measurement
from loadstone.result.outcome import shortfalls
from loadstone.search.model import Capacity, CapacityKind

UNWATCHED = "the service is full; what in it is full was not watched: add --monitor ssh=HOST"
CLOSE = 0.02  # half the interval as a share of N: a longer search is not worth proposing
TIMES_LONGER = 4  # the width of an interval falls with the root of the load time
LOAD_TIME = "load time at most"  # parameter of a search
MOST_BUDGET_S = 3000  # that --budget takes: cli/duration.py, which a test compares


def answer(measurement: Measurement) -> Answer:
    """Return N with its interval, or that there is none."""
    found = measurement.capacity
    text = figures.n(found)
    if found is None or text == figures.NOT_FOUND:
        return Answer("N", text, "", sentence(measurement))
    has_interval = statements.has_interval(found)
    if found.rate_rps is None and found.low_rps is not None and found.high_rps is not None:
        text = f"between {text.replace(' to ', ' and ')}"
    return Answer(
        label="N",
        text=text,
        unit="per second",
        sentence=sentence(measurement),
        # Of a bound, the rate is that of the trial behind it.
        value=found.rate_rps if has_interval or found.low_rps is None else None,
        low=found.low_rps,
        high=found.high_rps,
        interval=figures.interval(found) if has_interval else "",
        confidence=found.confidence if has_interval else 0.0,
    )


def sentence(measurement: Measurement) -> str:
    """Return N, or that there is none, in a sentence."""
    capacity = measurement.capacity
    if capacity is None:
        return f"No capacity was found for {measurement.title}: the search did not finish."
    subject = figures.begun(measurement.title)
    low, high = capacity.low_rps, capacity.high_rps
    found = figures.n(capacity)
    if statements.has_interval(capacity):
        sure = f"{figures.percent(capacity.confidence)} " if capacity.confidence > 0 else ""
        within = f"{sure}interval {figures.interval(capacity)}"
        return f"{subject}: the service sustains N = {found} a second ({within})."
    if low is not None and high is not None:
        return f"{subject}: N lies somewhere in {found} a second."
    if low is not None:
        return f"{subject}: the service sustains {found} a second; the upper limit is not known."
    if high is not None:
        states = {trial.verdict.state for trial in measurement.trials}
        none = "" if TrialState.SUSTAINED in states else "; no rate was seen to be sustained"
        return f"{subject}: N is {found} a second{none}."
    alone = f"is about {found} a second; its interval is not known"
    return f"{subject}: N {'was not found' if capacity.rate_rps is None else alone}."


def certainty(measurement: Measurement) -> Certainty:
    """Return whether N is valid and has an interval."""
    generator = generator_of(measurement)
    if generator is not None and not generator.is_valid:
        return Certainty("invalid", "load generator was the limit")
    if statements.has_interval(measurement.capacity):
        return VALID
    found = measurement.capacity
    if figures.n(found) == figures.NOT_FOUND:
        return Certainty("undecided", "N not found")
    is_range = found is not None and found.low_rps is not None and found.high_rps is not None
    known = "N known as a range only" if is_range else "N not bounded on both sides"
    return Certainty("undecided", known)


def limit(measurement: Measurement) -> str:
    """Return what limits N, by name; empty if there is no N to limit."""
    found = measurement.capacity
    if found is None or (found.rate_rps is None and found.kind is None):
        return ""
    if found.rate_rps is None and found.low_rps is None:
        return ""
    if found.kind not in (None, CapacityKind.SATURATION):
        return statements.LIMITS[found.kind]
    if not measurement.trials:  # several searches, each of which names what was full
        return statements.LIMITS[found.kind] if found.kind else ""
    named = named_limit(measurement.resources)
    if statements.takes_cpu(measurement) and taken_by_others(measurement.resources):
        named = "the CPU that the fault left"
    if named is None and measurement.resources is None:
        named = statements.machine_limit(measurement)
    return named or (UNWATCHED if found.kind else "")


def facts(measurement: Measurement) -> Iterator[Fact]:
    """Yield what limits N, how the service answers below and above it, or what is known without."""
    capacity = measurement.capacity
    if limited := limit(measurement):
        yield Fact("limited by", limited, rank=1, is_column=True)
    if asked := _hosts(measurement):
        yield Fact("hosts", asked, rank=1)
    if capacity is not None and capacity.rate_rps is None:
        # The reason stands beside the exit code if that is not 0.
        reasons = {one.reason for one in shortfalls(measurement)}
        known = [one for one in capacity.words[:2] if one not in reasons][:1]
        yield from (Fact("known", words, rank=2) for words in known)
    elif capacity is not None and capacity.kind is CapacityKind.REFUSAL and measurement.trials:
        yield from (Fact("refusals", words, rank=2) for words in capacity.words[:1])
    trial = kept_up(measurement)
    if trial is not None and trial.rate_rps is not None:
        latency, rate = trial.stats.total, figures.rate(trial.rate_rps)
        times = zip(
            ("p50", "p95", "p99"), (latency.median_s, latency.p95_s, latency.p99_s), strict=True
        )
        shown = ", ".join(f"{name} {figures.plain_ms(1000 * time_s)}" for name, time_s in times)
        yield Fact(f"at {rate}/s", f"keeps up: {shown} ms", rank=2)
        p95 = f"{figures.milliseconds(1000 * latency.p95_s)} at {rate}/s"
        n_rps = capacity.rate_rps if capacity else None
        if n_rps is not None and trial.rate_rps <= n_rps:
            yield Fact("p95 below N", p95, is_line=False, is_column=True)
    if (found := edge(measurement)) is not None:
        yield Fact(f"at {figures.rate(found.rate_rps)}/s", _edge(found), rank=3)
    if (foreseen := measurement.prediction) is not None:
        text = f"{prediction.rate(foreseen)} ({prediction.interval(foreseen)}), from a low load"
        if prediction.unwatched(measurement):
            text = f"at most {prediction.rate(foreseen)}, from a low load"
        yield Fact("predicted", text, rank=6)


def _hosts(measurement: Measurement) -> str:
    """Return how many compute hosts in use ask for N; empty if it is not their load."""
    found = measurement.capacity
    if found is None or not hosts.is_of_hosts(measurement.scenario):
        return ""
    counts = [
        f"{float(f'{hosts.hosts_at(rate_rps):.2g}'):,.10g}"
        for rate_rps in (found.rate_rps, found.low_rps, found.high_rps)
        if rate_rps is not None
    ]
    if not statements.has_interval(found):
        counts = counts[found.rate_rps is not None :]
    if not counts:
        return ""
    asked = hosts.hosts_of(measurement.scenario)
    asked_rps = figures.rate(asked * hosts.HOST_RPS)
    each = f"{asked:,} ask {asked_rps}/s, idle ones a third"
    if asked == 1:
        each = f"1 asks {asked_rps}/s, an idle one a third"
    noun = "compute host" if counts[-1] == "1" else "compute hosts"
    if statements.has_interval(found):
        within = " to ".join(counts[1:])
        noun = "compute host" if counts[0] == "1" else "compute hosts"
        return f"bears about {counts[0]} {noun} in use ({within}); {each}"
    bounds = {(True, False): "at least ", (False, True): "at most "}
    bound = bounds.get((found.low_rps is not None, found.high_rps is not None), "")
    return f"bears {bound}{' to '.join(counts)} {noun} in use; {each}"


def _edge(found: Edge) -> str:
    if found.sustained:
        text = statements.both(found)
        return text.replace(" and ", ", ").replace(
            ": that is the upper edge of N", ": the upper edge"
        )
    trial = found.failed[0]
    match found.cause:
        case Cause.ERRORS:
            return f"requests fail: {trial_figures.errors(trial)}"
        case Cause.OBJECTIVE:
            return "keeps up, but slower than wanted"
        case Cause.DRIFT:
            return "keeps up at first, then becomes slower"
        case _:
            completed = statements.completed_below(trial)
            return f"falls behind: {completed}/s completed" if completed else "falls behind"


def longer(measurement: Measurement) -> str:
    """Return the option of a search that takes longer; empty if none can or it is not known."""
    known_s = _load_time_s(measurement)
    seconds = min(TIMES_LONGER * known_s, MOST_BUDGET_S)
    if seconds <= known_s:
        return ""
    return f"--budget {seconds // 60}m" if seconds % 60 == 0 else f"--budget {seconds}s"


def narrower(measurement: Measurement) -> str:
    """Return what would narrow the interval of N; empty if it is narrow or nothing would."""
    found, times_longer_s = measurement.capacity, TIMES_LONGER * _load_time_s(measurement)
    if found is None or not statements.has_interval(found):
        return ""
    if found.kind is CapacityKind.CEILING or not found.confidence or _half(found) <= CLOSE:
        return ""
    can_be_longer = 0 < times_longer_s <= MOST_BUDGET_S
    return f"{longer(measurement)}, about half this width" if can_be_longer else ""


def _load_time_s(measurement: Measurement) -> int:
    """Return how long the load of a search could last; 0 if it is not known, or of several."""
    if not measurement.trials:
        return 0
    found = re.fullmatch(r"(\d+) s", dict(measurement.parameters).get(LOAD_TIME, ""))
    return int(found[1]) if found else 0


def _half(found: Capacity) -> float:
    low, rate, high = found.low_rps or 0.0, found.rate_rps or 1.0, found.high_rps or 0.0
    return max(high - rate, rate - low) / rate


def numbers(measurement: Measurement) -> Iterator[NamedFigure]:
    """Yield N, its interval and its confidence by name."""
    found = measurement.capacity
    names = ("rate_rps", "low_rps", "high_rps", "confidence")
    labels = ("N", "lower bound of N", "upper bound of N", "confidence")
    for name, label in zip(names, labels, strict=True) if found else ():
        unit = "" if name == "confidence" else "/s"
        yield NamedFigure(name, label, getattr(found, name), unit)
