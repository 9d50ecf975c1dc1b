"""Facts of haproxy."""

from dataclasses import dataclass, field

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, SettingOrigin, Value
from loadstone.audit.readers import processes, sections, service
from loadstone.audit.readers.sections import File, number

DATABASE_PORTS = ("3306", "3307")


@dataclass(frozen=True, slots=True)
class _Block:
    """A section of haproxy.cfg: its lines by keyword."""

    kind: str
    name: str
    lines: tuple[tuple[int, list[str]], ...] = field(default=())

    def first(self, keyword: str) -> list[str] | None:
        return next((words[1:] for _, words in self.lines if words[0] == keyword), None)

    def all(self, keyword: str) -> list[list[str]]:
        return [words[1:] for _, words in self.lines if words[0] == keyword]

    def line(self, keyword: str) -> int:
        return next((number_ for number_, words in self.lines if words[0] == keyword), 1)


def read(document: Document) -> Facts:
    """Return haproxy's facts."""
    found = sections.files(document.text("haproxy"))
    running = processes.named(processes.read(document), "haproxy")
    if not found or not running:
        return Facts(missing={"haproxy.": "haproxy does not run on this host"})
    problem = sections.problem(found)
    if problem is not None:
        return Facts(missing={"haproxy.": problem}, roles=frozenset({"balancer"}))
    blocks = tuple(block for file in found for block in _blocks(file))
    files = [process.open_files for process in running if process.open_files]
    # A connection takes two files. haproxy before 2.0 took 2,000 where nothing is set.
    values = _limits(blocks, min(files) // 2 if files else None)
    values |= _keystone(blocks) | _database(blocks)
    if files:
        values["haproxy.open_files"] = min(files)
    counters = service.parts(document).get("haproxy")
    if isinstance(counters, list):
        values["haproxy.queued"] = sum(_count(row, "qcur") for row in counters)
        values["haproxy.queued_most"] = max((_count(row, "qmax") for row in counters), default=0)
        values["haproxy.connect_errors"] = sum(_count(row, "econ") for row in counters)
    missing = {
        "haproxy.": "haproxy.cfg does not tell it",
        "haproxy.queued": "haproxy's stats socket cannot be read",
    }
    return Facts(values, missing, _origins(found[0].path, blocks), frozenset({"balancer"}))


def _blocks(file: File) -> list[_Block]:
    found: list[_Block] = []
    for number_, fields in sections.fields(file):
        if fields[0] in ("global", "defaults", "frontend", "backend", "listen"):
            found.append(_Block(fields[0], fields[1] if len(fields) > 1 else ""))
        elif found:
            last = found[-1]
            found[-1] = _Block(last.kind, last.name, (*last.lines, (number_, fields)))
    return found


def _of(blocks: tuple[_Block, ...], *kinds: str) -> tuple[_Block, ...]:
    return tuple(block for block in blocks if block.kind in kinds)


def _limit(block: _Block) -> int | None:
    fields = block.first("maxconn")
    value = number(fields[0]) if fields else None
    return None if value is None else int(value)


def _limits(blocks: tuple[_Block, ...], usual_limit: int | None) -> dict[str, Value]:
    values: dict[str, Value] = {}
    overall = [limit for block in _of(blocks, "global") if (limit := _limit(block)) is not None]
    usual = [limit for block in _of(blocks, "defaults") if (limit := _limit(block)) is not None]
    own = [_limit(block) for block in _of(blocks, "frontend", "listen")]
    whole = overall[-1] if overall else usual_limit
    default = usual[-1] if usual else whole
    if whole is not None:
        values["haproxy.global_maxconn"] = whole
    limits = [limit or default for limit in own] or [default]
    if None not in limits:
        values["haproxy.frontend_maxconn"] = min(limit for limit in limits if limit is not None)
    explicit = [limit for limit in own if limit is not None]
    values["haproxy.frontends_sum"] = sum(explicit)
    queues = [block.first("backlog") for block in _of(blocks, "defaults", "frontend", "listen")]
    lengths = [length for words in queues if words and (length := number(words[0])) is not None]
    if lengths:
        values["haproxy.backlog"] = max(lengths)
    threads = [block.first("nbthread") for block in _of(blocks, "global")]
    known = [number(words[0]) for words in threads if words]
    values["haproxy.threads"] = int(known[0] or 1) if known else 0  # 0: one per core, the default
    bound = (words for block in _of(blocks, "frontend", "listen") for words in block.all("bind"))
    values["haproxy.has_tls"] = any("ssl" in words for words in bound)
    return values


def _is_database(block: _Block) -> bool:
    ports = (words[1] for words in block.all("server") if len(words) > 1)
    return any(port.rpartition(":")[2] in DATABASE_PORTS for port in ports)


def _keystone(blocks: tuple[_Block, ...]) -> dict[str, Value]:
    serving = [b for b in _of(blocks, "backend", "listen") if b.all("server")]
    named = [b for b in serving if "keystone" in b.name or "identity" in b.name]
    rest = [block for block in serving if not _is_database(block)]
    chosen = named or (rest if len(rest) == 1 else [])
    if not chosen:
        return {"haproxy.has_keystone": False}
    block, usual = chosen[0], _of(blocks, "defaults")
    options = [words for one in (block, *usual) for words in one.all("option")]
    balance = next((b.first("balance") for b in (block, *usual) if b.first("balance")), None)
    servers = block.all("server")
    known = (number(w[w.index("maxconn") + 1]) for w in servers if "maxconn" in w[:-1])
    # Without the word `check`, haproxy never asks, whatever the option says.
    of_all = [words for one in (block, *usual) for words in one.all("default-server")]
    is_checked = any("check" in words for words in of_all) or all("check" in w for w in servers)
    limits = [int(one) for one in known if one is not None]  # None: a variable of its environment
    values: dict[str, Value] = {
        "haproxy.has_keystone": True,
        "haproxy.balance": balance[0] if balance else "roundrobin",
        "haproxy.has_http_check": is_checked and any(w[:1] == ["httpchk"] for w in options),
    }
    if limits:
        values["haproxy.server_maxconn"] = min(limits)
    return values


def _database(blocks: tuple[_Block, ...]) -> dict[str, Value]:
    chosen = [b for b in _of(blocks, "backend", "listen") if _is_database(b)]
    if not chosen:
        return {"haproxy.database_writers": 0}
    servers = chosen[0].all("server")
    limit = _limit(chosen[0])
    values: dict[str, Value] = {
        "haproxy.database_writers": sum("backup" not in words for words in servers)
    }
    if limit is not None:
        values["haproxy.database_maxconn"] = limit
    return values


def _origins(path: str, blocks: tuple[_Block, ...]) -> dict[str, SettingOrigin]:
    origins = {}
    for block in blocks:
        if block.kind == "global":
            origins["haproxy.global_maxconn"] = SettingOrigin(path, block.line("maxconn"))
            origins["haproxy.threads"] = SettingOrigin(path, block.line("nbthread"))
        if block.kind in ("backend", "listen"):
            origins["haproxy.balance"] = SettingOrigin(path, block.line("balance"))
    for name in ("frontend_maxconn", "has_http_check"):
        origins[f"haproxy.{name}"] = SettingOrigin(path, 1)
    return origins


def _count(row: object, name: str) -> int:
    text = row.get(name) if isinstance(row, dict) else None
    return int(number(str(text)) or 0)
