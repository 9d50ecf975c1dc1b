"""A tuning as a report: the proven gain, what carries it, what to change, what was tried."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import exp
from typing import Any

from loadstone.diagnosis.finding import Severity
from loadstone.errors import MeasurementInvalid
from loadstone.report import figures
from loadstone.report.chart import Chart, ChartSeries
from loadstone.report.section import (
    Answer,
    Certainty,
    Fact,
    NamedFigure,
    NextStep,
    Report,
    Row,
    Section,
    Statement,
    Table,
    TableColumn,
    Transcript,
)
from loadstone.report.sections.overview import overview
from loadstone.report.sections.tables import columns
from loadstone.tune import advice
from loadstone.tune.budget import N_S
from loadstone.tune.evidence import GainEvidence, GainInterval
from loadstone.tune.journal import TuningJournal
from loadstone.tune.measured import METRICS
from loadstone.tune.model import ComparisonOutcome, Proof, Share, TriedCombination, Tuned
from loadstone.tune.space import Pairs, Setting, Space, words
from loadstone.tune.tuning import ALPHA, PROOF_ALPHA

GAIN, NO_GAIN = "gain shown", "no gain shown"
STARTED = (
    "The search only chooses. The stated gain comes from pairs of trials of the default and the "
    "chosen combination, both started anew, that the search has not seen."
)
CHANGED = (
    "The search only chooses. The stated gain comes from pairs of trials of the default and the "
    "chosen combination that the search has not seen. Before each trial, the settings are put "
    "back, those of the trial applied, and the service warmed up."
)
METHOD = (
    "There are at most two proofs, and what they show decides which is stated. So each interval "
    "misses the true gain with 2.5 % (Bonferroni): with 95 %, both hold it.",
    "What a setting carries: the winner beside the winner with this setting put back, tested with "
    "Holm's method, so that with 95 % no setting without a part in the gain is kept.",
    "The gain that was seen while searching is one of the highest of many noisy ones, and so "
    "flatters itself. It is shown only to make that visible.",
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A tuning with what its report needs to know."""

    tuned: Tuned
    journal: TuningJournal
    store: str = ""  # option that chooses its store

    @property
    def space(self) -> Space:
        """The space that was searched."""
        return self.journal.begun.space

    @property
    def metric(self) -> str:
        """What is to become better: "throughput of issue"."""
        begun = self.journal.begun
        return f"{METRICS[begun.objective].name} of {begun.load.scenario}"


def report_of(shown: Shown) -> Report:
    """Return the tuning as a report with one section."""
    section = _section(shown)
    said, journal = section.answer.sentence, shown.journal
    return Report(
        title=figures.begun(said),
        subject=f"default: {_default(shown)}",
        sections=(section,),
        overview=overview((section,)),
        exit_code=section.certainty.exit_code,
        name="loadstone tune",
        id=journal.tuning_id,
        started_at=journal.begun.started_at,
        about=f"Tuning {journal.tuning_id}, begun {journal.begun.started_at}",
        page=f"loadstone tune --resume {journal.tuning_id}{shown.store} --html FILE",
        data=_data(shown),
    )


def _default(shown: Shown) -> str:
    values = dict(shown.space.default)
    commands = shown.journal.begun.commands
    if commands is not None:
        known = words(shown.space.default) if values else "as it is"
        return f"cloud {commands.cloud}, {known}"
    told = ("release", "workers", "threads", "web", "database", "cache")
    return ", ".join(f"{name}={values[name]}" for name in told if name in values)


def _section(shown: Shown) -> Section:
    tuned = shown.tuned
    proof = tuned.stated
    interval = proof.interval if proof is not None else None
    known = interval if interval is not None and math.isfinite(interval.high) else None
    return Section(
        id="tuning",
        title=shown.metric,
        answer=Answer(
            label="gain",
            text=f"{interval.gain:.3f}" if interval else figures.NOT_FOUND,
            unit="times better" if interval else "",
            sentence=_sentence(shown),
            value=interval.gain if interval else None,
            low=known.low if known else None,
            high=known.high if known else None,
            interval=_within(known) if known else "",
            confidence=1 - ALPHA if known else 0.0,
        ),
        certainty=_certainty(shown),
        scenario=shown.journal.begun.load.scenario,
        facts=tuple(_facts(shown)),
        figures=tuple(_figures(tuned)),
        statements=tuple(_statements(shown)),
        method=(STARTED if shown.space.is_of_lab else CHANGED, *METHOD),
        steps=tuple(_steps(shown)),
        tables=tuple(_tables(shown)),
        charts=(_chart(tuned.trials),) if _drawn(tuned.trials) else (),
        listings=tuple(
            Transcript(file, text, "The settings to change.")
            for file, text in advice.files(_lines(shown, tuned.changes))
        ),
        took_s=tuned.spent_s,
        data=_measurement(shown),
    )


