"""Facts of the web server that runs Keystone."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, SettingOrigin, Value
from loadstone.audit.readers import processes, sections
from loadstone.audit.readers.processes import SeenProcess
from loadstone.audit.readers.sections import File, IniSettings

# uWSGI's own defaults (uwsgi-docs, Options).
UWSGI: dict[str, Value] = {
    "master": False,
    "lazy-apps": False,
    "enable-threads": False,
    "thunder-lock": False,
    "listen": 100,
    "buffer-size": 4096,
    "harakiri": 0,
    "max-requests": 0,
    "stats": "",
}
PROCESSES = ("processes", "workers")  # two names of one option
# Facts of several instances of uWSGI, or groups of daemons (a node each, or one for each endpoint).
SUMS = ("web.processes", "web.live_processes")
NEVER_IF_0 = ("uwsgi.max_requests", "web.max_requests")
WORSE_IF_MORE = ("uwsgi.processes", "web.threads", "web.worker_mb")
SHORT = {
    "-M": "master",
    "-T": "enable-threads",
    "-R": "max-requests",
    "-b": "buffer-size",
    "-l": "listen",
    "-p": "processes",
    "-t": "harakiri",
}
WITHOUT_VALUE = "acLhimMrT"  # short options (uwsgi 2.0, core/uwsgi.c); all others take a value
IMPLIED_BY = {"master": "stats", "enable-threads": "threads"}
FALSE = ("false", "off", "no", "0")  # of a switch; any other value switches it on
SWITCHES = ("master", "lazy-apps", "lazy", "enable-threads", "thunder-lock")  # need no value
# Files of settings that the collector does not read.
OTHER_FORMATS = ("--yaml", "--yml", "-y", "--xml", "-x", "--json", "--js", "-j")
OTHER_ENDINGS = (".yaml", ".yml", ".xml", ".json", ".js")
MPMS = ("event", "worker", "prefork")  # Apache's ways to run its own processes
HTTPD = ("apache2", "httpd")
# The group of a daemon of mod_wsgi, as its name or its first argument shows it (display-name).
DAEMON_TITLE = re.compile(r"\(?wsgi:([^)\s]*)")
# Servers of Python applications: the options that set their processes, and their threads.
PYTHON_SERVERS = {"gunicorn": ("--workers", "-w"), "granian": ("--workers",), "single_server": ()}
THREADS = {"gunicorn": ("--threads",), "granian": ("--blocking-threads",), "single_server": ()}
# An application as an argument, PACKAGE.MODULE or MODULE:NAME; modules that say nothing of what
# they serve (python:MODULE has settings); and endings of files.
APPLICATION = re.compile(r"(?=.*[.:])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::[A-Za-z_]\w*)?")
GENERIC = ("wsgi", "app", "application", "python")
FILES = (".py", ".conf", ".ini", ".sock", ".log", ".pid")
NOT_FOUND = "no running web server of Keystone was found"
# Options of WSGIDaemonProcess with mod_wsgi's defaults.
DAEMON = (
    ("web.processes", "processes", "1"),
    ("web.threads", "threads", "15"),
    ("web.max_requests", "maximum-requests", "0"),
)


def read(document: Document) -> Facts:
    """Return the web server's facts."""
    seen = processes.read(document)
    facts = (
        _uwsgi(seen, sections.files(document.text("uwsgi")))
        # Before Apache, which may pass the requests on to it.
        or _python_server(seen)
        or _apache(seen, sections.files(document.text("apache")))
        or _eventlet(seen)
    )
    if facts is None and sections.files(document.text("keystone")):
        facts = _unnamed_server(seen)
    unknown = {"web.": NOT_FOUND, "uwsgi.": NOT_FOUND, "apache.": NOT_FOUND}
    if facts is None:
        return Facts(missing=unknown)
    return replace(facts, values={**facts.values, **_limits(document)})


def _limits(document: Document) -> dict[str, Value]:
    """Return what the control groups of Keystone's processes allow, where they limit it."""
    quotas, limits = [], []
    for line in document.text("limits").splitlines():
        match [sections.number(word) for word in line.split()]:
            case [_, quota, period] if quota and period:
                quotas.append(quota / period)
            case [_, limit] if limit:
                limits.append(limit / 2**20)
    values: dict[str, Value] = {}
    if quotas:
        values["web.cpu_quota"] = min(quotas)
    if limits:
        values["web.memory_limit_mb"] = min(limits)
    return values


