"""A Prometheus server, by queries that a file describes."""

import base64
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from loadstone.cloud.body import BodyTooLong, CappedBody
from loadstone.errors import InvalidInput
from loadstone.monitor.metrics import COUNTER, Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.sockets import MOST_BYTES
from loadstone.system import yaml_file

if TYPE_CHECKING:
    import requests

QUERIES = Path(__file__).with_name("prometheus.yaml")
EVERY_S = 5.0  # exporters are scraped more rarely than that
TIMEOUT_S = 5.0
VECTOR = "vector"
REFUSED = (401, 403)
FIELDS = ("query", "source", "metric", "unit")


@dataclass(frozen=True, slots=True)
class Query:
    """An instant query; its labels fill the places in `source`, as machine@{instance}."""

    query: str
    source: str
    metric: str
    unit: str = "1"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The password of a user, or a bearer token, in a file that is read for each query."""

    file: Path
    user: str = ""  # empty: the file has a token

    def header(self) -> str:
        """Return the header Authorization; Unreadable if the file cannot be read."""
        try:
            secret = self.file.read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise Unreadable(f"{self.file}: {getattr(problem, 'strerror', 'not UTF-8')}") from None
        if not self.user:
            return f"Bearer {secret}"
        return f"Basic {base64.b64encode(f'{self.user}:{secret}'.encode()).decode()}"


@dataclass(slots=True)
class Prometheus:
    """One server, queried every EVERY_S seconds."""

    url: str
    queries: tuple[Query, ...]
    credentials: Credentials | None = None
    is_remote: ClassVar[bool] = True
    _session: "requests.Session | None" = field(default=None, init=False)
    _next_s: float = field(default=0.0, init=False)
    # By exporter: its counters at the last read.
    _counters: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"Prometheus at {self.url}"

    def read(self) -> Iterator[Reading]:
        """Run all queries if due; Unreadable if none returns a value.

        Counters are only of scrapes that were made since the last read.
        """
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        found = [reading for query in self.queries for reading in self._run_query(query)]
        if not found:
            raise Unreadable("none of its queries has a result")
        scraped = self._scraped(found)
        yield from (
            one
            for one in found
            if not one.metric.endswith(COUNTER) or one.source.partition("/")[0] in scraped
        )

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()

    def _scraped(self, found: Sequence[Reading]) -> frozenset[str]:
        """Return the exporters that were scraped since the last read: one of their counters grew.

        Between two scrapes (often 15 s) Prometheus repeats the last one. A rate from a repeated
        counter would have the growth of a scrape interval in another time. At the first read, it is
        not known how old the scrape is.
        """
        counters: dict[str, dict[tuple[str, str], float]] = {}
        for one in found:
            if one.metric.endswith(COUNTER):
                exporter = one.source.partition("/")[0]
                counters.setdefault(exporter, {})[one.source, one.metric] = one.value
        before, self._counters = self._counters, counters
        return frozenset(
            one for one, values in counters.items() if one in before and before[one] != values
        )

    def _run_query(self, query: Query) -> Iterator[Reading]:
        import requests

        if self._session is None:
            self._session = requests.Session()
            self._session.trust_env = False  # no netrc: its passwords are for other programs
        headers = {} if self.credentials is None else {"Authorization": self.credentials.header()}
        where = f"{self.url.rstrip('/')}/api/v1/query"
        try:
            answer = self._session.get(
                where,
                params={"query": query.query},
                headers=headers,
                timeout=TIMEOUT_S,
                stream=True,
                allow_redirects=False,  # credentials are for this server only
            )
            if answer.status_code in REFUSED:
                raise Unreadable(
                    f"it answers HTTP {answer.status_code}; check user= and password-file=, or "
                    "token-file="
                )
            answer.raw = CappedBody(answer.raw, MOST_BYTES)
            data = json.loads(answer.content)
        except BodyTooLong as too_long:
            raise Unreadable(f"{too_long}; is it a Prometheus?") from None
        except (requests.RequestException, ValueError, RecursionError) as problem:
            raise Unreadable(f"{type(problem).__name__}; is it a Prometheus?") from None
        if not isinstance(data, dict) or data.get("status") != "success":
            why = data.get("error") if isinstance(data, dict) else None
            raise Unreadable(f"it refuses {query.query!r}: {why or answer.status_code}")
        kind = data["data"].get("resultType", VECTOR)
        if kind != VECTOR:
            raise Unreadable(f"{query.query!r} gives a {kind}; it must give an instant vector")
        seen: set[str] = set()
        for row in data["data"]["result"]:
            source = query.source.format_map(_Labels(row["metric"]))
            value = float(row["value"][1])
            if (
                source in seen
            ):  # of two counters in one series, each reading would look like a reset
                raise Unreadable(
                    f"{query.query!r} has several results for {source or 'one source'}; sum them, "
                    "or name a label that tells them apart in its source (queries=FILE)"
                )
            seen.add(source)
            if math.isfinite(value):  # 0/0 of the user's own query
                yield Reading(source, query.metric, value, query.unit)


class _Labels(dict[str, str]):
    """Labels in the place of names in a source, whose parts a slash would separate."""

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(key).replace("/", "_")

    def __missing__(self, key: str) -> str:
        return ""


def read_queries(path: Path = QUERIES) -> tuple[Query, ...]:
    """Read a file of queries; InvalidInput names the entry and the field."""
    file = yaml_file.read(path)
    if not isinstance(file.content, list) or not file.content:
        raise InvalidInput(
            f"{file.place()}: must be a list of queries, each with query, source, metric"
        )
    return tuple(
        _query(entry, partial(file.place, index), f"entry {index + 1}")
        for index, entry in enumerate(file.content)
    )


def _query(entry: object, place: yaml_file.Place, name: str) -> Query:
    if not isinstance(entry, dict):
        raise InvalidInput(f"{place()}: {name}: must have query, source and metric, not {entry!r}")
    for key, value in entry.items():
        if key not in FIELDS:
            raise InvalidInput(
                f"{place(key)}: {name}: {key}: no such field; the fields are {', '.join(FIELDS)}"
            )
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"{place(key)}: {name}: {key} must be a text, not {value!r}")
    for key in FIELDS[:3]:
        if key not in entry:
            raise InvalidInput(f"{place()}: {name}: {key} is missing")
    try:
        entry["source"].format_map(_Labels())
    except (ValueError, IndexError, AttributeError, KeyError):
        raise InvalidInput(
            f"{place('source')}: {name}: source {entry['source']!r} must be a text with label "
            "names in braces, such as machine@{instance}"
        ) from None
    return Query(**entry)
