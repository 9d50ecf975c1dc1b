"""Lines of configuration files as the collector prints them."""

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from loadstone.audit.facts import SettingOrigin, Value

# Files of a process in a container, as its host sees them.
OF_CONTAINER = re.compile(r"^/proc/\d+/root(?=/)")
TRUE = ("true", "1", "yes", "on", "t", "y")


@dataclass(frozen=True, slots=True)
class File:
    """A configuration file: its numbered lines, or why it cannot be read."""

    path: str
    lines: tuple[tuple[int, str], ...] = ()
    problem: str | None = None

    @property
    def named(self) -> str:
        """The path by which its own process names it: in a container, without the way to that."""
        return OF_CONTAINER.sub("", self.path)


@dataclass(frozen=True, slots=True)
class IniSettings:
    """Settings of files in INI form, by (section, option), each with its origin."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)
    origins: dict[tuple[str, str], SettingOrigin] = field(default_factory=dict)


def files(text: str) -> tuple[File, ...]:
    """Return the files of a section: "@ path", then "number<TAB>line"."""
    found: list[File] = []
    for line in text.splitlines():
        number, tab, content = line.partition("\t")
        if line.startswith("@ "):
            found.append(File(line[2:].strip()))
        elif line.startswith("! ") and found:
            found[-1] = File(found[-1].path, problem=line[2:])
        elif tab and number.isdigit() and found:
            last = found[-1]
            found[-1] = File(last.path, (*last.lines, (int(number), content)))
    return tuple(found)


def settings(found: tuple[File, ...], lists: Container[tuple[str, str]] = ()) -> IniSettings:
    """Return the settings of INI files, as oslo.config reads them; later files and lines win.

    Options in `lists` are set once for each element; their values are joined by line ends, as are
    the lines of a value that goes on over several.
    """
    values: dict[tuple[str, str], str] = {}
    origins = {}
    for file in found:
        section, key = "DEFAULT", None
        for number, line in file.lines:
            if line[:1].isspace():
                if key is not None:
                    values[key] += f"\n{line.strip()}"
                continue
            if line.startswith("["):
                section, key = _group(line.strip().strip("[]").strip()), None
                continue
            option, value = assignment(line)
            if value is None:
                continue
            key = (section, option)
            before = f"{values[key]}\n" if key in lists and key in values else ""
            values[key] = before + value
            origins[key] = SettingOrigin(file.path, number)
    return IniSettings(values, origins)


def _group(section: str) -> str:
    """Return the group of options that a section sets: oslo.config ignores case but of DEFAULT."""
    return section if section == "DEFAULT" else section.lower()


def assignment(line: str) -> tuple[str, str | None]:
    """Return the option and the value of a line; None without an equals sign and a colon.

    The first of the two signs separates them. One pair of quotes around the value is no part of it.
    """
    sign = re.search("[=:]", line)
    if sign is None:
        return line.strip(), None
    value = line[sign.end() :].strip()
    if value[:1] in ("'", '"') and value[-1:] == value[:1]:
        value = value[1:-1]
    return line[: sign.start()].strip(), value


def problem(found: tuple[File, ...]) -> str | None:
    """Return why the first unreadable file cannot be read."""
    return next((f"{file.path} {file.problem}" for file in found if file.problem), None)


def typed(text: str, like: Value) -> Value:
    """Return a setting in the type of its default; text that does not fit stays text."""
    try:
        match like:
            case bool():
                return text.lower() in TRUE
            case int():
                return int(text)
            case float():
                return float(text)
            case tuple():
                return tuple(part.strip() for part in re.split("[,\n]", text) if part.strip())
    except ValueError:
        return text
    return text


def number(text: str | None) -> int | float | None:
    """Return the number in a text, or None."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text or "")
    return None


def fields(file: File) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the whitespace-separated fields of each line."""
    for number_, line in file.lines:
        if line.split():
            yield number_, line.split()
