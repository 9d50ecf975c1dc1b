"""Facts of haproxy."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, SettingOrigin, Value, merged
from loadstone.audit.readers import processes, sections, service
from loadstone.audit.readers.sections import File, number

DATABASE_PORTS = ("3306", "3307")
# Names of sections that only answer reads: mysql-read, galera_ro; but not mysql_read_write.
READS = re.compile(
    r"(^|[-_.])(reads?(?![-_.]?write)|read-?only|ro|slaves?|replicas?)($|[-_.])", re.IGNORECASE
)
# Algorithms of `balance` that spread the requests of one client (LB-02).
EVEN = ("roundrobin", "leastconn", "static-rr", "random")

# `server-template web 3 ...` and `server-template web 1-3 ...`: the number of servers, or a range.
TEMPLATE = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})")
MOST_SERVERS = 1000  # of a template that are counted

SECTIONS = (
    *("global", "defaults", "frontend", "backend", "listen"),
    # Others, whose lines belong to none of these.
    *("cache", "crt-store", "fcgi-app", "http-errors", "log-forward", "mailers", "peers"),
    *("program", "resolvers", "ring", "traces", "userlist"),
)


@dataclass(frozen=True, slots=True)
class _Block:
    """A section of haproxy's files: its lines, and the `defaults` that it starts from."""

    kind: str
    name: str
    origin: SettingOrigin
    usual: "_Block | None" = None
    lines: tuple[tuple[SettingOrigin, list[str]], ...] = field(default=())

    def own(self, keyword: str) -> list[str] | None:
        """Return the fields after a keyword; the last line counts."""
        return next((words[1:] for _, words in reversed(self.lines) if words[0] == keyword), None)

    def setting(self, keyword: str) -> list[str] | None:
        """Return the same, of its `defaults` where it has none of its own."""
        own = self.own(keyword)
        return self.usual.setting(keyword) if own is None and self.usual else own

    def all(self, keyword: str) -> list[list[str]]:
        return [words[1:] for _, words in self.lines if words[0] == keyword]

    def every(self, keyword: str) -> list[list[str]]:
        """Return the same, with those of its `defaults`."""
        return [*self.all(keyword), *(self.usual.every(keyword) if self.usual else ())]

    def line(self, keyword: str) -> SettingOrigin:
        """Return where a setting is written, or the beginning of the section."""
        found = (origin for origin, words in reversed(self.lines) if words[0] == keyword)
        own = next(found, None)
        if own is None and self.usual is not None and self.usual.setting(keyword) is not None:
            return self.usual.line(keyword)
        return own or self.origin


Blocks = tuple[_Block, ...]


