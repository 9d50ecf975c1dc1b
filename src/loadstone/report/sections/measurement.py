"""Any measurement as a section."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from loadstone.diagnosis.bottleneck import OTHER_WORK
from loadstone.diagnosis.bounds import upper_bounds
from loadstone.diagnosis.demand import BottleneckKind
from loadstone.diagnosis.finding import Severity
from loadstone.diagnosis.limit import named_limit
from loadstone.errors import FELL_SHORT, EnvironmentUnusable, InvalidInput, MeasurementInvalid
from loadstone.report import figures, names, profile
from loadstone.report.chart import Chart, Tone
from loadstone.report.generator import generator_of
from loadstone.report.section import (
    SEPARATOR,
    VALID,
    Answer,
    Certainty,
    Fact,
    Flame,
    NamedFigure,
    NextStep,
    Section,
    Statement,
    Table,
    Transcript,
)
from loadstone.report.sections import (
    charts,
    fault,
    fault_charts,
    load_charts,
    predicted,
    printed,
    record,
    search,
    statements,
    steps,
    tables,
    workload,
)
from loadstone.report.sections.charts import SamplesOf
from loadstone.result.model import Measurement, Policy
from loadstone.result.outcome import Shortfall, shortfalls, unmeasured_faults

OTHER_PROGRAMS = "other programs"
SHORTFALLS = {
    FELL_SHORT: "fell short",
    InvalidInput.exit_code: "could not be carried out",
    EnvironmentUnusable.exit_code: "could not be carried out",
    MeasurementInvalid.exit_code: "not decided",
}


class MeasurementKind(Protocol):
    """What a kind of measurement has to say; a module for each."""

    def answer(self, measurement: Measurement, /) -> Answer:
        """Return the one figure that was asked for."""

    def certainty(self, measurement: Measurement, /) -> Certainty:
        """Return whether it can be relied on, apart from the exit code."""

    def limit(self, measurement: Measurement, /) -> str:
        """Return what limits, by name; empty if nothing does."""

    def facts(self, measurement: Measurement, /) -> Iterator[Fact]:
        """Yield the lines of the summary."""

    def numbers(self, measurement: Measurement, /) -> Iterator[NamedFigure]:
        """Yield the figures by name."""


KINDS: dict[Policy, MeasurementKind] = {
    "search": search,
    "prediction": predicted,
    "fixed": workload,
    "steps": workload,
    "turns": workload,
}


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes sections of a run's measurements; without `samples_of` they have no charts."""

    run_id: str
    is_running: bool = False
    samples_of: SamplesOf | None = None
    store: str = ""  # option of the commands that are named
    has_budget: bool = True  # whether the run's command has --budget, for a longer search

    def section(self, measurement: Measurement, anchor: str) -> Section:
        """Return a measurement as a section; the steps of a workload are its parts."""
        curve = steps.curve_of(measurement)
        if curve is None:
            return self._single(measurement, anchor)
        parts = tuple(
            self._single(one, f"{anchor}-{number}")
            for number, one in enumerate(measurement.each, 1)
        )
        loaded = tuple(
            part.id for part, one in zip(parts, measurement.each, strict=True) if one.trials
        )
        return Section(
            id=anchor,
            title=f"{curve.scenario} at rising {curve.setting}",
            subtitle=_subtitle(measurement),
            name=names.of_measurement(measurement),
            scenario=measurement.scenario,
            answer=steps.answer(curve),
            certainty=self._certainty(
                measurement, steps.sla(curve) or workload.certainty(measurement)
            ),
            facts=(*steps.facts(curve), *_shared_facts(measurement, workload.limit(measurement))),
            commands=self._commands(measurement),
            tables=(steps.table(curve, loaded),),
            charts=steps.charts(anchor, curve) if self.samples_of else (),
            parts=parts,
            took_s=measurement.wall_s,
            data=record.of(measurement),
        )

    def _single(self, measurement: Measurement, anchor: str) -> Section:
        kind = KINDS[measurement.policy]
        limit = kind.limit(measurement)
        shown, items = self._drawn(measurement, anchor)
        return Section(
            id=anchor,
            title=_title(measurement),
            subtitle=_subtitle(measurement),
            name=_name(measurement),
            scenario=measurement.scenario,
            request=measurement.request,
            answer=kind.answer(measurement),
            certainty=self._certainty(measurement, kind.certainty(measurement)),
            limit=limit,
            facts=(*kind.facts(measurement), *_shared_facts(measurement, limit)),
            figures=tuple(kind.numbers(measurement)),
            statements=_statements(measurement),
            method=tuple(statements.method(measurement)),
            steps=_steps(measurement),
            commands=self._commands(measurement),
            tables=(*_tables(measurement), *(one for one in items if isinstance(one, Table))),
            charts=shown,
            flame=_flame(measurement, anchor) if self.samples_of else None,
            listings=tuple(one for one in items if isinstance(one, Transcript)),
            took_s=measurement.wall_s,
            data=record.of(measurement),
        )

    def _drawn(
        self, measurement: Measurement, anchor: str
    ) -> tuple[tuple[Chart, ...], list[Table | Transcript]]:
        """Return the charts, and what hooks and iterations printed that is no chart."""
        if self.samples_of is None:
            return (), []
        shown = [
            *fault_charts.charts(measurement, anchor, self.samples_of),
            *(
                load_charts.charts(anchor, measurement, self.samples_of)
                if measurement.workload
                else charts.of(measurement, anchor, self.samples_of)
            ),
        ]
        items: list[Table | Transcript] = []
        for one in printed.of(anchor, measurement):
            if isinstance(one, Chart):
                shown.append(one)
            else:
                items.append(one)
        if measurement.workload:
            items.append(workload.listing(measurement.workload))
        return tuple(shown), items

    def _certainty(self, measurement: Measurement, verdict: Certainty) -> Certainty:
        worst = max(shortfalls(measurement), key=lambda one: one.code, default=None)
        if worst is None or (self.is_running and measurement.status == "running"):
            return verdict
        if verdict == VALID and measurement.policy != "search":  # its N holds, whatever was wanted
            tone: Tone = "degraded" if worst.code == FELL_SHORT else "undecided"
            verdict = Certainty(tone, tone)
        return replace(
            verdict,
            exit_code=worst.code,
            reason=worst.reason,
            kind=SHORTFALLS[worst.code],
            try_=self._mend(measurement, worst),
        )

    def _mend(self, measurement: Measurement, short: Shortfall) -> str:
        if not short.may_need_time:
            return ""
        # More time does not help against other programs.
        if disturbed := statements.by_others(measurement):
            return f"to {disturbed.advice[:1].lower()}{disturbed.advice[1:].rstrip('.')}"
        return search.longer(measurement) if self.has_budget else ""

    def _commands(self, measurement: Measurement) -> tuple[Fact, ...]:
        found = []
        if self.has_budget and (narrower := search.narrower(measurement)):
            found.append(Fact("narrower", narrower, rank=8))
        count = len(measurement.trials)
        if count:
            label = f"{count} trials" if count > 1 else "details"
            command = f"loadstone results show {self.run_id} --trials{self.store}"
            found.append(Fact(label, command, rank=5))
        return tuple(found)