def _certainty(shown: Shown) -> Certainty:
    tuned = shown.tuned
    if why := _unmeasured(tuned):
        return Certainty(
            "undecided", NO_GAIN, MeasurementInvalid.exit_code, why, "nothing was measured"
        )
    if why := _unproven(tuned):
        return Certainty(
            "undecided", NO_GAIN, MeasurementInvalid.exit_code, why, "the gain was not measured"
        )
    return Certainty(
        "sustained" if tuned.has_gain else "undecided", GAIN if tuned.has_gain else NO_GAIN
    )


def _unmeasured(tuned: Tuned) -> str:
    """Return why no combination was compared with the default; empty if one was."""
    failures = [one.failure for one in tuned.trials]
    if not failures or not all(failures):
        return ""
    if len(failures) == 1:
        return f"the only combination could not be measured: {failures[0]}"
    return f"none of {len(failures)} combinations could be measured to the end: {failures[0]}"


def _unproven(tuned: Tuned) -> str:
    """Return why the gain of the winner was not measured; empty if it was, or if there is none."""
    proof = tuned.stated
    if proof is None:
        if tuned.winner is None:
            return ""
        return f"the budget left no time to prove {words(tuned.winner.changes)}"
    if proof.interval is not None:
        return ""
    return f"{words(proof.changes)} could not be measured again: {proof.outcome.failure}"


def _sentence(shown: Shown) -> str:
    tuned, proof = shown.tuned, shown.tuned.stated
    if proof is not None and proof.interval is not None:
        word = GAIN if tuned.has_gain else NO_GAIN
        return f"{word}: with {words(proof.changes)}, {_times(shown, proof.interval)}"
    why = _unproven(tuned) or _unmeasured(tuned)
    why = why or "no combination was better than the default while searching"
    return f"{NO_GAIN} in {shown.metric}: {why}"


def _times(shown: Shown, found: GainInterval) -> str:
    """Return the gain in words; what is better when it is lower has the inverse ratio."""
    ratio, low, high = found.gain, found.low, found.high
    if not METRICS[shown.journal.begun.objective].is_higher_better:
        ratio, low, high = 1 / ratio, 1 / high, 1 / max(low, 1e-300)
    is_known = math.isfinite(found.high)
    within = f"95 %: {low:.3f} to {high:.3f}" if is_known else "too few pairs for an interval"
    return (
        f"{shown.metric} is {ratio:.3f} times that of the default ({within}), in pairs that the "
        "search has not seen"
    )


def _within(found: GainInterval) -> str:
    if not math.isfinite(found.high):
        return figures.MISSING
    return f"{found.low:.3f} to {found.high:.3f}"


def _facts(shown: Shown) -> Iterator[Fact]:
    tuned = shown.tuned
    yield Fact("answer", _sentence(shown), rank=1)
    if tuned.winner is not None and (seen := _seen(tuned)) is not None:
        text = f"{seen:.3f}"
        yield Fact(
            "seen while searching",
            f"{words(tuned.winner.changes)}: {text} times, chosen from {_count(tuned)}: "
            "not the gain",
            rank=2,
            short=text,
            is_column=True,
        )
    proof = tuned.stated
    if proof is not None and proof.interval is not None:
        yield Fact("measured", _values(shown, proof), rank=2)
    if tuned.capacities is not None:
        yield Fact("N", _capacities(tuned.capacities), rank=2)
    if tuned.proof is not None and tuned.stated is not tuned.proof:
        yield Fact("before the reduction", f"{words(tuned.proof.changes)}: {_proved(tuned.proof)}")
    yield from (Fact(label, text, rank=3, tone="undecided") for label, text in _doubts(tuned))
    yield Fact("tried", f"{_count(tuned)} in {figures.seconds(tuned.spent_s)}", rank=3)
    check = tuned.check.evidence
    if check is not None:
        yield Fact(
            "noise",
            f"the default beside itself: {exp(check.mean):.3f} times; pairs scatter by "
            f"{figures.percent(check.deviation)}",
            rank=4,
        )
    yield Fact("repeat", shown.journal.begun.command, rank=5)


