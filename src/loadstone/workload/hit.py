"""Load on any URL, without a cloud."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from loadstone.analysis.goal import goal
from loadstone.engine.limits import most_connections
from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.rally.scenarios.http_requests import check_request, is_token, unsendable
from loadstone.result.model import Measurement
from loadstone.search.model import TrialRequest
from loadstone.workload.model import MeasurementConfig, MeasurementGroup
from loadstone.workload.policy import Fixed
from loadstone.workload.requests import Requests

NAME = "hit"


@dataclass(frozen=True, slots=True)
class HitTerms:
    """A request, and the load of it."""

    url: str = field(repr=False)  # its query may hold a secret
    load: OpenLoad | ClosedLoad
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: str | None = field(default=None, repr=False)
    status: int = 200  # any other is a failure
    verify: bool = True  # the certificate
    timeout_s: float = 30.0
    max_connections: int = 10_000
    objectives: tuple[str, ...] = ()
    placement: Placement = field(default_factory=Placement)

    @property
    def shown_url(self) -> str:
        """The URL without what may be secret: user, query and fragment."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


def require_url(url: str) -> None:
    """Raise InvalidInput for what is no URL that can be loaded."""
    try:
        url.encode()
    except UnicodeEncodeError:  # bytes of the command line
        raise InvalidInput("URL: is not UTF-8; write such bytes as %E9") from None
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError as wrong:
        raise InvalidInput(f"URL: {wrong}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise InvalidInput("URL: must be http://HOST[:PORT][/PATH] or https://...")
    if "@" in parts.netloc:
        raise InvalidInput("URL: names a user; give --header 'Authorization: Basic ...' instead")


def _require_headers(headers: Sequence[str]) -> None:
    lower = [name.lower() for name in headers]
    for number, name in enumerate(headers):
        if why := unsendable(name):
            raise InvalidInput(f"--header {name!r}: {why}")
        if lower.index(name.lower()) < number:
            raise InvalidInput(f"--header {name}: is given twice; join the values with a comma")


def hit_group(terms: HitTerms) -> MeasurementGroup:
    """Return the measurement; InvalidInput names an invalid term."""
    require_url(terms.url)
    if not is_token(terms.method):
        raise InvalidInput(f"--method {terms.method!r}: is not an HTTP method, such as GET")
    _require_headers([name for name, _ in terms.headers])
    scenario = check_request(
        {
            "url": terms.url,
            "method": terms.method,
            "headers": dict(terms.headers),
            "status_code": terms.status,
            "verify": terms.verify,
            **({} if terms.body is None else {"data": terms.body}),
        }
    )
    request = f"{terms.method} {terms.shown_url}"
    scenario = replace(scenario, name=NAME, title=request, request=request)
    load = terms.load
    if isinstance(load, ClosedLoad):
        how, purpose, connections = f"{load.workers} at once", "closed loop", load.workers
    else:
        how, purpose = f"{load.rate_rps:g}/s", "a constant rate"
        connections = most_connections(terms.max_connections)
    words = f"{how} for {load.duration_s:g} s"
    measurement = MeasurementConfig(
        record=Measurement(
            scenario=NAME,
            title=request,
            request=f"{request}, {terms.status} expected",
            policy="fixed",
            parameters=(
                ("load", words),
                ("time-out", f"{terms.timeout_s:g} s"),
                ("HTTP", terms.placement.http),
                *((("objectives", ", ".join(terms.objectives)),) if terms.objectives else ()),
            ),
        ),
        generator=Requests(
            scenario,
            limits=Limits(
                max_connections=connections,
                request_timeout_s=terms.timeout_s,
                drain_s=terms.timeout_s,
            ),
            placement=terms.placement,
        ),
        policy=Fixed(TrialRequest(load, purpose)),
        heading=f"{request}: {words}",
        goal=goal(terms.objectives),
    )
    return MeasurementGroup((measurement,))