def _title(measurement: Measurement) -> str:
    if measurement.workload is None:
        return names.of_measurement(measurement)
    load = f" at {steps.load_of(measurement)}" if measurement.policy == "steps" else ""
    return f"{measurement.scenario}{load}"


def _name(measurement: Measurement) -> str:
    load = f", {steps.load_of(measurement)}" if measurement.policy == "steps" else ""
    return names.of_measurement(measurement) + load


def _subtitle(measurement: Measurement) -> str:
    if measurement.workload is None:
        return ""
    title = measurement.title if measurement.title != measurement.scenario else ""
    subtask = measurement.subtask if measurement.subtask != measurement.scenario else ""
    return _joined(subtask or title, measurement.subtask_description, measurement.description)


def _joined(*parts: str) -> str:
    return SEPARATOR.join(dict.fromkeys(part for part in parts if part))


def _shared_facts(measurement: Measurement, limit: str) -> Iterator[Fact]:
    ended = sum(trial.stats.total.count for trial in measurement.trials)
    failed = sum(trial.stats.failed for trial in measurement.trials)
    if ended:
        cause = next((k for t in measurement.trials for k, _ in t.stats.errors), "")
        text = f"{failed:,} of {ended:,}"
        more = f", such as {cause}" if failed and cause else ""
        short = f"{failed:,}/{ended:,}"
        yield Fact("failures", text + more, rank=3, is_column=True, short=short)
    if trust := _trust(measurement):
        yield trust
    # What limits it may name the other programs already.
    is_named = OTHER_PROGRAMS in limit
    disturbed = () if is_named else tuple(statements.disturbed(measurement))
    by_others = None if is_named or disturbed else statements.by_others(measurement)
    if by_others is not None:
        yield Fact("disturbed", by_others.sentence.rstrip("."), rank=1, tone="undecided")
    for line in (*statements.died(measurement), *disturbed):
        yield Fact("note", line, rank=2, tone="undecided")