def _doubts(tuned: Tuned) -> Iterator[tuple[str, str]]:
    """Yield what was left out, and what an interval does not show of the stated proof."""
    if tuned.cut_short:
        yield "not done", f"The budget left no time for {', '.join(tuned.cut_short)}."
    if tuned.stated is not None:
        outcome = tuned.stated.outcome
        if outcome.not_full:  # a side may have been able to complete more
            yield "not full", outcome.not_full
        yield from (("disturbed", note) for note in outcome.notes)


def _values(shown: Shown, proof: Proof) -> str:
    metric = METRICS[shown.journal.begun.objective]
    a, b = (
        figures.milliseconds(one * 1e3)
        if metric.unit == "s"
        else f"{figures.rate(one)}{metric.unit}"
        for one in (proof.outcome.a, proof.outcome.b)
    )
    count = proof.outcome.evidence.pairs if proof.outcome.evidence else 0
    return f"{a} with the default, {b} with the change, {count} pairs"


def _capacities(outcome: ComparisonOutcome) -> str:
    """Return N of the default and with the change, each of a search of its own."""
    if outcome.capacities is None:
        return f"not found: {outcome.failure}"
    a, b = (
        figures.n_per_second(one) + (f" ({figures.interval(one)})" if one.rate_rps else "")
        for one in outcome.capacities
    )
    return f"{a} with the default, {b} with the change, a search of {figures.seconds(N_S)} each"


def _proved(proof: Proof) -> str:
    if proof.interval is None:
        return proof.outcome.failure
    return f"{proof.interval.gain:.3f} times (95 %: {_within(proof.interval)})"


def _count(tuned: Tuned) -> str:
    failed = sum(bool(one.failure) for one in tuned.trials)
    count = len(tuned.trials)
    plural = "" if count == 1 else "s"
    return f"{count} combination{plural}" + (f", {failed} of them failed" if failed else "")


def _figures(tuned: Tuned) -> Iterator[NamedFigure]:
    proof = tuned.stated
    yield NamedFigure("gain", "gain", proof.interval.gain if proof and proof.interval else None)
    if (seen := _seen(tuned)) is not None:
        yield NamedFigure("seen_while_searching", "seen while searching", seen)


def _seen(tuned: Tuned) -> float | None:
    """Return the gain of the winner while searching, as a ratio; None without one."""
    winner = tuned.winner
    return None if winner is None or winner.evidence is None else exp(winner.evidence.mean)


def _statements(shown: Shown) -> Iterator[Statement]:
    tuned = shown.tuned
    again = tuned.proof_again
    if tuned.proof is not None and again is not None:
        dropped = tuple(one for one in tuned.proof.changes if one not in again.changes)
        if again.shows_gain:
            yield Statement(
                f"{words(dropped)} was dropped: put back alone, it was not shown to carry a part "
                "of the gain. The rest was proven again."
            )
        elif again.interval is None:
            yield Statement(
                f"Without {words(dropped)}, which alone was not missed, it could not be proven "
                f"again ({_proved(again)}): the first proof is stated.",
                Severity.WARNING,
            )
        else:
            yield Statement(
                f"Without {words(dropped)}, which alone was not missed, no gain is shown "
                f"({_proved(again)}): the settings act together, so all of them are stated.",
                Severity.WARNING,
            )
    elif tuned.ablation and not any(one.is_kept for one in tuned.ablation):
        yield Statement(
            "Put back alone, none of the settings was shown to carry a part of the gain. They act "
            "together, or have the same effect: all of them are stated.",
            Severity.WARNING,
        )
    if tuned.trades:
        yield Statement(
            "Trades lower security or correctness. What they bring is not a gain, and is not in "
            "the advice.",
            Severity.WARNING,
        )


def _steps(shown: Shown) -> Iterator[NextStep]:
    for share in _shares(shown.tuned):
        setting = shown.space.setting(*share.change)
        for line in _lines(shown, (share.change,)):
            yield NextStep(
                f"{line.file}: {line.shown}",
                worth=_worth(share, shown.tuned),
                detail=_detail(share, setting),
            )


def _shares(tuned: Tuned) -> tuple[Share, ...]:
    """Return the settings to change, with what each carries where that was measured."""
    known = {one.change: one for one in tuned.ablation}
    return tuple(known.get(one, Share(one, None, None)) for one in tuned.changes)


