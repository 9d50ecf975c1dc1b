"""CPU profiles of workers: folded stacks, summed by parts of the work.

Stacks come from py-spy, which samples a worker many times a second. It does not reliably
distinguish running from sleeping threads, so waiting for a database counts as time of its driver; a
worker that waits for its next request is recognised by its stack and counts as idle.

A sample counts for its innermost function that belongs to one of PARTS, so time in the standard
library counts for its caller. Work of the interpreter, such as garbage collection, counts where it
happens.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

OTHER = "other"
# By file; the first match counts, and a library's callers are not considered.
PARTS = (
    ("password hashing", r"keystone/common/password_hash|^passlib/|^bcrypt/"),
    ("SQL driver", r"^(pymysql|psycopg2?|sqlite3|MySQLdb)/|sqlalchemy/engine/default\.py"),
    ("SQL ORM", r"^(sqlalchemy|oslo_db|pycadf_db)/|keystone/common/sql|/backends/sql(_model)?\.py"),
    ("token crypto", r"^cryptography/|keystone/token/(token_formatters|providers)|^jwt/"),
    ("policy", r"^oslo_policy/|keystone/common/(rbac_enforcer|policies)"),
    ("JSON schema", r"^(jsonschema|referencing)/|keystone/common/validation"),
    ("cache", r"^(dogpile|oslo_cache|pymemcache|memcache)/|keystone/common/cache"),
    ("catalog", r"keystone/catalog/"),
    ("garbage collection", r"^gc\.py"),
    ("serialisation", r"^(json|msgpack)/|oslo_serialization/|flask/json|/jsonutils\.py"),
    ("logging", r"^(logging|oslo_log|pycadf)/|keystone/notifications\.py"),
    (
        "middleware",
        r"^(webob|werkzeug|flask|flask_restful|osprofiler|oslo_middleware|keystonemiddleware|"
        r"stevedore|paste|debtcollector)/|keystone/(server|middleware)/",
    ),
    ("Keystone itself", r"^keystone/"),
)
# A worker whose innermost function is the web server's own is idle.
_IDLE = re.compile(r"^(uwsgi|gunicorn/.*|granian/.*)$")
_PARTS = tuple((name, re.compile(pattern)) for name, pattern in PARTS)
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(?::\d+)?\)$")
LEAST_SHARE = 0.002  # of all samples; narrower frames are omitted from the flame graph
DEEPEST = 120


@dataclass(frozen=True, slots=True)
class Frame:
    """One function in a flame graph."""

    name: str  # "Bcrypt.verify (keystone/common/password_hashers/bcrypt.py)"
    samples: int
    children: tuple["Frame", ...] = ()


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """Samples of one part of the work."""

    name: str
    samples: int


@dataclass(frozen=True, slots=True)
class CpuProfile:
    """CPU profile of the workers during one trial."""

    seconds: float
    rate_hz: int  # samples per second and thread
    workers: int
    samples: int  # of threads that had a request
    parts: tuple[ProfilePart, ...]  # the largest first
    flame: Frame
    profiler_cpu_s: float
    file: str | None = None  # folded stacks, relative to the run's folder in the store
    threads: int | None = None  # of each worker that serve requests; None: unknown

    @property
    def idle(self) -> float | None:
        """Share of the time in which a thread had no request; None: of an unknown number."""
        if self.threads is None:
            return None
        most = self.seconds * self.rate_hz * self.workers * self.threads
        return max(1.0 - self.samples / most, 0.0) if most > 0 else 0.0

    def share(self, part: ProfilePart) -> float:
        """Return the share of all samples that a part has."""
        return part.samples / self.samples if self.samples else 0.0


def read_folded(texts: Iterable[str]) -> Counter[tuple[str, ...]]:
    """Count stacks, with the outermost function first and without line numbers."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in (line for text in texts for line in text.splitlines()):
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            found[tuple(_without_line(one) for one in stack.split(";"))] += int(count)
    return found


def busy(stacks: Mapping[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    """Return the stacks of workers that handle a request."""
    return {stack: count for stack, count in stacks.items() if not _IDLE.search(_file(stack[-1]))}


def folded(stacks: Mapping[tuple[str, ...], int]) -> str:
    """Return stacks in the folded format of flame graph tools."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def parts(stacks: Mapping[tuple[str, ...], int]) -> tuple[ProfilePart, ...]:
    """Sum samples by part of the work, the largest first."""
    sums: Counter[str] = Counter()
    for stack, count in stacks.items():
        sums[part_of(stack)] += count
    return tuple(ProfilePart(name, count) for name, count in sums.most_common())


def part_of(stack: Iterable[str]) -> str:
    """Return the part that the innermost known function of a stack belongs to."""
    for frame in reversed(tuple(stack)):
        file = _file(frame)
        for name, pattern in _PARTS:
            if pattern.search(file):
                return name
    return OTHER


def flame(stacks: Mapping[tuple[str, ...], int]) -> Frame:
    """Return the tree of a flame graph, without frames below LEAST_SHARE."""
    total = sum(stacks.values())
    return Frame("all workers", total, tuple(_children(stacks, 0, LEAST_SHARE * total)))


def _children(stacks: Mapping[tuple[str, ...], int], depth: int, least: float) -> Iterator[Frame]:
    if depth >= DEEPEST:
        return
    below: dict[str, dict[tuple[str, ...], int]] = {}
    for stack, count in stacks.items():
        if len(stack) > depth:
            below.setdefault(stack[depth], {})[stack] = count
    for name, own in sorted(below.items()):
        samples = sum(own.values())
        if samples >= least:
            yield Frame(name, samples, tuple(_children(own, depth + 1, least)))


def _without_line(frame: str) -> str:
    found = _FRAME.match(frame)
    return f"{found['function']} ({found['file']})" if found else frame


def _file(frame: str) -> str:
    found = _FRAME.match(frame)
    return found["file"] if found else frame