def _uwsgi(seen: tuple[SeenProcess, ...], uwsgi_files: tuple[File, ...]) -> Facts | None:
    # Debian's is called uwsgi_python3, or uwsgi-core.
    servers = tuple(process for process in seen if process.name.startswith("uwsgi"))
    # Under an emperor, the masters have a parent, too.
    masters = processes.leaders(tuple(p for p in servers if _is_keystone(p, uwsgi_files)))
    if not masters:
        return None
    in_order = sorted(masters, key=lambda master: master.pid)
    return _worst([_instance(master, servers, uwsgi_files) for master in in_order])


def _worst(each: list[Facts]) -> Facts:
    """Return the facts of all instances as one: processes add up, else the worst value counts.

    What is not known of one is not known.
    """
    values: dict[str, Value] = {}
    origins: dict[str, SettingOrigin] = {}
    for name in each[0].values:
        if not all(one.knows(name) for one in each):
            continue
        worst = min(each, key=partial(_goodness, name))
        values[name] = worst.values[name]
        if name in worst.origins:
            origins[name] = worst.origins[name]
    for name in (one for one in SUMS if one in values):
        values[name] = sum(sections.number(str(one.values[name])) or 0 for one in each)
    missing = {name: reason for one in reversed(each) for name, reason in one.missing.items()}
    return Facts(values, missing, origins, each[0].roles)


def _goodness(name: str, facts: Facts) -> float:
    value = facts.values[name]
    if not isinstance(value, bool | int | float):
        return 0.0
    if name in NEVER_IF_0 and not value:
        return math.inf
    return -float(value) if name in WORSE_IF_MORE else float(value)


def _instance(
    master: SeenProcess, servers: tuple[SeenProcess, ...], uwsgi_files: tuple[File, ...]
) -> Facts:
    own = _own_files(master, uwsgi_files)
    other = _other_format(master)
    # A server that names no file may have changed its title, and with it its arguments.
    is_renamed = not any(word.startswith("-") for word in master.arguments)
    chosen = own if own or other or not is_renamed else uwsgi_files
    settings = _settings(chosen, master)
    children = tuple(p for p in servers if p.parent == master.pid)
    unread = other or _unread(chosen, settings, master, len(children))
    file = own[0].path if own and unread is None else ""
    values: dict[str, Value] = {"web.server": "uwsgi", **_footprint((master, *children))}
    missing = {"apache.": "Keystone runs under uWSGI"}
    if unread is not None:
        missing |= {"uwsgi.": unread, "web.threads": unread}
    else:
        _put_options(values, missing, settings)
    _put_workers(values, missing, settings, is_read=unread is None)
    values["uwsgi.processes"] = values["web.processes"]
    if file:
        values["uwsgi.file"] = file
    if "uwsgi.max_requests" in values:
        values["web.max_requests"] = values["uwsgi.max_requests"]
    else:
        missing["web.max_requests"] = missing.get("uwsgi.max_requests", unread or "")
    origins = _uwsgi_origins(settings, file)
    return Facts(values, missing, origins, frozenset({"keystone"}))


def _put_options(values: dict[str, Value], missing: dict[str, str], settings: IniSettings) -> None:
    for option, usual in UWSGI.items():
        fact, text = uwsgi_fact(option), _first_of(settings, (option,))
        if text is None:
            # uWSGI switches these on for any such setting.
            values[fact] = _first_of(settings, (IMPLIED_BY.get(option, ""),)) is not None or usual
        elif isinstance(usual, bool):
            values[fact] = text.lower() not in FALSE
        elif not isinstance(usual, str) and _is_variable(text):
            missing[fact] = f"uWSGI computes {option} = {text} when it starts"
        else:
            values[fact] = sections.typed(text, usual)
    if (_first_of(settings, ("lazy",)) or "no").lower() not in FALSE:
        values["uwsgi.lazy_apps"] = True


