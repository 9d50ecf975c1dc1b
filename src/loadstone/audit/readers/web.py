"""Facts of the web server that runs Keystone."""

from collections.abc import Mapping

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
HTTPD = ("apache2", "httpd")
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
    uwsgi_files = sections.files(document.text("uwsgi"))
    for reader in (_uwsgi, _apache, _python_server, _eventlet):
        facts = reader(seen, uwsgi_files, sections.files(document.text("apache")))
        if facts is not None:
            return facts
    return Facts(missing={"web.": NOT_FOUND, "uwsgi.": NOT_FOUND, "apache.": NOT_FOUND})


def _uwsgi(
    seen: tuple[SeenProcess, ...], uwsgi_files: tuple[File, ...], _: tuple[File, ...]
) -> Facts | None:
    servers = processes.named(seen, "uwsgi")
    masters = [p for p in processes.leaders(servers) if _is_keystone(p, uwsgi_files)]
    if not masters:
        return None
    master = masters[0]
    own = tuple(file for file in uwsgi_files if file.path in master.arguments)
    settings = _with_arguments(sections.settings(own or uwsgi_files), master)
    values: dict[str, Value] = {"web.server": "uwsgi"}
    origins: dict[str, SettingOrigin] = {}
    for option, default in UWSGI.items():
        fact = f"uwsgi.{option.replace('-', '_')}"
        text = settings.values.get(("uwsgi", option))
        values[fact] = default if text is None else sections.typed(text, default)
        if ("uwsgi", option) in settings.origins:
            origins[fact] = settings.origins["uwsgi", option]
    if settings.values.get(("uwsgi", "lazy"), "").lower() in sections.TRUE:
        values["uwsgi.lazy_apps"] = True
    children = tuple(p for p in servers if p.parent == master.pid)
    for fact, names in (
        ("web.processes", ("processes", "workers")),
        ("web.threads", ("threads",)),
    ):
        known = [name for name in names if ("uwsgi", name) in settings.values]
        values[fact] = int(sections.number(settings.values["uwsgi", known[0]]) or 1) if known else 1
        if known and ("uwsgi", known[0]) in settings.origins:
            origins[fact] = settings.origins["uwsgi", known[0]]
    file = own[0].path if own else ""
    for fact in ("web.processes", "web.threads", *(f"uwsgi.{o.replace('-', '_')}" for o in UWSGI)):
        if file:
            origins.setdefault(fact, SettingOrigin(file, 1))
    if file:
        values["uwsgi.file"] = file
    values |= _footprint((master, *children))
    return Facts(values, {"apache.": "Keystone runs under uWSGI"}, origins, frozenset({"keystone"}))


def _is_keystone(master: SeenProcess, found: tuple[File, ...]) -> bool:
    """Return whether a uWSGI serves Keystone: its arguments or its files say so."""
    mine = (file for file in found if file.path in master.arguments)
    text = " ".join([*master.arguments, *(line for file in mine for _, line in file.lines)])
    return "keystone" in text


def _with_arguments(found: IniSettings, master: SeenProcess) -> IniSettings:
    values = dict(found.values)
    names = (*UWSGI, "processes", "workers", "threads")
    for name in names:
        value = master.option(f"--{name}")
        if value is not None and not value.startswith("-"):
            values["uwsgi", name] = value
        elif f"--{name}" in master.arguments:
            values["uwsgi", name] = "true"
    if master.option("-p") is not None:
        values["uwsgi", "processes"] = str(master.option("-p"))
    return IniSettings(values, found.origins)


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


