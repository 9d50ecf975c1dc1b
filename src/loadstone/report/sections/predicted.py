"""A prediction of N from a low load as a section."""

from collections.abc import Iterator
from dataclasses import replace

from loadstone.report import figures, prediction
from loadstone.report.section import VALID, Answer, Certainty, Fact, NamedFigure
from loadstone.report.sections import workload
from loadstone.result.model import Measurement
from loadstone.search.low_load import of_low_load


def answer(measurement: Measurement) -> Answer:
    """Return the predicted N, or that there is none."""
    found = measurement.prediction
    said = prediction.headline(measurement)
    if found is None:
        return Answer("predicted N", figures.NOT_FOUND, "", said)
    if prediction.unwatched(measurement):
        bound = prediction.rate(found)
        return Answer("predicted N", f"at most {bound}", "per second", said, high=found.rate_rps)
    return Answer(
        label="predicted N",
        text=prediction.rate(found),
        unit="per second",
        sentence=said,
        value=found.rate_rps,
        low=found.low_rps,
        high=found.high_rps,
        interval=prediction.interval(found),
    )


def certainty(measurement: Measurement) -> Certainty:
    """Return whether N could be predicted."""
    return VALID if measurement.prediction is not None else Certainty("undecided", "not predicted")


def limit(_measurement: Measurement) -> str:
    """Return nothing: at low load nothing is full, and the limit at N is a fact."""
    return ""


def facts(measurement: Measurement) -> Iterator[Fact]:
    """Yield what limits at the predicted N, and what the prediction rests on."""
    found = measurement.prediction
    if found is None:
        return
    yield Fact("limited by", f"{found.limit}, at N", rank=1, is_column=True)
    at = figures.rate(found.at_rps)
    yield Fact("from", f"{found.requests:,} requests at {at}/s", rank=3)
    if why := prediction.unwatched(measurement):
        yield Fact("note", why, rank=2, tone="undecided")


def numbers(measurement: Measurement) -> Iterator[NamedFigure]:
    """Yield the figures of the low load."""
    low = of_low_load(measurement.trials)  # the other trials are requests one after the other
    return workload.numbers(replace(measurement, trials=(low,) if low else ()))