def _put_workers(
    values: dict[str, Value], missing: dict[str, str], settings: IniSettings, *, is_read: bool
) -> None:
    """Add the processes and threads; the processes that run count where no setting tells them."""
    processes_text = _first_of(settings, PROCESSES)
    if processes_text is None and is_read:
        values["web.processes"] = 1  # uWSGI's default
    else:
        count = sections.number(processes_text)
        values["web.processes"] = values["web.live_processes"] if count is None else int(count)
    threads_text = _first_of(settings, ("threads",))
    threads = sections.number(threads_text or "1")
    if threads is None:
        missing["web.threads"] = f"uWSGI computes threads = {threads_text} when it starts"
    elif threads_text is not None or is_read:
        values["web.threads"] = int(threads)


def _first_of(settings: IniSettings, names: tuple[str, ...]) -> str | None:
    known = (settings.values.get(("uwsgi", name)) for name in names)
    return next((text for text in known if text is not None), None)


def _is_variable(text: str) -> bool:
    """Return whether uWSGI computes a value: `%k` (its processors), `%(name)`, `$(VARIABLE)`."""
    return "%" in text or "$(" in text


def uwsgi_fact(option: str) -> str:
    """Return the name of the fact that an option of uWSGI sets."""
    if option in (*PROCESSES, "threads"):
        return "web.threads" if option == "threads" else "web.processes"
    return f"uwsgi.{option.replace('-', '_')}"


def _uwsgi_origins(settings: IniSettings, file: str) -> dict[str, SettingOrigin]:
    """Return the lines of uWSGI's settings; a default points to the beginning of the file.

    What an argument sets is in no file.
    """
    options = {uwsgi_fact(option): (option,) for option in UWSGI}
    origins: dict[str, SettingOrigin] = {}
    for fact, names in {
        "web.processes": PROCESSES,
        "web.threads": ("threads",),
        "web.max_requests": ("max-requests",),
        **options,
    }.items():
        lines = (settings.origins.get(("uwsgi", name)) for name in names)
        line = next((one for one in lines if one is not None), None)
        if line is not None:
            origins[fact] = line
        elif file and _first_of(settings, names) is None:
            origins[fact] = SettingOrigin(file, 1, is_default=True)
    return origins


def _other_format(master: SeenProcess) -> str | None:
    """Return why settings in another form than INI are unknown, or None if none are named."""
    for before, argument in pairwise(("", *master.arguments)):
        is_file = not before.startswith("-") and "=" not in argument
        if argument.partition("=")[0] in OTHER_FORMATS or (
            is_file and argument.endswith(OTHER_ENDINGS)
        ):
            return f"uWSGI reads {argument}, and the audit reads only settings in INI form"
    return None


def _unread(
    found: tuple[File, ...], settings: IniSettings, master: SeenProcess, workers: int
) -> str | None:
    """Return why settings of a uWSGI may be missing, or None if all of them were read."""
    problem = sections.problem(found)
    if problem is not None:
        return problem
    # Its title may hide its arguments, and its environment may have settings, too.
    is_by_default = workers <= 1 and any(one.startswith("--") for one in master.arguments)
    if not is_by_default and not any(section == "uwsgi" for section, _ in settings.values):
        return "neither uWSGI's arguments nor a file of the host show its settings"
    return None


def _own_files(master: SeenProcess, found: tuple[File, ...]) -> tuple[File, ...]:
    """Return the files that a uWSGI names, in the order of its arguments."""
    by_path = {file.named: file for file in found}
    named = (by_path.get(word.removeprefix("--ini=")) for word in master.arguments)
    return tuple(dict.fromkeys(file for file in named if file is not None))


def _is_keystone(master: SeenProcess, found: tuple[File, ...]) -> bool:
    """Return whether a uWSGI serves Keystone: its arguments or its files say so."""
    mine = _own_files(master, found)
    text = " ".join([*master.arguments, *(line for file in mine for _, line in file.lines)])
    return "keystone" in text


_Setting = tuple[tuple[str, str], str, SettingOrigin | None]  # of arguments without an origin


def _settings(files: tuple[File, ...], master: SeenProcess) -> IniSettings:
    """Return a uWSGI's settings: those of its files and its arguments; the last one counts."""
    values: dict[tuple[str, str], str] = {}
    origins: dict[tuple[str, str], SettingOrigin | None] = {}
    for (section, option), value, origin in _in_order(files, master):
        for name in PROCESSES if option in PROCESSES else ():
            values.pop((section, name), None)
            origins.pop((section, name), None)
        values[section, option], origins[section, option] = value, origin
    return IniSettings(values, {key: origin for key, origin in origins.items() if origin})


