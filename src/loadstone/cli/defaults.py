"""Defaults of options: from configuration files, and environment variables of all options.

A user's own file may set any option except those that permit something. A file of the folder may
have been written by somebody else: it sets little, permits nothing and runs nothing.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from loadstone.cli.stored import OutputFile
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system.paths import expanded
from loadstone.system.redaction import is_secret, masked

VARIABLE = "LOADSTONE_CONFIG"  # another file than the user's; "-": no file at all
OF_ALL_COMMANDS = (VARIABLE, "LOADSTONE_HOME", "LOADSTONE_STORE")
OF_FOLDER = "loadstone.toml"
PREFIX = "LOADSTONE"
OF_SERVE = "LOADSTONE_SERVE_PASSWORD"  # of `serve`, whose password is no option
OF_TOKENS = ("token-life", "max-tokens")  # of `serve`, no secrets in spite of their names
# What the service of `serve` is like; the time of all comparisons of `tune`.
NO_LIMITS = {("serve", "max-connections"), ("tune", "budget")}
MOST_BYTES = 1 << 20
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")  # of a table
# Options that permit something: on the command line only.
PERMISSIONS = frozenset({
    *("anyway", "yes-load-this-target", "yes-break-this-target", "yes-change-this-target"),
    *("fleet-without-tls", "purge", "forget", "force"),
    "live-beyond-loopback", "metrics-beyond-loopback",
})  # fmt: skip
# What a file of the folder may set of a command: figures and names, no paths, hosts or programs.
# An argument of a scenario may be a URL to load, or the id of a project of the cloud.
SAFE = frozenset({
    *("at-most", "baseline", "budget", "capacity-left", "concurrency", "curve", "do"),
    *("fail-below", "fail-if-slower", "generator-cores", "http2", "load", "max-connections"),
    *("max-rate", "method", "objective", "observe", "pairs", "pairs-at-least", "predict", "rate"),
    *("progress", "quiet"),
    *("repeat", "repeats", "same-within", "scenario", "seconds", "seed", "step", "tag", "timeout"),
    *("tls-resumption", "until", "users", "workload"),
})  # fmt: skip
ELSEWHERE = "belongs in your own file (`loadstone config` names it) or on the command line"
NOT_SAFE = frozenset({"hit.method"})  # what is done at a URL; of capacity, how N is searched
# Tables that apply to every command with such an option: key in the table -> option.
SHARED: Mapping[str, Mapping[str, str]] = {
    "target": {"cloud": "cloud", "lab": "lab"},
    "store": {"location": "store"},
    "limits": {name: name for name in ("budget", "max-connections", "max-rate", "users")},
    "monitors": {"watch": "monitor"},
}
# [target] names what is loaded. Other commands with these options do something else by default.
LOADS = ("capacity", "fault", "run")


@dataclass(frozen=True, slots=True)
class Default:
    """A value of a configuration file."""

    table: str
    key: str
    value: Any
    source: Path
    is_of_folder: bool
    line: int | None = None  # of the key in its file, if it is found

    @property
    def name(self) -> str:
        """TABLE.KEY."""
        return f"{self.table}.{self.key}"

    @property
    def place(self) -> str:
        """FILE:LINE: TABLE.KEY."""
        return f"{_place_in(self.source, self.line)}: {self.name}"


def settings() -> tuple[Default, ...]:
    """Return the settings of the user's file and then of the folder's; InvalidInput if invalid."""
    chosen = os.environ.get(VARIABLE)
    if chosen == "-":
        return ()
    own = Path(chosen) if chosen else _own_file()
    found = [*_read(own, is_of_folder=False, is_named=bool(chosen))]
    # Path.is_file would raise in a folder that must not be entered, such as root's after sudo -u.
    if not chosen and os.path.isfile(folder := _folders_file()):
        nearer = [*_read(folder, is_of_folder=True)]
        if any(one.table == "target" for one in nearer):
            found = [one for one in found if one.table != "target"]  # --cloud there, --lab here
        found += nearer
    return tuple(found)


def files() -> tuple[Path, ...]:
    """Return the files that are looked for, in rising order."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return () if chosen == "-" else (Path(chosen),)
    return _own_file(), _folders_file()


def _own_file() -> Path:
    from platformdirs import user_config_path

    return user_config_path("loadstone") / "config.toml"


def _folders_file() -> Path:
    try:
        return Path.cwd() / OF_FOLDER
    except FileNotFoundError:
        raise EnvironmentUnusable("the working directory was removed; change to another") from None