def read(document: Document) -> Facts:
    """Return haproxy's facts."""
    found = sections.files(document.text("haproxy"))
    running = processes.named(processes.read(document), "haproxy")
    if not found or not running:
        return Facts(missing={"haproxy.": "haproxy does not run on this host"})
    problem = sections.problem(found)
    if problem is not None:
        return Facts(missing={"haproxy.": problem}, roles=frozenset({"balancer"}))
    blocks = _blocks(found)
    # A master serves nobody, and has limits of its own.
    masters = {process.parent for process in running}
    serving = [process for process in running if process.pid not in masters]
    files = [process.open_files for process in serving if process.open_files]
    # A connection takes two files. haproxy before 2.0 took 2,000 where nothing is set.
    limits = _limits(blocks, min(files) // 2 if files else None)
    values: dict[str, Value] = {}
    if files:
        values["haproxy.open_files"] = min(files)
    counters = service.parts(document).get("haproxy")
    if isinstance(counters, list):
        values["haproxy.queued"] = sum(_count(row, "qcur") for row in counters)
        values["haproxy.queued_most"] = max((_count(row, "qmax") for row in counters), default=0)
        values["haproxy.connect_errors"] = sum(_count(row, "econ") for row in counters)
    missing = {
        "haproxy.": "haproxy's files do not tell it",
        "haproxy.queued": "haproxy's stats socket cannot be read",
    }
    beginning = SettingOrigin(found[0].path, 1, is_default=True)
    origins = dict.fromkeys(("haproxy.global_maxconn", "haproxy.threads"), beginning)
    own = Facts(values, missing, origins, frozenset({"balancer"}))
    return merged((own, limits, _general(blocks), _keystone(blocks), _database(blocks)))


def _blocks(files: tuple[File, ...]) -> Blocks:
    """Return the sections of all files, in haproxy's order.

    A section starts from the `defaults` of its `from NAME`, else from the last one before it.
    """
    found: list[_Block] = []
    for file in files:
        for number_, fields in sections.fields(file):
            origin = SettingOrigin(file.path, number_)
            if fields[0] in SECTIONS:
                found.append(_begun(fields, origin, found))
            elif found:
                last = found[-1]
                lines = [(origin, words) for words in _of_template(fields)]
                found[-1] = replace(last, lines=(*last.lines, *lines))
    return tuple(found)


def _of_template(fields: list[str]) -> Iterator[list[str]]:
    """Yield a line; of a `server-template`, a line for each of its servers."""
    match fields:
        case ["server-template", prefix, count, *rest]:
            found = TEMPLATE.fullmatch(count)  # None: a variable of its environment
            first, last = (int(one or 1) for one in found.groups()) if found else (1, 1)
            for index in range(first, min(last + 1, first + MOST_SERVERS)):
                yield ["server", f"{prefix}{index}", *rest]
        case _:
            yield fields


def _begun(fields: list[str], origin: SettingOrigin, before: list[_Block]) -> _Block:
    kind, words = fields[0], fields[1:]
    name = words[0] if words and words[0] != "from" else ""
    parent = words[words.index("from") + 1] if "from" in words[:-1] else None
    of_all = [block for block in reversed(before) if block.kind == "defaults"]
    if parent is not None:
        usual = next((block for block in of_all if block.name == parent), None)
    else:
        usual = next(iter(of_all), None) if kind in ("frontend", "backend", "listen") else None
    return _Block(kind, name, origin, usual)


def _of(blocks: Blocks, *kinds: str) -> Blocks:
    return tuple(block for block in blocks if block.kind in kinds)


def _whole_number(words: list[str] | None) -> int | None:
    value = number(words[0]) if words else None
    return None if value is None else int(value)


def _limits(blocks: Blocks, usual_limit: int | None) -> Facts:
    values: dict[str, Value] = {}
    origins = {}
    overall = [b for b in _of(blocks, "global") if _whole_number(b.own("maxconn")) is not None]
    whole = _whole_number(overall[-1].own("maxconn")) if overall else usual_limit
    if whole is not None:
        values["haproxy.global_maxconn"] = whole
    for block in _of(blocks, "global")[-1:]:
        origins["haproxy.global_maxconn"] = (overall or [block])[-1].line("maxconn")
    entries = _entries(blocks)
    limits = [(_whole_number(b.setting("maxconn")) or whole, b) for b in entries]
    usual = entries[0].usual if entries else next(reversed(_of(blocks, "defaults")), None)
    default = (_whole_number(usual.setting("maxconn")) if usual else None) or whole
    if default is not None:
        values["haproxy.default_maxconn"] = default
        origins["haproxy.default_maxconn"] = _place(usual, blocks)
    known = [(limit, block.line("maxconn")) for limit, block in limits if limit is not None]
    if not limits and default is not None:
        known = [(default, _place(usual, blocks))]
    if known:
        smallest = min(known, key=lambda one: one[0])
        values["haproxy.frontend_maxconn"], origins["haproxy.frontend_maxconn"] = smallest
    own = [_whole_number(block.own("maxconn")) for block in _of(blocks, "frontend", "listen")]
    values["haproxy.frontends_sum"] = sum(limit for limit in own if limit is not None)
    return Facts(values, origins=origins)


def _place(usual: _Block | None, blocks: Blocks) -> SettingOrigin:
    return usual.line("maxconn") if usual else blocks[0].origin if blocks else SettingOrigin("", 1)


def _entries(blocks: Blocks) -> Blocks:
    """Return where requests for Keystone come in; where that is not known, every way to a server.

    A page of statistics leads to none.
    """
    ways = _of(blocks, "frontend", "listen")
    to_keystone = _leading(ways, _of_keystone(blocks))
    to_servers = tuple(b for b in ways if b.all("server") or _targets(b))
    return to_keystone or to_servers


def _leading(ways: Blocks, servers: Blocks) -> Blocks:
    """Return the frontends of these backends, and those of them that listen themselves."""
    names = {block.name for block in servers}
    return tuple(b for b in ways if b in servers or names.intersection(_targets(b)))


def _targets(block: _Block) -> set[str]:
    words = (*block.every("default_backend"), *block.all("use_backend"))
    return {one[0] for one in words if one}


def _general(blocks: Blocks) -> Facts:
    values: dict[str, Value] = {}
    origins = {}
    queues = [block.own("backlog") for block in _of(blocks, "defaults", "frontend", "listen")]
    lengths = [length for words in queues if (length := _whole_number(words)) is not None]
    if lengths:
        values["haproxy.backlog"] = max(lengths)
    values["haproxy.threads"] = 0  # one per core, the default
    for block in _of(blocks, "global"):
        origins["haproxy.threads"] = block.line("nbthread")
        if block.own("nbthread"):
            values["haproxy.threads"] = _whole_number(block.own("nbthread")) or 1
    bound = (words for block in _of(blocks, "frontend", "listen") for words in block.all("bind"))
    values["haproxy.has_tls"] = any("ssl" in words for words in bound)
    return Facts(values, origins=origins)


def _is_database(block: _Block) -> bool:
    ports = (words[1] for words in block.all("server") if len(words) > 1)
    return any(port.rpartition(":")[2] in DATABASE_PORTS for port in ports)


def _of_keystone(blocks: Blocks) -> Blocks:
    """Return the sections with Keystone's servers: by their name, or the only ones with servers."""
    serving = [b for b in _of(blocks, "backend", "listen") if b.all("server")]
    named = [b for b in serving if "keystone" in b.name or "identity" in b.name]
    rest = [block for block in serving if not _is_database(block)]
    return tuple(named or (rest if len(rest) == 1 else ()))


def _keystone(blocks: Blocks) -> Facts:
    """Return the facts of Keystone's sections; of several, the worst counts."""
    chosen = _of_keystone(blocks)
    if not chosen:
        return Facts({"haproxy.has_keystone": False})
    uneven = next((block for block in chosen if _balance(block) not in EVEN), chosen[0])
    unasked = next((block for block in chosen if not _has_http_check(block)), None)
    servers = (words for block in chosen for words in block.all("server"))
    known = (
        number(words[words.index("maxconn") + 1]) for words in servers if "maxconn" in words[:-1]
    )
    limits = [int(one) for one in known if one is not None]  # None: a variable of its environment
    values: dict[str, Value] = {
        "haproxy.has_keystone": True,
        "haproxy.balance": _balance(uneven),
        "haproxy.has_http_check": unasked is None,
    }
    if limits:
        values["haproxy.server_maxconn"] = min(limits)
    origins = {
        "haproxy.balance": uneven.line("balance"),
        "haproxy.has_http_check": (unasked or chosen[0]).origin,
    }
    return Facts(values, origins=origins)


def _balance(block: _Block) -> str:
    """Return how a section chooses a server, without parameters: random of `random(2)`."""
    words = block.setting("balance")
    return words[0].partition("(")[0] if words else "roundrobin"


def _has_http_check(block: _Block) -> bool:
    # Without the word `check`, haproxy never asks, whatever the option says.
    of_all = block.every("default-server")
    is_checked = any("check" in words for words in of_all) or all(
        "check" in words for words in block.all("server")
    )
    return is_checked and any(words[:1] == ["httpchk"] for words in block.every("option"))


def _database(blocks: Blocks) -> Facts:
    """Return the facts of the sections with database servers; of several, the worst counts."""
    chosen = tuple(b for b in _of(blocks, "backend", "listen") if _is_database(b))
    if not chosen:
        return Facts({"haproxy.database_writers": 0})
    # Any number of nodes may answer reads.
    writing = tuple(block for block in chosen if not READS.search(block.name)) or chosen
    block = max(writing, key=_writers)
    values: dict[str, Value] = {"haproxy.database_writers": _writers(block)}
    ways = _leading(_of(blocks, "frontend", "listen"), writing)
    limits = [limit for b in ways if (limit := _whole_number(b.setting("maxconn"))) is not None]
    if limits:
        values["haproxy.database_maxconn"] = min(limits)
    return Facts(values, origins={"haproxy.database_writers": block.origin})


def _writers(block: _Block) -> int:
    """Return how many servers get new connections at the same time.

    With `stick on dst`, all connections to one address go to one server.
    """
    servers = [words for words in block.all("server") if _is_used(words)]
    first = sum("backup" not in words for words in servers)
    if not first and ["allbackups"] in block.every("option"):
        first = len(servers)
    is_one = not first or any(words[:2] == ["on", "dst"] for words in block.all("stick"))
    return min(len(servers), 1) if is_one else first


def _is_used(server: Sequence[str]) -> bool:
    has_weight = any(pair == ("weight", "0") for pair in pairwise(server))
    return "disabled" not in server and not has_weight


def _count(row: object, name: str) -> int:
    text = row.get(name) if isinstance(row, dict) else None
    return int(number(str(text)) or 0)