def _in_order(files: tuple[File, ...], master: SeenProcess) -> Iterator[_Setting]:
    """Yield settings as uWSGI reads them: files without --ini come after all arguments."""
    left = list(files)
    words = (one for word in master.arguments for one in _apart(word))
    for word, following in pairwise((*words, "")):
        option, _, value = word.partition("=")
        if option == "--ini":
            for file in [one for one in left if one.named == (value or following)]:
                left.remove(file)
                yield from _of_file(file)
        elif (name := _option(option)) is not None:
            yield ("uwsgi", name), "true" if name in SWITCHES else value or following, None
    for file in left:
        yield from _of_file(file)


def _of_file(file: File) -> Iterator[_Setting]:
    found = sections.settings((file,))
    for key, value in found.values.items():
        yield key, value, found.origins[key]


def _apart(word: str) -> Iterator[str]:
    """Yield short options apart, as getopt reads them: -M, -p and 4 of `-Mp4`."""
    if not re.match("-[A-Za-z]", word):
        yield word
        return
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        yield f"-{letter}"
        if letters and letter not in WITHOUT_VALUE:
            yield letters
            return


def _option(word: str) -> str | None:
    """Return the setting that an argument names; None if the rules need none of that name."""
    name = SHORT.get(word, word.removeprefix("--") if word.startswith("--") else "")
    return name if name in (*UWSGI, *PROCESSES, "threads", "lazy") else None


def _footprint(own: tuple[SeenProcess, ...]) -> dict[str, Value]:
    workers = own[1:] or own
    values: dict[str, Value] = {
        "web.worker_mb": max((p.resident_kb for p in workers), default=0) / 1024,
        "web.live_processes": len(workers),
    }
    limits = [p.open_files for p in own if p.open_files]
    if limits:
        values["web.open_files"] = min(limits)
    return values


def _apache(seen: tuple[SeenProcess, ...], files: tuple[File, ...]) -> Facts | None:
    servers = processes.named(seen, *HTTPD)
    serving = [file for file in files if _serves_keystone(file)]
    if not servers or not serving:
        return None
    mpm = _mpm([line for file in files for line in _lines(file)])
    lines = [line for file in files for line in _loaded(_lines(file), mpm)]
    own = [line for line in lines if line.file in serving]
    groups = _process_groups(own)
    mode = _mode(own, groups)
    values: dict[str, Value] = {"web.server": "apache", "apache.mpm": mpm, "apache.mode": mode}
    missing = {"uwsgi.": "Keystone runs under Apache", "apache.": "Apache's files do not set it"}
    origins: dict[str, SettingOrigin] = {}
    per_child = _limit(lines, "maxconnectionsperchild", "maxrequestsperchild") or 0
    values["apache.max_connections_per_child"] = per_child
    if mode == "daemon":
        daemons = _daemon_settings(lines, own, groups)
        values |= daemons.values
        missing |= daemons.missing
        origins = dict(daemons.origins)
    elif mode == "embedded":
        values["web.max_requests"] = per_child
        why = "Keystone runs in Apache's own processes"
        missing |= {"web.processes": why, "web.threads": why}
    else:
        missing["web."] = "Apache passes the requests on to a server that was not found"
    most = _limit(lines, "maxrequestworkers", "maxclients")
    if most is not None:
        values["apache.max_request_workers"] = most
    leader = processes.leaders(servers)[0]
    values |= _footprint((leader, *(_daemons(seen, groups) or servers)))
    return Facts(values, missing, origins, frozenset({"keystone"}))


def _daemons(seen: tuple[SeenProcess, ...], groups: tuple[str, ...]) -> list[SeenProcess]:
    """Return the daemons of process groups; those of all groups if their titles tell none."""
    titles = ((p, DAEMON_TITLE.search(" ".join((p.name, *p.arguments[:1])))) for p in seen)
    daemons = [(p, title[1]) for p, title in titles if title is not None]
    # A title is cut off where the memory for it ends.
    of_groups = [p for p, name in daemons if name and any(one.startswith(name) for one in groups)]
    return of_groups or [p for p, _ in daemons]


