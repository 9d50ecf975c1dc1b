"""Faults under steady load: one measurement for each fault."""

from dataclasses import dataclass, field, replace
from functools import partial

from loadstone.engine.limits import most_connections
from loadstone.errors import InvalidInput, MeasurementInvalid
from loadstone.faults.model import Planned
from loadstone.faults.sentence import MOMENTARY, ROLLING, Fault, Verb, read
from loadstone.plan.load import OpenLoad, OpenLoop, Stage, StagedLoad, peak_rps
from loadstone.plan.model import Limits, Placement
from loadstone.result.model import Measurement
from loadstone.search.model import TrialRequest
from loadstone.workload.capacity import SearchTerms, search_group
from loadstone.workload.model import MAX_RATE_RPS, MeasurementConfig, MeasurementGroup
from loadstone.workload.policy import Repeats
from loadstone.workload.searchable import USERS, RequestOptions, Searchable

LEAST_REQUESTS = 50  # in the baseline: fewer do not show what is normal
# After a fault, over all repeats: 270 without an error show a recovery (analysis/recovery.py), and
# effects last beyond the fault.
LEAST_AFTER = 400
MOST_AFTER_S = 120.0  # of one load, to send them
OBSERVE_S = 20.0  # after a fault ...
AFTER_OVERLOAD_S = 40.0  # ... after an overload, whose backlog must drain ...
ROLLING_S = 60.0  # ... of a rolling restart ...
UPGRADE_S, USUAL_UPGRADE_S = 240.0, 100.0  # ... and at most of an upgrade: its load ends with it
LOAD = 0.6  # share of N
LEAST_N_RPS = 1.0  # with a lower N, only the baseline would take many minutes


@dataclass(frozen=True, slots=True)
class FaultTerms:
    """Terms of fault measurements."""

    sentences: tuple[str, ...]
    rate_rps: float | None = None  # None: a share of N, which is measured first
    load: float = LOAD  # the share
    repeats: int = 5
    baseline_s: float = 10.0  # before the fault
    observe_s: float | None = None  # after it; None: as long as such a fault needs
    timeout_s: float = 10.0  # of a request
    search_s: float = 60.0  # of load, for each N
    measures_left: bool = False  # also N while each fault is held
    max_rate_rps: float = MAX_RATE_RPS
    placement: Placement = field(default_factory=Placement)


def fault_groups(searched: Searchable, terms: FaultTerms) -> tuple[MeasurementGroup, ...]:
    """Return a measurement for each sentence, after a search for N if one is needed.

    Raises InvalidInput for an invalid term.
    """
    faults = [read(one) for one in terms.sentences]
    rate_rps = terms.rate_rps
    if rate_rps is not None and rate_rps * terms.baseline_s < LEAST_REQUESTS:
        raise InvalidInput(
            f"--rate {rate_rps:g} for --baseline {terms.baseline_s:g}s gives "
            f"{rate_rps * terms.baseline_s:.0f} requests before the fault; "
            f"{LEAST_REQUESTS} are needed to know what is normal"
        )
    measurements = [] if rate_rps is not None and not terms.measures_left else [_n(searched, terms)]
    for fault in faults:
        if fault.verb is Verb.UPGRADE and terms.repeats > 1:
            raise InvalidInput(f"fault {fault.sentence!r}: happens once; --repeats 1")
        if fault.verb is Verb.EXPIRE and terms.placement.http != "1.1":
            raise InvalidInput(
                f"fault {fault.sentence!r}: HTTP/2 keeps its connections, and only who opens one "
                "looks at a certificate; leave out --http2"
            )
        if rate_rps is not None:
            measurements.append(_measurement(searched, terms, fault, rate_rps, ""))
        else:
            at_share = partial(_at_share, searched, terms, fault)
            measurements.append(replace(at_share(LEAST_REQUESTS), at_capacity=at_share))
        if terms.measures_left:
            measurements.append(_left(searched, terms, fault))
    return (MeasurementGroup(tuple(measurements), searched.contexts, searched.most_existing),)