def _worth(share: Share, tuned: Tuned) -> str:
    if share.evidence is not None:
        return f"{exp(share.evidence.mean):.3f} times"
    if share.is_needed:
        return "needed to start"
    if share.failure:
        return f"not measured: {share.failure}"
    proof = tuned.stated
    if len(tuned.changes) == 1 and proof is not None and proof.interval is not None:
        return f"{proof.interval.gain:.3f} times"
    return "not measured alone"


def _detail(share: Share, setting: Setting) -> str:
    return f"{words((share.change,))} costs {_cost(setting)}."


def _cost(setting: Setting) -> str:
    return f"a {setting.change.value}" + (f"; {setting.price}" if setting.price else "")


def _lines(shown: Shown, changes: Pairs) -> tuple[advice.ConfigLine, ...]:
    if not shown.space.is_of_lab:
        return advice.variables(changes)
    return advice.lines(changes, shown.space.values(shown.tuned.changes))


def _tables(shown: Shown) -> Iterator[Table]:
    tuned = shown.tuned
    if tuned.has_gain:
        yield _advised(shown)
    if tuned.ablation:
        yield _ablation(tuned)
    if tuned.trades:
        yield _trades(shown)
    if tuned.trials:
        yield _trials(tuned)


def _advised(shown: Shown) -> Table:
    heads = (*columns("file", "line", numbers=["carries"]), TableColumn("costs"))
    rows = []
    for share in _shares(shown.tuned):
        setting = shown.space.setting(*share.change)
        first, *others = _lines(shown, (share.change,))
        cells = (first.file, first.shown, _worth(share, shown.tuned), _cost(setting))
        rows.append(Row(cells, note=f"source: {setting.source}" if setting.source else ""))
        rows += [Row((line.file, line.shown, "", "")) for line in others]
    caption = "Carries: how many times better the winner is than without this setting."
    return Table("Settings to change", heads, tuple(rows), caption, is_primary=True)


def _ablation(tuned: Tuned) -> Table:
    figured = columns("put back alone", numbers=["carries", "95 %", "p (Holm)"])
    rows = []
    for one in tuned.ablation:
        ratio, within = _ratio(one.evidence)
        p = figures.MISSING if one.p is None else f"{one.p:.3f}"
        is_advised = one.change in tuned.changes
        so = "kept" if one.is_kept else "not shown to carry a part" if is_advised else "dropped"
        rows.append(Row((words((one.change,)), ratio, within, p, so), note=one.failure))
    heads = (*figured, TableColumn("so"))
    return Table("What carries the gain", heads, tuple(rows), is_primary=True)


def _trades(shown: Shown) -> Table:
    figured = columns("trade", numbers=["brings", "95 %, all together"])
    rows = []
    for one in shown.tuned.trades:
        brings, within = figures.MISSING, figures.MISSING
        if one.interval is not None:
            brings, within = f"{one.interval.gain:.3f}", _within(one.interval)
        price = shown.space.setting(*one.change).price
        costs = f"not measured: {one.failure}" if one.failure else price
        rows.append(Row((words((one.change,)), brings, within, costs)))
    heads = (*figured, TableColumn("what it costs"))
    return Table("Trades: not gains", heads, tuple(rows), "Beside what is stated.", is_primary=True)


def _trials(tuned: Tuned) -> Table:
    figured = columns("combination", numbers=["seen", "pairs", "rounds"])
    rows = []
    for one in _ranked(tuned.trials):
        seen, _ = _ratio(one.evidence)
        pairs = str(one.evidence.pairs) if one.evidence else "0"
        cells = (words(one.changes), seen, pairs, str(one.rounds), one.origin)
        runs = f" (run {', '.join(one.failed_runs)})" if one.failed_runs else ""
        rows.append(Row(cells, note=f"{one.failure}{runs}" if one.failure else ""))
    caption = "Seen while searching, beside the default. The best of them flatters itself."
    heads = (*figured, TableColumn("from"))
    return Table("Tried", heads, tuple(rows), caption, is_primary=True)


def _ranked(trials: tuple[TriedCombination, ...]) -> list[TriedCombination]:
    return sorted(trials, key=lambda one: -one.evidence.mean if one.evidence else math.inf)


def _ratio(evidence: GainEvidence | None) -> tuple[str, str]:
    if evidence is None:
        return figures.MISSING, figures.MISSING
    found = evidence.interval(ALPHA)
    return f"{found.gain:.3f}", _within(found)