@dataclass(frozen=True, slots=True)
class _Line:
    """A directive of Apache, in lower case, and its words."""

    file: File
    number: int
    directive: str
    words: tuple[str, ...]


def _lines(file: File) -> list[_Line]:
    return [
        _Line(file, number, fields[0].lower(), tuple(fields[1:]))
        for number, fields in sections.fields(file)
    ]


def _loaded(lines: list[_Line], mpm: str) -> list[_Line]:
    """Return the lines of a file without those in an <IfModule> of an MPM that is not loaded."""
    kept: list[_Line] = []
    open_: list[bool] = []  # of each <IfModule> around a line, whether Apache reads it
    for line in lines:
        if line.directive == "<ifmodule":
            open_.append(_holds(" ".join(line.words).rstrip("> "), mpm))
        elif line.directive.startswith("</ifmodule"):
            del open_[-1:]
        elif all(open_):
            kept.append(line)
    return kept


def _holds(condition: str, mpm: str) -> bool:
    """Return whether an <IfModule> holds; those of other modules than MPMs are taken to hold."""
    name = condition.removeprefix("!").removeprefix("mpm_")
    kind = name.removesuffix(".c").removesuffix("_module")
    if kind not in MPMS:
        return True
    return (kind == mpm) is not condition.startswith("!")


def _limit(lines: list[_Line], *names: str) -> int | float | None:
    """Return the number of a directive; the last line counts."""
    found = (line for line in reversed(lines) if line.directive in names and line.words)
    return next((sections.number(line.words[0]) for line in found), None)


def _process_groups(own: list[_Line]) -> tuple[str, ...]:
    """Return the groups of daemons that Keystone's files name; %{GLOBAL} is Apache itself.

    Each endpoint may have one, and a file may name those of other applications, too.
    """
    option, found = "process-group=", dict[str, None]()
    for line in own:
        match line.directive:
            case "wsgiprocessgroup":
                found |= dict.fromkeys(line.words[:1])
            case "wsgiscriptalias":
                given = (word for word in line.words if word.startswith(option))
                found |= dict.fromkeys(word.removeprefix(option) for word in given)
    groups = tuple(name for name in found if name != "%{GLOBAL}")
    return tuple(name for name in groups if "keystone" in name) or groups[:1]


def _daemon_settings(lines: list[_Line], own: list[_Line], groups: tuple[str, ...]) -> Facts:
    """Return the settings of Keystone's daemons, of all groups as one."""
    daemons = [line for line in lines if line.directive == "wsgidaemonprocess"]
    # The name of a group may be a variable.
    unnamed = [line for line in own if line in daemons] if len(groups) == 1 else []
    each = []
    for group in groups:
        named = [line for line in daemons if line.words[:1] == (group,)]
        found = next(iter(named or unnamed), None)
        if found is None:
            return Facts(missing={"web.": f"no WSGIDaemonProcess {group} was found"})
        each.append(_group_settings(found))
    return _worst(each)


def _group_settings(found: _Line) -> Facts:
    values: dict[str, Value] = {}
    missing: dict[str, str] = {}
    options = dict(word.partition("=")[::2] for word in found.words[1:])
    for fact, option, default in DAEMON:
        limit = sections.number(options.get(option, default))
        if limit is None:  # a variable of Apache's own
            missing[fact] = f"{found.file.path} says {option}={options[option]}"
        else:
            values[fact] = limit
    origin = SettingOrigin(found.file.path, found.number)
    return Facts(values, missing, {fact: origin for fact, _, _ in DAEMON})


def _serves_keystone(file: File) -> bool:
    names_it = "keystone" in file.path or any("keystone" in line for _, line in file.lines)
    return names_it and any(one.directive.startswith(("wsgi", "proxypass")) for one in _lines(file))


def _mpm(lines: list[_Line]) -> str:
    for line in lines:
        for kind in MPMS:
            if line.directive == "loadmodule" and line.words[:1] == (f"mpm_{kind}_module",):
                return kind
    return "prefork" if any(line.directive == "maxclients" for line in lines) else "event"