def load_s(terms: FaultTerms) -> float:
    """Return the approximate load time of all faults."""
    times = [
        USUAL_UPGRADE_S if read(one).verb is Verb.UPGRADE else _observe_s(terms, read(one))
        for one in terms.sentences
    ]
    return _searches_s(terms) + sum(terms.repeats * (terms.baseline_s + one) for one in times)


def most_load_s(terms: FaultTerms) -> float:
    """Return the maximum load time of all faults."""
    # The last answers come within the time-out.
    baseline_s = (terms.baseline_s if terms.rate_rps else _baseline_s(terms, LEAST_N_RPS)) + 1
    least_rps = None if terms.rate_rps is not None else terms.load * LEAST_N_RPS
    times = [_observe_s(terms, read(one), least_rps) + terms.timeout_s for one in terms.sentences]
    return _searches_s(terms) + sum(terms.repeats * (baseline_s + one) for one in times)


def most_rate_rps(terms: FaultTerms) -> float:
    """Return the highest rate that a search or an overload may come to."""
    rate_rps = terms.load * terms.max_rate_rps if terms.rate_rps is None else terms.rate_rps
    factors = (read(one).factor for one in terms.sentences)
    return max([terms.max_rate_rps, *(rate_rps * factor for factor in factors)])


def _searches_s(terms: FaultTerms) -> float:
    count = len(terms.sentences) if terms.measures_left else 0
    return (count + (terms.rate_rps is None or terms.measures_left)) * terms.search_s


def _n(searched: Searchable, terms: FaultTerms) -> MeasurementConfig:
    search = SearchTerms(
        budget_s=terms.search_s,
        max_rate_rps=terms.max_rate_rps,
        placement=terms.placement,
        accepts_range=True,  # a load can be offered at a share of its lower bound
    )
    return search_group((searched,), search).measurements[0]


def _left(searched: Searchable, terms: FaultTerms, fault: Fault) -> MeasurementConfig:
    """Return the search for N while a fault is held."""
    if fault.verb in (*MOMENTARY, *ROLLING, Verb.OVERLOAD):
        raise InvalidInput(
            f"fault {fault.sentence!r}: is over at once, or does not affect the service, so "
            "it has no remaining capacity to measure"
        )
    search = _n(searched, terms)
    title = f"capacity left: {fault.sentence}"
    return replace(
        search,
        record=replace(
            search.record,
            title=f"{title}, {searched.scenario.title}",
            held_fault=fault.sentence,
        ),
        heading=title,
        held=fault,
    )


def _at_share(
    searched: Searchable,
    terms: FaultTerms,
    fault: Fault,
    capacity_rps: float,
    *,
    is_lower_bound: bool = False,
) -> MeasurementConfig:
    """Return the measurement at a share of N, with a baseline that is long enough."""
    name = "the lower bound of N" if is_lower_bound else "N"
    if capacity_rps < LEAST_N_RPS:
        raise MeasurementInvalid(
            f"{name} is {capacity_rps:.3g}/s; a share of an N below {LEAST_N_RPS:g}/s does not "
            "show what a fault does within minutes; give --rate and a --baseline that is long "
            "enough"
        )
    rate_rps = terms.load * capacity_rps
    terms = replace(
        terms,
        baseline_s=_baseline_s(terms, capacity_rps),
        observe_s=_observe_s(terms, fault, rate_rps),
    )
    share = f" ({100 * terms.load:.0f} % of {name})"
    return _measurement(searched, terms, fault, rate_rps, share)


def _baseline_s(terms: FaultTerms, capacity_rps: float) -> float:
    """Return the duration of the baseline at a share of N."""
    return max(terms.baseline_s, LEAST_REQUESTS / (terms.load * capacity_rps))


