"""Facts of a Keycloak: its options, from where they are set, and its Java."""

import re

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, Value
from loadstone.audit.readers import processes, sections
from loadstone.audit.readers.sections import number

ROLE = "keycloak"
# As "All configuration" of Keycloak 26 says. Without a size of its own, the pool begins with the
# fewest connections.
DEFAULTS: dict[str, Value] = {
    "db": "dev-file",
    "db-pool-min-size": 0,
    "db-pool-max-size": 100,
    "http-max-queued-requests": 0,  # no limit
    "log-level": "info",
    "metrics-enabled": False,
    "tracing-enabled": False,
    "tracing-sampler-ratio": 1.0,
}
# Options that only `kc.sh build` sets, which `kc.sh start` calls unless it is given --optimized.
BUILT = ("db", "metrics-enabled", "tracing-enabled")
VERBOSE = ("debug", "trace", "all")
_MB = {"": 1 / 2**20, "k": 1 / 2**10, "m": 1.0, "g": 2.0**10}


def read(document: Document) -> Facts:
    """Return the facts of the host's Keycloak; of several, the first."""
    found = document.pairs("keycloak")
    if "pid" not in found:
        return Facts(missing={"keycloak.": "no Keycloak runs on this host"})
    roles = frozenset({ROLE})
    if "problem" in found:
        return Facts(missing={"keycloak.": found["problem"]}, roles=roles)
    files = sections.files(document.text("keycloak_conf"))
    written = sections.settings(files)
    of_file = {option: value for (_, option), value in written.values.items()}
    options = _options(found, of_file)
    values: dict[str, Value] = {_name(option): value for option, value in options.items()}
    values["keycloak.db_pool_initial_size"] = options.get(
        "db-pool-initial-size", options["db-pool-min-size"]
    )
    levels = (part.strip() for part in str(options["log-level"]).split(","))
    values["keycloak.verbose_logs"] = tuple(
        level for level in levels if level.rpartition(":")[2].lower() in VERBOSE
    )
    values |= _of_process(document, found)
    origins = {
        _name(option): origin
        for (_, option), origin in written.origins.items()
        if not {f"environment.{option}", f"argument.{option}"} & found.keys()
    }
    why = sections.problem(files) or "the running server does not tell it"
    return Facts(values, {"keycloak.": why}, origins, roles)


def _options(found: dict[str, str], of_file: dict[str, str]) -> dict[str, Value]:
    """Return the options; the environment counts more than the file, and an argument more still."""
    texts = of_file | _of_source(found, "environment") | _of_source(found, "argument")
    texts = {option: text for option, text in texts.items() if option not in BUILT}
    texts |= _of_source(found, "built")
    defaults = {
        option: value
        for option, value in DEFAULTS.items()
        if option not in BUILT or "built" in found
    }
    return defaults | {
        option: sections.typed(text, DEFAULTS.get(option, 0)) for option, text in texts.items()
    }


def _of_source(found: dict[str, str], source: str) -> dict[str, str]:
    return {
        name.partition(".")[2]: value
        for name, value in found.items()
        if name.startswith(f"{source}.")
    }


def _name(option: str) -> str:
    return f"keycloak.{option.replace('-', '_')}"


def _of_process(document: Document, found: dict[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {
        f"keycloak.{name}": found[name] for name in ("version", "command") if name in found
    }
    if java := number(found.get("java", "").partition(".")[0]):
        values["keycloak.java"] = java
    if heap_mb := _heap_mb(found, document):
        values["keycloak.heap_mb"] = heap_mb
    pid = number(found["pid"])
    for process in processes.read(document):
        if process.pid == pid and process.open_files:
            values["keycloak.open_files"] = process.open_files
    return values


def _heap_mb(found: dict[str, str], document: Document) -> float | None:
    """Return the largest heap; Java takes a share of what its control group allows, if less.

    In a container whose limit is not known, the memory of the host says nothing.
    """
    size = re.fullmatch(r"(\d+)([kmg]?)", found.get("heap", "").lower())
    if size:
        return int(size[1]) * _MB[size[2]]
    percent = number(found.get("heap_percent"))
    memory = re.search(r"MemTotal:\s+(\d+) kB", document.text("memory"))
    limit = number(found.get("memory_bytes"))
    is_container = document.pairs("meta").get("container") == "1"
    if percent is None or memory is None or (is_container and limit is None):
        return None
    whole_mb = int(memory[1]) / 1024
    return percent / 100 * (whole_mb if limit is None else min(whole_mb, limit / 2**20))