def _read(path: Path, *, is_of_folder: bool, is_named: bool = False) -> Iterator[Default]:
    """Yield the settings of a file; one that is not there has none, unless it `is_named`."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if is_named:
            raise InvalidInput(
                f"{VARIABLE}: {path}: no such file; with {VARIABLE}=- no file is read"
            ) from None
        return
    except OSError as problem:
        raise InvalidInput(
            f"{path}: cannot be read: {problem.strerror}; with {VARIABLE}=- no file is read"
        ) from None
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"{path}: more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as wrong:
        why = "not UTF-8" if isinstance(wrong, UnicodeDecodeError) else f"not TOML: {wrong}"
        raise InvalidInput(f"{path}: {why}") from None
    lines = _lines(text)
    for table, keys in tree.items():
        if not isinstance(keys, dict):
            place = _place_in(path, lines.get(table))
            raise InvalidInput(
                f"{place}: {table} is not in a table; choose from [target], [store], [limits], "
                "[monitors] and one for each command, such as [capacity]"
            )
        for key, value in _flat(keys):
            line = lines.get(f"{table}.{key}")
            one = Default(table, key, value, path, is_of_folder, line)
            _require_valid(one)
            yield one
        if table == "target" and {"cloud", "lab"} <= keys.keys():
            place = _place_in(path, lines.get("target.lab"))
            raise InvalidInput(f"{place}: [target] names a cloud and a lab; keep one of them")


def _place_in(file: Path, line: int | None) -> str:
    return str(file) if line is None else f"{file}:{line}"


def _lines(text: str) -> Mapping[str, int]:
    """Return the line of each key: "table.key" to 1, 2, ..."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        key, is_set, _ = line.partition("=")
        if header := _HEADER.match(line):
            table = f"{_bare(header[1])}."
        elif is_set:
            found.setdefault(table + _bare(key), number)
    return found


def _bare(key: str) -> str:
    return re.sub(r"""[\s"']""", "", key)