def _apache(
    seen: tuple[SeenProcess, ...], _: tuple[File, ...], files: tuple[File, ...]
) -> Facts | None:
    servers = processes.named(seen, *HTTPD)
    daemons = [p for p in seen if p.name.startswith(("(wsgi", "wsgi")) or "wsgi:" in p.name]
    serving = [file for file in files if _serves_keystone(file)]
    if not servers or not serving:
        return None
    lines = [(file, number, fields) for file in files for number, fields in sections.fields(file)]
    directives = {fields[0].lower(): fields[1:] for _, _, fields in lines}
    values: dict[str, Value] = {
        "web.server": "apache",
        "apache.mpm": _mpm(directives, lines),
        "apache.mode": _mode(lines),
    }
    origins, missing = {}, dict[str, str]()
    daemon = [
        (file, number, fields)
        for file, number, fields in lines
        if fields[0].lower() == "wsgidaemonprocess" and (len(files) == 1 or file in serving)
    ]
    if daemon:
        file, number, fields = daemon[0]
        options = dict(word.partition("=")[::2] for word in fields[2:])
        for fact, option, default in DAEMON:
            limit = sections.number(options.get(option, default))
            if limit is None:  # a variable of Apache's own
                missing[fact] = f"{file.path} says {option}={options[option]}"
            else:
                values[fact] = limit
        origins = dict.fromkeys(("web.processes", "web.threads"), SettingOrigin(file.path, number))
    for fact, names in (
        ("apache.max_request_workers", ("maxrequestworkers", "maxclients")),
        ("apache.max_connections_per_child", ("maxconnectionsperchild", "maxrequestsperchild")),
    ):
        known = [directives[name] for name in names if directives.get(name)]
        value = sections.number(known[0][0]) if known else None
        if value is not None:
            values[fact] = value
    values.setdefault("apache.max_connections_per_child", 0)
    leader = processes.leaders(servers)[0]
    values |= _footprint((leader, *(daemons or servers)))
    missing |= {"uwsgi.": "Keystone runs under Apache", "apache.": "Apache's files do not set it"}
    return Facts(values, missing, origins, frozenset({"keystone"}))


def _serves_keystone(file: File) -> bool:
    text = f"{file.path} " + " ".join(line for _, line in file.lines)
    return "keystone" in text and ("WSGI" in text or "ProxyPass" in text)


def _mpm(directives: Mapping[str, list[str]], lines: list[tuple[File, int, list[str]]]) -> str:
    for _, _, fields in lines:
        for kind in ("event", "worker", "prefork"):
            if fields[0].lower() == "loadmodule" and fields[1:2] == [f"mpm_{kind}_module"]:
                return kind
    return "prefork" if "maxclients" in directives else "event"


def _mode(lines: list[tuple[File, int, list[str]]]) -> str:
    names = {fields[0].lower() for _, _, fields in lines}
    if "wsgidaemonprocess" in names:
        return "daemon"
    proxied = any(f[0].lower() == "proxypass" and "uwsgi:" in " ".join(f) for _, _, f in lines)
    return "proxy" if proxied else "embedded"


def _python_server(
    seen: tuple[SeenProcess, ...], _: tuple[File, ...], __: tuple[File, ...]
) -> Facts | None:
    kinds = {"gunicorn": ("--workers", "-w"), "granian": ("--workers",), "single_server": ()}
    for kind, options in kinds.items():
        own = [p for p in seen if any(kind in argument for argument in p.arguments[:3])]
        if not own:
            continue
        leader = processes.leaders(tuple(own))[0]
        children = tuple(p for p in own if p.parent == leader.pid)
        name = "wsgiref" if kind == "single_server" else kind
        values: dict[str, Value] = {"web.server": name}
        workers = sections.number(leader.option(*options)) if options else None
        threads = sections.number(leader.option("--threads", "--blocking-threads"))
        values["web.processes"] = workers or max(1, len(children))
        values["web.threads"] = threads or 1
        values |= _footprint((leader, *children))
        reason = f"Keystone runs under {name}"
        missing = {"uwsgi.": reason, "apache.": reason}
        return Facts(values, missing, roles=frozenset({"keystone"}))
    return None


def _eventlet(
    seen: tuple[SeenProcess, ...], _: tuple[File, ...], __: tuple[File, ...]
) -> Facts | None:
    own = [p for p in seen if any(a.endswith("keystone-all") for a in (p.name, *p.arguments[:3]))]
    if not own:
        return None
    values: dict[str, Value] = {"web.server": "eventlet", "web.threads": 1}
    values["web.processes"] = max(1, len(own) - 1)
    values |= _footprint(tuple(own))
    reason = "Keystone runs under eventlet"
    return Facts(values, {"uwsgi.": reason, "apache.": reason}, roles=frozenset({"keystone"}))