def _mode(own: list[_Line], groups: tuple[str, ...]) -> str:
    if groups:
        return "daemon"
    is_embedded = any(line.directive.startswith("wsgiscriptalias") for line in own)
    is_proxy = any(line.directive.startswith("proxypass") for line in own)
    return "proxy" if is_proxy and not is_embedded else "embedded"


def _python_server(seen: tuple[SeenProcess, ...]) -> Facts | None:
    for kind in PYTHON_SERVERS:
        own = [p for p in _of_kind(seen, kind) if "keystone" in " ".join(p.arguments)]
        if own:
            return _served_by(kind, own)
    return None


def _unnamed_server(seen: tuple[SeenProcess, ...]) -> Facts | None:
    """Return the facts of the only Python server of a host of Keystone that may serve anything.

    Its application may have any name, or none but in a file of settings.
    """
    servers = {kind: _of_kind(seen, kind) for kind in ("gunicorn", "granian")}
    leaders = processes.leaders(tuple(p for found in servers.values() for p in found))
    unnamed = [p for p in leaders if not _names_application(p)]
    if not unnamed:
        return None
    if len(leaders) == 1:
        kind = next(kind for kind, found in servers.items() if unnamed[0] in found)
        return _served_by(kind, servers[kind])
    title = f"{unnamed[0].name} (process {unnamed[0].pid})"
    reason = f"whether {title} serves Keystone cannot be told from its arguments"
    return Facts(missing={"web.": reason, "uwsgi.": reason, "apache.": reason})


def _names_application(server: SeenProcess) -> bool:
    found = [APPLICATION.fullmatch(one) for one in server.arguments if not one.endswith(FILES)]
    return any(one is not None and one[1] not in GENERIC for one in found)


def _of_kind(seen: tuple[SeenProcess, ...], kind: str) -> list[SeenProcess]:
    return [p for p in seen if any(kind in argument for argument in p.arguments[:3])]


def _served_by(kind: str, own: list[SeenProcess]) -> Facts:
    leaders = processes.leaders(tuple(own))
    children = tuple(p for p in own if p not in leaders)
    name = "wsgiref" if kind == "single_server" else kind
    values: dict[str, Value] = {"web.server": name}
    options = PYTHON_SERVERS[kind]
    values["web.processes"] = sum(_workers(one, children, options) for one in leaders)
    values |= _footprint((leaders[0], *(children or leaders)))
    reason = f"Keystone runs under {name}"
    missing = {"uwsgi.": reason, "apache.": reason}
    unknown = [why for one in leaders if (why := _unknown_threads(kind, one)) is not None]
    if unknown:
        missing["web.threads"] = unknown[0]
    else:
        threads = (sections.number(one.option(*THREADS[kind])) for one in leaders)
        values["web.threads"] = int(max(count or 1 for count in threads))
    return Facts(values, missing, roles=frozenset({"keystone"}))


def _unknown_threads(kind: str, leader: SeenProcess) -> str | None:
    """Return why the threads of a server's processes are unknown, or None if they are known."""
    if leader.option(*THREADS[kind]) is not None:
        return None
    if kind == "granian":
        return "granian computes its threads, because --blocking-threads is not set"
    if kind == "gunicorn" and leader.arguments[0].startswith("gunicorn: "):
        return "gunicorn shows no arguments, because it has changed its title"
    file = leader.option("-c", "--config") if kind == "gunicorn" else None
    return file and f"gunicorn reads {file}, and the audit reads only its arguments"


def _workers(
    leader: SeenProcess, children: tuple[SeenProcess, ...], options: tuple[str, ...]
) -> int:
    """Return how many processes serve under a leader: as it was told, else as many as run."""
    told = sections.number(leader.option(*options)) if options else None
    return int(told or 0) or max(1, sum(p.parent == leader.pid for p in children))


def _eventlet(seen: tuple[SeenProcess, ...]) -> Facts | None:
    own = [p for p in seen if any(a.endswith("keystone-all") for a in (p.name, *p.arguments[:3]))]
    if not own:
        return None
    values: dict[str, Value] = {"web.server": "eventlet", "web.threads": 1}
    values["web.processes"] = max(1, len(own) - 1)
    values |= _footprint(tuple(own))
    reason = "Keystone runs under eventlet"
    return Facts(values, {"uwsgi.": reason, "apache.": reason}, roles=frozenset({"keystone"}))