def _trust(measurement: Measurement) -> Fact | None:
    """Return whether the load generator kept its schedule; None if that is not known."""
    generator = generator_of(measurement)
    if generator is None:
        return None
    if not generator.is_valid:
        why = generator.reasons[0].partition(": ")[2] if generator.reasons else "it was the limit"
        return Fact("trust", f"not valid, load generator: {why}", rank=1, tone="invalid")
    but = ", ".join(map(str, generator.invalid_trials))
    valid = f"valid (not trial {but})" if but else "valid"
    sent = f"99 % sent within {figures.milliseconds(generator.lag_p99_ms)}"
    cpu = f"generator {figures.percent(generator.cpu_share_max)} CPU"
    return Fact("trust", f"{valid}: {sent}; {cpu}", rank=4)


def _statements(measurement: Measurement) -> tuple[Statement, ...]:
    effects = (
        *(
            Statement(statements.sentence(one), Severity.WARNING)
            for _, one in unmeasured_faults(measurement)
        ),
        *(Statement(one) for one in fault.described(measurement)),
    )
    if measurement.workload is None:
        return (*effects, *statements.of(measurement))
    omitted = (Statement(statements.sentence(one)) for one in printed.omissions(measurement))
    return (*workload.described(measurement), *effects, *omitted)


def _steps(measurement: Measurement) -> tuple[NextStep, ...]:
    """Return what to try, with what it would bring at most where that is known."""
    found = measurement.resources
    if found is None or named_limit(found) is None:
        return ()
    is_meant = statements.takes_cpu(measurement)
    advice = [
        one for one in found.findings if one.advice and not (is_meant and one.id == OTHER_WORK)
    ]
    steps_ = []
    for number, one in enumerate(advice):
        severity = Severity.WARNING if number == 0 else Severity.INFO
        is_scaling = found.bottleneck.kind in (BottleneckKind.CPU, BottleneckKind.WORKERS)
        worth = _worth(measurement) if number == 0 and is_scaling else ""
        steps_.append(NextStep(one.advice, severity, worth, detail=one.sentence))
    return tuple(steps_)


def _worth(measurement: Measurement) -> str:
    """Return the highest rate that one more core and worker could bring."""
    found = measurement.resources
    bounds = upper_bounds(found.observation) if found else None
    best = max((one.rate_rps for one in bounds.changed.values()), default=0.0) if bounds else 0.0
    capacity = measurement.capacity
    if not best or capacity is None or best <= (capacity.rate_rps or 0.0):
        return ""
    return f"one core and one worker more: at most {figures.rate(best)}/s"


def _tables(measurement: Measurement) -> Iterator[Table]:
    # Of several loads, the figures of one are not those of all.
    is_single = KINDS[measurement.policy] is workload and len(measurement.trials) == 1
    stats = measurement.stats if is_single else None
    is_fault = any(trial.faults for trial in measurement.trials)
    yield from fault.tables(measurement)
    found = (
        tables.response_times(stats, is_primary=not is_fault) if stats else None,
        tables.checks(measurement),
        tables.hooks(measurement),
        tables.trials(measurement) if measurement.trials and not measurement.workload else None,
        tables.resources(measurement.resources.observation.uses) if measurement.resources else None,
        tables.profile(measurement),
        tables.failures(stats),
        tables.traces(measurement),
        None if measurement.workload else tables.generator(measurement),
    )
    yield from (one for one in found if one is not None)


def _flame(measurement: Measurement, anchor: str) -> Flame | None:
    trial = measurement.profiled
    if trial is None or trial.profile is None:
        return None
    seen = trial.profile
    caption = (
        f"{figures.counted(seen.samples, 'sample')} of {figures.counted(seen.workers, 'worker')} "
        f"in {seen.seconds:.0f} s, {seen.rate_hz} a second. A box is a function; its width is its "
        "share of the time in which workers had a request, callers stand below what they call. "
        "Boxes narrower than 0.2 % are left out; all stacks are in "
        f"{seen.file} of the run's files."
    )
    return Flame(f"{anchor}-flame", profile.tree(seen.flame), caption)
