"""Faults under steady load: the same load again and again, with one fault in each."""

from dataclasses import dataclass, field

from loadstone.config.capacity import Searched
from loadstone.config.model import MeasurementConfig, MeasurementGroup
from loadstone.engine.limits import most_connections
from loadstone.errors import InvalidInput
from loadstone.faults.observer import Planned
from loadstone.faults.sentence import Fault, Verb, read
from loadstone.generator.requests import Requests
from loadstone.plan.load import OpenLoad, OpenLoop, Stage, StagedLoad, peak_rps
from loadstone.plan.model import Limits, Placement
from loadstone.policy import Repeats
from loadstone.result import Measurement
from loadstone.search.model import TrialRequest

LEAST_REQUESTS = 50  # of the baseline: fewer say little of what is normal


@dataclass(frozen=True, slots=True)
class FaultTerms:
    """Which faults, under which load."""

    sentences: tuple[str, ...]
    rate_rps: float = 20.0
    repeats: int = 5
    baseline_s: float = 10.0  # before the fault
    observe_s: float = 20.0  # after it
    timeout_s: float = 10.0  # of a request
    placement: Placement = field(default_factory=Placement)


def fault_groups(wanted: Searched, terms: FaultTerms) -> tuple[MeasurementGroup, ...]:
    """Return a measurement for each sentence; InvalidInput says what is wrong."""
    if terms.rate_rps * terms.baseline_s < LEAST_REQUESTS:
        raise InvalidInput(
            f"--rate {terms.rate_rps:g} for --baseline {terms.baseline_s:g}s gives "
            f"{terms.rate_rps * terms.baseline_s:.0f} requests before the fault; "
            f"{LEAST_REQUESTS} are needed to know what is normal"
        )
    measurements = tuple(_measurement(wanted, terms, one) for one in terms.sentences)
    return (MeasurementGroup(measurements, wanted.contexts, wanted.most_existing),)


def _overload(terms: FaultTerms, fault: Fault) -> StagedLoad:
    """Return the load before, during and after an overload, which must end within it."""
    usual, high = terms.rate_rps, terms.rate_rps * fault.factor
    rest_s = terms.observe_s - fault.hold_s
    if rest_s <= 0:
        raise InvalidInput(
            f"fault {fault.sentence!r}: --observe {terms.observe_s:g}s must be longer than the "
            "overload, to see how the service comes back"
        )
    return StagedLoad(
        (
            Stage(terms.baseline_s, usual, usual),
            Stage(fault.hold_s, high, high),
            Stage(rest_s, usual, usual),
        )
    )


def load_s(terms: FaultTerms) -> float:
    """Return the time of load that all faults take."""
    return len(terms.sentences) * terms.repeats * (terms.baseline_s + terms.observe_s)


def _measurement(wanted: Searched, terms: FaultTerms, sentence: str) -> MeasurementConfig:
    fault, scenario = read(sentence), wanted.scenario
    seconds = terms.baseline_s + terms.observe_s
    load: OpenLoop = OpenLoad(terms.rate_rps, seconds)
    if fault.verb is Verb.OVERLOAD:
        load = _overload(terms, fault)
    request = TrialRequest(load, fault.sentence)
    # A standstill leaves as many in flight as are due until they time out.
    most = most_connections(max(256, round(1.5 * peak_rps(load) * terms.timeout_s)))
    limits = Limits(
        max_connections=most, request_timeout_s=terms.timeout_s, drain_s=terms.timeout_s
    )
    parameters = (
        *wanted.parameters,
        ("fault", fault.sentence),
        ("load", f"{terms.rate_rps:g}/s for {seconds:g} s, {terms.repeats} times"),
        ("fault at", f"{terms.baseline_s:g} s"),
        ("time-out", f"{terms.timeout_s:g} s"),
        ("users", wanted.users),
        ("HTTP", terms.placement.http),
    )
    return MeasurementConfig(
        record=Measurement(
            scenario=scenario.name,
            title=f"{fault.sentence}, {scenario.title}",
            request=scenario.request,
            policy="fixed",
            parameters=parameters,
        ),
        # A request that is sent again hides a failure.
        generator=Requests(scenario, wanted.arguments, limits, terms.placement, retries="never"),
        policy=Repeats(request, terms.repeats),
        heading=f"{fault.sentence}: {terms.rate_rps:g}/s of {scenario.title}",
        faults=(Planned(fault, terms.baseline_s),),
        budget_s=seconds * terms.repeats + 1,
    )