def _observe_s(terms: FaultTerms, fault: Fault, chosen_rps: float | None = None) -> float:
    """Return the duration of the load from the fault on.

    At a low rate that Loadstone chose, it is longer, to show whether the service recovers.
    """
    if terms.observe_s is not None:
        return terms.observe_s
    if fault.verb in ROLLING:
        return UPGRADE_S if fault.verb is Verb.UPGRADE else ROLLING_S
    held_s = 0.0 if fault.lasts_to_the_end else fault.hold_s
    if fault.verb is Verb.OVERLOAD:
        usual_s = fault.hold_s + AFTER_OVERLOAD_S
    else:
        usual_s = max(OBSERVE_S, held_s + OBSERVE_S / 2)
    if chosen_rps is None:
        return usual_s
    rate_rps = chosen_rps * (fault.after if fault.verb is Verb.OVERLOAD else 1.0)
    return max(usual_s, held_s + min(MOST_AFTER_S, LEAST_AFTER / (terms.repeats * rate_rps)))


def _load(terms: FaultTerms, fault: Fault, rate_rps: float) -> OpenLoop:
    """Return the load; an overload must end within it."""
    observe_s = _observe_s(terms, fault)
    if fault.verb is not Verb.OVERLOAD:
        return OpenLoad(rate_rps, terms.baseline_s + observe_s)
    high, after = rate_rps * fault.factor, rate_rps * fault.after
    rest_s = observe_s - fault.hold_s
    if rest_s <= 0:
        raise InvalidInput(
            f"fault {fault.sentence!r}: --observe {observe_s:g}s must be longer than the "
            "overload, to see how the service comes back"
        )
    return StagedLoad(
        (
            Stage(terms.baseline_s, rate_rps, rate_rps),
            Stage(fault.hold_s, high, high),
            Stage(rest_s, after, after),
        )
    )


def _measurement(
    searched: Searchable, terms: FaultTerms, fault: Fault, rate_rps: float, share: str
) -> MeasurementConfig:
    """Return the measurement at a rate; `share` says what the rate is of N."""
    scenario, load = searched.scenario, _load(terms, fault, rate_rps)
    seconds = terms.baseline_s + _observe_s(terms, fault)
    request = TrialRequest(load, fault.sentence)
    # During a standstill, all due iterations stay in flight until they time out.
    most = most_connections(max(256, round(1.5 * peak_rps(load) * terms.timeout_s)))
    limits = Limits(
        max_connections=most, request_timeout_s=terms.timeout_s, drain_s=terms.timeout_s
    )
    times = "once" if terms.repeats == 1 else f"{terms.repeats} times"
    parameters = (
        *searched.parameters,
        ("fault", fault.sentence),
        ("load", f"{rate_rps:.3g}/s{share} for {seconds:.0f} s, {times}"),
        ("fault at", f"{terms.baseline_s:.3g} s"),
        ("time-out", f"{terms.timeout_s:g} s"),
        (USERS, searched.users),
        ("HTTP", terms.placement.http),
        *((("connections", "one for each iteration"),) if fault.verb is Verb.EXPIRE else ()),
    )
    return MeasurementConfig(
        record=Measurement(
            scenario=scenario.name,
            title=f"{fault.sentence}, {scenario.title}",
            request=scenario.request,
            policy="fixed",
            parameters=parameters,
        ),
        # A retried request hides a failure. Clients verify a certificate only when they connect.
        generator=searched.generator(
            limits,
            terms.placement,
            RequestOptions("never", opens_connections=fault.verb is Verb.EXPIRE),
        ),
        policy=Repeats(request, terms.repeats),
        heading=f"{fault.sentence}: {rate_rps:.3g}/s of {scenario.title}",
        faults=(Planned(fault, terms.baseline_s),),
        # The last answers may come as late as the time-out.
        budget_s=(seconds + terms.timeout_s) * terms.repeats + 1,
    )