def _flat(keys: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys and values; a key of a sub-table is "show.json"."""
    for key, value in keys.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _require_valid(one: Default) -> None:
    option = one.key.rpartition(".")[2]
    place = one.place
    is_named = is_secret(option) and option not in OF_TOKENS
    if is_named or _has_secret(one.value):
        raise InvalidInput(
            f"{place} holds a secret, which no configuration file may; use clouds.yaml, a password "
            "file or the environment"
        )
    if option in PERMISSIONS:
        raise InvalidInput(f"{place}: a permission is given on the command line only: --{option}")
    if not _is_plain(one.value):
        raise InvalidInput(f"{place} is not a text, a number, true, false or a list of these")
    shared = SHARED.get(one.table)
    if shared is not None and one.key not in shared:
        raise InvalidInput(f"{place}: not known; [{one.table}] has {', '.join(shared)}")
    if one.is_of_folder:
        _require_safe(one, place)


def _require_safe(one: Default, place: str) -> None:
    """Refuse what a file that somebody else may have written must not set for all commands."""
    values = one.value if isinstance(one.value, list) else [one.value]
    if one.table == "store":
        folder = one.source.parent.resolve()
        inside = (folder / expanded(str(one.value))).resolve()
        if "://" in str(one.value) or not inside.is_relative_to(folder):
            raise InvalidInput(f"{place} is not below {folder}: another store {ELSEWHERE}")
    elif one.table == "monitors":
        if any(not str(value).startswith("prometheus=http") for value in values):
            raise InvalidInput(f"{place}: other than prometheus=URL {ELSEWHERE}")
        if any("," in str(value) for value in values):
            raise InvalidInput(f"{place}: prometheus=URL with a file or a user {ELSEWHERE}")


def _is_safe(one: Default) -> bool:
    return one.key.rpartition(".")[2] in SAFE and one.name not in NOT_SAFE


def _has_secret(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return any(isinstance(text, str) and masked(text) != text for text in texts)


def _is_plain(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, str | int | float | bool) for part in parts)


def apply(ctx: click.Context, name: str) -> None:
    """Let configuration files set the defaults of a command that is about to run."""
    root = ctx.command
    found = settings()
    if not found or not isinstance(root, click.Group):
        return
    require_known(found, root)
    command = root.get_command(ctx, name)
    if command is not None:
        ctx.default_map = {name: _of(command, name, found)}


def _of(command: click.Command, path: str, found: tuple[Default, ...]) -> dict[str, Any]:
    if isinstance(command, click.Group):
        nested = {name: _of(sub, f"{path}.{name}", found) for name, sub in _commands(command)}
        return {name: values for name, values in nested.items() if values}
    options = {_long(option): option for option in _options(command)}
    values: dict[str, Any] = {}
    targets: dict[str, tuple[object, str]] = {}  # where a lab or a cloud is named
    for one in _rising(found):
        option = options.get(_option_of(one, path))
        if option is None or option.name is None:
            continue
        values[option.name] = _value(one, option)
        if option.name in ("lab", "cloud"):
            targets[option.name] = (one.source, one.table)
            for other in targets.keys() - {option.name}:
                if targets[other] != targets[option.name]:  # the nearer one counts
                    values.pop(other, None)
    return values


def _rising(found: tuple[Default, ...]) -> list[Default]:
    """Return settings in rising order; a command's own table is nearer than a shared one."""
    files = list(dict.fromkeys(one.source for one in found))
    return sorted(found, key=lambda one: (files.index(one.source), one.table not in SHARED))


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group by name, with those that are imported on use."""
    context = click.Context(group)
    for name in group.list_commands(context):
        if (command := group.get_command(context, name)) is not None:
            yield name, command


def _option_of(one: Default, path: str) -> str:
    """Return the option of a command that a setting sets; empty if it is another command's."""
    if "store" in (one.table, one.key) and os.environ.get("LOADSTONE_STORE"):
        return ""  # nearer than a file
    if one.table in SHARED:
        if one.table == "target" and path not in LOADS:
            return ""
        if one.table == "limits" and (path, one.key) in NO_LIMITS:
            return ""
        if one.table == "target" and (os.environ.get("OS_AUTH_URL") or os.environ.get("OS_CLOUD")):
            return ""
        return SHARED[one.table][one.key]
    command, _, option = f"{one.table}.{one.key}".rpartition(".")
    return option if command == path else ""


def _value(one: Default, option: click.Option) -> Any:
    value = one.value
    if isinstance(value, list) and not option.multiple:
        raise InvalidInput(f"{one.place}: takes one value, not a list")
    if "store" in (one.table, one.key) and "://" not in str(value):
        value = str(one.source.parent / expanded(str(value)))
    if isinstance(option.flag_value, str) and isinstance(value, bool):  # such as --predict
        return option.flag_value if value else option.default
    if option.multiple:
        return [_typed(part) for part in (value if isinstance(value, list) else [value])]
    return value if option.is_flag and isinstance(value, bool) else _typed(value)


def _typed(value: str | float) -> str:
    """Return a value as it is written on the command line, whose checks know no other types."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_source(refused: click.BadParameter) -> click.BadParameter:
    """Return an error that says where the wrong value comes from, unless it was typed."""
    ctx, option = refused.ctx, refused.param
    if ctx is None or not isinstance(option, click.Option):
        return refused
    source = ctx.get_parameter_source(option.name or "")
    if source is ParameterSource.ENVIRONMENT:
        place = str(option.envvar)
    elif source is ParameterSource.DEFAULT_MAP:
        place = _place(_path(ctx), option)
    else:
        return refused
    message = f"{refused.message} (from {place})"
    return click.BadParameter(message, ctx, option, refused.param_hint)


def _path(ctx: click.Context) -> str:
    """Return the command's name with those of its groups: "study.run"."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return ".".join(names)


def _place(path: str, option: click.Option) -> str:
    """Return the file and the key that set an option of a command."""
    places = [one.place for one in _rising(settings()) if _option_of(one, path) == _long(option)]
    return places[-1]


def _options(command: click.Command) -> Iterator[click.Option]:
    for param in command.params:
        if isinstance(param, click.Option) and not param.is_eager:
            yield param


def _long(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


def require_known(found: tuple[Default, ...], root: click.Group) -> None:
    """Refuse a setting of what does not exist, or what the folder's file must not set."""
    for one in found:
        if one.table in SHARED:
            continue
        context = click.Context(root)
        command = root.get_command(context, one.table)
        *groups, key = one.key.split(".")
        for name in groups:
            is_group = isinstance(command, click.Group)
            command = command.get_command(context, name) if is_group else None  # type: ignore[union-attr]  # is_group says so
        if command is None:
            raise InvalidInput(f"{one.place}: no command has this name")
        if isinstance(command, click.Group):
            raise InvalidInput(f"{one.place}: name the command, as in [{one.table}.NAME]")
        known = sorted(_long(option) for option in _options(command))
        if key not in known:
            raise InvalidInput(f"{one.place}: no such option; {_instead(key, known)}")
        if one.is_of_folder and not _is_safe(one):
            raise InvalidInput(f"{one.place} {ELSEWHERE}")


def require_values(found: tuple[Default, ...], root: click.Group) -> None:
    """Refuse a value, of a file or a variable, that the option which it sets does not take."""
    for path, command in _leaves(root):
        values = _of(command, path, found)
        context = click.Context(command, info_name=path)
        for option in _options(command):
            if isinstance(option.type, OutputFile):
                continue  # relative to where the command runs
            for value, is_variable in (
                (values.get(option.name or ""), False),
                (option.value_from_envvar(context), True),
            ):
                try:
                    option.type_cast_value(context, value)
                except click.BadParameter as refused:
                    place = str(option.envvar) if is_variable else _place(path, option)
                    raise InvalidInput(f"{place}: {refused.message}") from None


def _leaves(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that have no commands of their own, by path: "study.run"."""
    for name, command in _commands(group):
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name}.")
        else:
            yield f"{before}{name}", command


def _instead(key: str, known: Sequence[str]) -> str:
    similar = _similar(key, known)
    return f"did you mean {similar}?" if similar else f"it has {', '.join(known)}"


def _similar(name: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that a misspelt one most likely stands for."""
    # Imported here: no command that is right needs it.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, cutoff)), None)


def add_variables(command: click.Command, prefix: str) -> None:
    """Let every option be set by an environment variable, except those that permit something."""
    if isinstance(command, click.Group):
        for name, sub in _commands(command):
            add_variables(sub, f"{prefix}_{_as_variable(name)}")
        return
    for option in _options(command):
        if option.envvar is None and _long(option) not in PERMISSIONS:
            option.envvar = f"{prefix}_{_as_variable(_long(option))}"


def warn_without_effect(ctx: click.Context, name: str) -> None:
    """Write a line on stderr for each variable that is misspelt, or sets no option of a command."""
    for one in sorted(os.environ):
        if meant := _misspelt(one):
            click.echo(f"loadstone: {one} has no effect: did you mean {meant}?", err=True)
    root = ctx.command
    command = root.get_command(ctx, name) if isinstance(root, click.Group) else None
    names = sorted(one for one in os.environ if one != OF_SERVE and _command_of(one, root) == name)
    if command is None or not names:
        return
    known = sorted(_variables(command))
    for one in names:
        if one not in known:
            words = one.lower().replace("_", "-")
            permission = next((each for each in PERMISSIONS if words.endswith(each)), None)
            if permission is not None:
                why = f"a permission is given on the command line only: --{permission}"
            else:
                similar = _similar(one, known)
                meant = f"; did you mean {similar}?" if similar else ""
                why = f"no option of {name} has this variable{meant}"
            click.echo(f"loadstone: {one} has no effect: {why}", err=True)


def _misspelt(variable: str) -> str | None:
    """Return the variable of no single command that another one looks like; None if there is none.

    LOADSTONE_STOER is meant to be LOADSTONE_STORE.
    """
    ours, _, rest = variable.partition("_")
    if ours != PREFIX or variable in OF_ALL_COMMANDS:
        return None
    names = [one.removeprefix(f"{PREFIX}_") for one in OF_ALL_COMMANDS]
    meant = _similar(rest, names, cutoff=0.75)  # LOADSTONE_TOKEN is another program's
    return meant and f"{PREFIX}_{meant}"


def without_option(names: Iterable[str], root: click.Group) -> frozenset[str]:
    """Return the variables that look like one of ours, and set nothing."""
    known = {*_variables(root), OF_SERVE}
    return frozenset(
        one for one in names if one not in known and (_command_of(one, root) or _misspelt(one))
    )


def _command_of(variable: str, root: click.Command) -> str | None:
    """Return the command whose option a variable sets, or is meant to set; None if it is another.

    LOADSTONE_CAPCITY_MAX_RATE is meant for `capacity`.
    """
    ours, _, rest = variable.partition("_")
    word, _, option = rest.lower().partition("_")
    if ours != PREFIX or not option or not isinstance(root, click.Group):
        return None
    names = root.list_commands(click.Context(root))
    return word if word in names else _similar(word, names)


def _variables(command: click.Command) -> Iterator[str]:
    if isinstance(command, click.Group):
        for _, sub in _commands(command):
            yield from _variables(sub)
        return
    for option in _options(command):
        if isinstance(option.envvar, str):
            yield option.envvar


def _as_variable(name: str) -> str:
    return name.replace("-", "_").upper()


def nearest_target(
    ctx: click.Context, param: click.Parameter, value: str | None, other: str
) -> str | None:
    """Return a target's name; that of a file gives way to one that is named nearer.

    A target that the folder's file names cannot be another machine's: the user has to name it.
    """
    name = str(param.name)
    if value is None or ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        return value
    siblings = [one for one in ctx.command.params if one.name in (other, "oidc")]
    if any(
        ctx.params.get(str(one.name)) is not None or one.value_from_envvar(ctx) is not None
        for one in siblings
    ):
        return None
    of_folder = [
        one for one in settings() if one.table == "target" and one.key == name and one.is_of_folder
    ]
    if of_folder and ctx.params.get("yes"):
        raise click.UsageError(
            f"{of_folder[-1].source} names the target; with --yes-load-this-target name it "
            f"yourself: --{name} {value}"
        )
    return value