def _drawn(trials: tuple[TriedCombination, ...]) -> list[tuple[str, GainEvidence]]:
    ranked = ((words(one.changes), one.evidence) for one in _ranked(trials))
    return [(name, one) for name, one in ranked if one and math.isfinite(one.interval(ALPHA).high)]


def _chart(trials: tuple[TriedCombination, ...]) -> Chart:
    drawn = _drawn(trials)
    ends, points = [], []
    for number, (_, evidence) in enumerate(drawn):
        y, found = float(len(drawn) - number), evidence.interval(ALPHA)
        ends += [(found.low, y), (found.high, y)]
        points.append((found.gain, y))
    return Chart(
        id="chart-trials",
        title="Combinations beside the default",
        summary="Times better than the default while searching, each with its 95 % interval.",
        x_label="times the default",
        y_label="",
        series=(
            ChartSeries("interval", "intervals", "p50", tuple(ends)),
            ChartSeries("seen", "points", "p50", tuple(points)),
        ),
        from_zero_x=False,
        rows=tuple(name for name, _ in drawn),
    )


# Data for programs


def _data(shown: Shown) -> dict[str, Any]:
    begun = shown.journal.begun
    return {
        "document": "tuning",
        "tuning_id": shown.journal.tuning_id,
        "space": begun.space_name,
        "objective": begun.objective.value,
        "budget_s": begun.budget_s,
        "spent_s": shown.tuned.spent_s,
        "started_at": begun.started_at,
        "default": dict(begun.space.default),
        "command": begun.command,
    }


def _measurement(shown: Shown) -> dict[str, Any]:
    tuned = shown.tuned
    return {
        "title": shown.metric,
        "scenario": shown.journal.begun.load.scenario,
        "has_gain": tuned.has_gain,
        "changes": dict(tuned.changes),
        "seen_while_searching": _seen(tuned),
        "confidence_of_each_proof": 1 - PROOF_ALPHA,
        "proof": _proof_data(tuned.proof),
        "proof_again": _proof_data(tuned.proof_again),
        "ablation": [
            {
                **_change(one.change),
                **_evidence_data(one.evidence),
                "p": one.p,
                "kept": one.is_kept,
                "needed_to_start": one.is_needed,
                "failure": one.failure or None,
            }
            for one in tuned.ablation
        ],
        "trades": [
            {
                **_change(one.change),
                **_evidence_data(one.evidence),
                **_interval_data(one.interval),
                "failure": one.failure or None,
            }
            for one in tuned.trades
        ],
        "lines": [
            {"file": one.file, "section": one.section or None, "line": one.text}
            for one in _lines(shown, tuned.changes)
        ],
        "trials": [
            {
                "changes": dict(one.changes),
                "from": one.origin,
                **_evidence_data(one.evidence),
                "rounds": one.rounds,
                "failure": one.failure or None,
                "failed_runs": list(one.failed_runs),
            }
            for one in tuned.trials
        ],
        "capacities": _capacities_data(tuned.capacities),
        "cut_short": list(tuned.cut_short),
    }


def _capacities_data(outcome: ComparisonOutcome | None) -> dict[str, Any] | None:
    if outcome is None or outcome.capacities is None:
        return None
    default, changed = (asdict(one) for one in outcome.capacities)
    return {"default": default, "changed": changed, "runs": list(outcome.runs)}


def _change(change: tuple[str, str]) -> dict[str, Any]:
    return {"setting": change[0], "value": change[1]}


def _evidence_data(evidence: GainEvidence | None) -> dict[str, Any]:
    if evidence is None:
        return {"ratio": None, "deviation": None, "pairs": 0}
    known = evidence.deviation if math.isfinite(evidence.deviation) else None
    return {"ratio": exp(evidence.mean), "deviation": known, "pairs": evidence.pairs}


def _interval_data(interval: GainInterval | None) -> dict[str, Any]:
    known = interval if interval is not None and math.isfinite(interval.high) else None
    return {"low": known.low if known else None, "high": known.high if known else None}


def _proof_data(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "changes": dict(proof.changes),
        "gain": proof.interval.gain if proof.interval else None,
        **_interval_data(proof.interval),
        "pairs": proof.outcome.evidence.pairs if proof.outcome.evidence else 0,
        "not_full": proof.outcome.not_full or None,
        "failure": proof.outcome.failure or None,
        "runs": list(proof.outcome.runs),
        "failed_runs": list(proof.outcome.failed_runs),
    }
