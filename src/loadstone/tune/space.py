"""Spaces: the settings that a tuning may change, read from a YAML file.

They are settings of the lab, or variables of a command that changes a cloud.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from loadstone.audit.facts import Facts
from loadstone.audit.rule import filled
from loadstone.errors import InvalidInput
from loadstone.lab.keystone import settings as lab_settings
from loadstone.rally.task import messages
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.tree import Path as Place
from loadstone.rally.task.tree import Tree, parse
from loadstone.system import yaml_file
from loadstone.system.paths import existing
from loadstone.system.redaction import is_secret_option, is_secret_variable, masked
from loadstone.system.strict_model import StrictModel

Pairs = tuple[tuple[str, str], ...]  # KEY, VALUE as `lab up --with` takes them

BUILTIN = Path(__file__).parent / "spaces"
LAB = "lab"  # the built-in space
MOST_SETTINGS = 100
MOST_LEVELS = 100  # of a setting
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# What shells and loaders read: a setting of this name would change how the command itself runs.
_TAKEN = re.compile(r"PATH|HOME|SHELL|ENV|BASH_ENV|IFS|LD_.*|PYTHON.*|OS_.*|LOADSTONE_.*")


class SettingKind(StrEnum):
    """Whether a setting costs something that load does not show."""

    GAIN = "gain"
    TRADE = "trade"  # lowers security or correctness; never called a gain


class ChangeEffort(StrEnum):
    """What it takes to change a setting."""

    RESTART = "restart"
    REBUILD = "rebuild"  # another program
    DATA = "data"  # data that exist stay as they are, or must be made anew


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting with its levels."""

    name: str  # a key of `lab up --with`, or a variable of a command
    levels: tuple[str, ...]
    kind: SettingKind
    change: ChangeEffort
    price: str  # what it costs: memory, risk; empty: nothing that is known
    source: str
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()  # values that other settings must have

    def applies(self, values: Mapping[str, str]) -> bool:
        """Return whether its condition holds."""
        return all(values.get(name) in allowed for name, allowed in self.when)


@dataclass(frozen=True, slots=True)
class Space:
    """The settings that may change, and those of the default."""

    title: str
    settings: tuple[Setting, ...]  # gains
    trades: tuple[Setting, ...]
    default: Pairs  # all settings of the default deployment
    is_of_lab: bool = True  # False: the settings are variables of a command

    def values(self, changes: Pairs) -> dict[str, str]:
        """Return the value of each setting of the default with these changes."""
        return {**dict(self.default), **dict(changes)}

    def setting(self, name: str, value: str) -> Setting:
        """Return the setting to which a change belongs."""
        named = [one for one in (*self.settings, *self.trades) if one.name == name]
        return next((one for one in named if value in one.levels), named[0])

    def choices(self, setting: Setting, values: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return the levels to choose from, in order; None leaves the default.

        A setting whose condition does not hold has no choice.
        """
        if not setting.applies(values):
            return (None,)
        usual = dict(self.default).get(setting.name)
        if usual in setting.levels:
            return tuple(None if level == usual else level for level in setting.levels)
        return (None, *setting.levels)

    def is_possible(self, changes: Pairs) -> bool:
        """Return whether the lab accepts the combination."""
        if not self.is_of_lab:
            return True
        try:
            lab_settings.read([*self.default, *changes])
        except InvalidInput:
            return False
        return True

    def in_order(self, changes: Pairs) -> Pairs:
        """Return the changes that can be chosen, in the order of the space."""
        wanted, values = dict(changes), self.values(())
        found = list[tuple[str, str]]()
        for one in self.settings:
            level = wanted.get(one.name)
            is_level = level in one.levels and level != values.get(one.name)
            if level is not None and is_level and one.applies(values):
                found.append((one.name, level))
                values[one.name] = level
        return tuple(found)

    def applying(self, changes: Sequence[tuple[str, str]]) -> Pairs:
        """Return changes without those whose condition does not hold; of a name the last counts."""
        kept = tuple(dict(changes).items())
        while True:
            values = self.values(kept)
            applying = tuple(one for one in kept if self.setting(*one).applies(values))
            if applying == kept:
                return kept
            kept = applying  # conditions of others may need what was left out

    @property
    def combinations(self) -> int:
        """Return how many combinations there are, at most: conditions make them fewer."""
        total = 1
        for one in self.settings:
            total *= len(set(one.levels) | {dict(self.default).get(one.name)})
        return total


class _Range(StrictModel):
    low: int
    high: int
    times: int | None = Field(default=None, ge=2)  # each level is so many times the one before
    step: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if (self.times is None) == (self.step is None):
            raise ValueError("needs step or times")
        if self.low >= self.high:
            raise ValueError(f"low must be below high, not {self.low} and {self.high}")
        if self.times and self.low < 1:
            raise ValueError("low must be 1 or more with times")
        if len(list(islice(self.levels(), MOST_LEVELS + 1))) > MOST_LEVELS:
            raise ValueError(f"has more than {MOST_LEVELS} levels")
        return self

    def levels(self) -> Iterator[str]:
        """Yield the levels from low to high."""
        level = self.low
        while level <= self.high:
            yield str(level)
            level = level * (self.times or 1) + (self.step or 0)


def _require_scalar(level: object) -> object:
    if not isinstance(level, bool | int | float | str):
        raise ValueError("must be a text, a number, true or false")
    return level


_Scalar = Annotated[bool | int | float | str, BeforeValidator(_require_scalar)]


class _SettingFile(StrictModel):
    name: str
    levels: tuple[_Scalar, ...] = Field(default=(), max_length=MOST_LEVELS)
    range: _Range | None = None
    when: dict[str, tuple[_Scalar, ...]] = Field(default_factory=dict)
    kind: SettingKind = SettingKind.GAIN
    change: ChangeEffort = ChangeEffort.RESTART
    price: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if bool(self.levels) == (self.range is not None):
            raise ValueError("needs levels or a range")
        return self


class _SpaceFile(StrictModel):
    title: str = ""
    settings: tuple[_SettingFile, ...] = Field(max_length=MOST_SETTINGS)


def find(
    name: str,
    default: Pairs,
    kept: Pairs = (),
    cpus: int | None = None,
    *,
    is_of_lab: bool = True,
) -> Space:
    """Return the built-in space of this name, or the space in this file.

    `default` are all settings of the default, `kept` those that no candidate changes. Raises
    InvalidInput with the place of the first mistake.
    """
    path = BUILTIN / f"{name}.yaml"
    is_builtin = path.parent == BUILTIN and path.exists()
    if not is_builtin:
        found = existing(name)
        if found is None:
            known = ", ".join(sorted(one.stem for one in BUILTIN.glob("*.yaml")))
            raise InvalidInput(f"--space {name}: no such file; built in is {known}")
        path = found
    place = name if is_builtin else str(path)
    tree = parse(yaml_file.read_text(path, "--space"), f"--space {place}")
    reader = _SpaceReader(place, tree, dict(default), cpus or os.cpu_count() or 1, is_of_lab)
    return reader.space(default, kept, is_builtin=is_builtin)


@dataclass(frozen=True, slots=True)
class _SpaceReader:
    place: str
    tree: Tree
    default: dict[str, str]
    cpus: int
    is_of_lab: bool

    def space(self, default: Pairs, kept: Pairs, *, is_builtin: bool) -> Space:
        try:
            read = _SpaceFile.model_validate(self.tree.value)
        except ValidationError as wrong:
            raise TaskInvalid(
                messages.problems(wrong, self.tree, (), "the space", _SpaceFile)
            ) from None
        names = {name for name, _ in kept}
        found = [self._setting(number, one) for number, one in enumerate(read.settings)]
        self._require_order(found)
        unknown = sorted(names - {one.name for one in found})
        if unknown and not self.is_of_lab:
            raise InvalidInput(f"--keep {unknown[0]}: is no setting of --space {self.place}")
        free = [one for one in found if one.name not in names]
        if is_builtin:
            free = [one for one in free if self._differs(one)]
        gains = tuple(one for one in free if one.kind is SettingKind.GAIN)
        if not gains:
            why = "all its settings are kept" if found and names else "it has no setting"
            raise InvalidInput(
                f"--space {self.place}: there is nothing to search: {why} of kind gain"
            )
        for one in free:
            self._require_choice(one, ("settings", found.index(one)))
        trades = tuple(one for one in free if one.kind is SettingKind.TRADE)
        space = Space(read.title or self.place, gains, trades, default, self.is_of_lab)
        for one in gains:
            self._require_possible(space, one, ("settings", found.index(one)))
        if not any(len(space.choices(one, space.values(()))) > 1 for one in gains):
            raise InvalidInput(
                f"--space {self.place}: there is nothing to search: no setting of kind gain "
                "applies to the default"
            )
        return space

    def _fail(self, place: Place, problem: str) -> InvalidInput:
        return TaskInvalid([self.tree.problem(place, problem)])

    def _setting(self, number: int, read: _SettingFile) -> Setting:
        where = ("settings", number)
        if not self.is_of_lab:
            self._require_variable(where, read.name)
        if read.name in lab_settings.OF_ITS_OWN:
            raise self._fail(where, f"{read.name} is an address, not a setting to tune")
        if read.name.startswith("conf.") and is_secret_option(read.name):
            raise self._fail(where, f"{read.name} is a secret")
        written = [self._filled((*where, "levels"), one) for one in read.levels]
        written += read.range.levels() if read.range else ()
        levels = [self._normal(where, read.name, one) for one in written]
        if any(masked(one) != one for one in levels):
            raise self._fail(where, f"a level of {read.name} has a secret in it")
        when = tuple(
            (name, tuple(self._normal((*where, "when"), name, _word(one)) for one in allowed))
            for name, allowed in read.when.items()
        )
        return Setting(
            read.name,
            tuple(dict.fromkeys(levels)),
            read.kind,
            read.change,
            read.price,
            read.source,
            when,
        )

    def _filled(self, where: Place, level: _Scalar) -> str:
        try:
            text = filled(_word(level), Facts({"host.cpus": self.cpus}).get)
        except InvalidInput as wrong:
            raise self._fail(where, f"{level}: {wrong}") from None
        if "{" in _word(level) and "?" in text:
            raise self._fail(where, f"{level} cannot be computed; {{host.cpus}} is known")
        return text

    def _normal(self, where: Place, name: str, value: str) -> str:
        """Return a value as the lab writes it; InvalidInput for what it does not know."""
        if not self.is_of_lab:
            return value
        try:
            read = lab_settings.values([(name, value)])
        except InvalidInput as wrong:
            raise self._fail(where, str(wrong)) from None
        if name.startswith("conf."):
            return value
        return str(read[name.replace("-", "_")])

    def _require_variable(self, where: Place, name: str) -> None:
        try:
            require_variable(name)
        except InvalidInput as wrong:
            raise self._fail(where, str(wrong)) from None

    def _differs(self, setting: Setting) -> bool:
        return bool(set(setting.levels) - {self.default.get(setting.name)})

    def _require_choice(self, setting: Setting, where: Place) -> None:
        name, first = setting.name, setting.levels[0]
        if setting.kind is SettingKind.GAIN and len(setting.levels) < 2:
            raise self._fail(
                where, f"{name} has one level, {first}; give two or more, the default's among them"
            )
        if not self._differs(setting):
            raise self._fail(where, f"{name} has one level, the default's ({first})")

    def _require_order(self, settings: list[Setting]) -> None:
        """Refuse a condition on a setting that is unknown or chosen later, and a name twice."""
        places: dict[tuple[str, SettingKind], int] = {}
        for number, one in enumerate(settings):
            if (one.name, one.kind) in places:
                raise self._fail(("settings", number), f"{one.name} stands twice")
            places[one.name, one.kind] = number
        known = {*self.default, *(one.name for one in settings)}
        for number, one in enumerate(settings):
            for name, _ in one.when:
                if not self.is_of_lab and name not in known:
                    raise self._fail(
                        ("settings", number, "when"),
                        f"the condition of {one.name} needs {name}, which is no setting of the "
                        f"space; add it, or give its value as --with {name}=VALUE",
                    )
                if number < places.get((name, SettingKind.GAIN), -1):
                    raise self._fail(
                        ("settings", number, "when"),
                        f"the condition of {one.name} needs {name}, which must come first",
                    )

    def _require_possible(self, space: Space, setting: Setting, where: Place) -> None:
        """Refuse a setting without a level that the lab accepts beside the default."""
        if not setting.applies(self.default):
            return
        levels = [one for one in setting.levels if one != self.default.get(setting.name)]
        for level in levels:
            if space.is_possible(((setting.name, level),)):
                return
        try:
            lab_settings.read([*space.default, (setting.name, levels[0])])
        except InvalidInput as wrong:
            raise self._fail(where, str(wrong)) from None


def require_variable(name: str) -> None:
    """Raise InvalidInput if a setting cannot be a variable of a command's environment."""
    if not _VARIABLE.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not the name of a variable: --apply gets each setting in its "
            "environment, as WORKERS=4"
        )
    if _TAKEN.fullmatch(name):
        raise InvalidInput(f"{name}: other programs read this variable; choose another name")
    if is_secret_variable(name):
        raise InvalidInput(f"{name} is a secret, which would be kept in the tuning's journal")


def require_unset(space: Space, environment: Mapping[str, str]) -> None:
    """Raise InvalidInput if a setting is a variable already, which --apply would read.

    A command takes a variable that is there for a setting of the combination.
    """
    named = (one.name for one in (*space.settings, *space.trades))
    for name in dict.fromkeys((*named, *dict(space.default))):
        if name in environment:
            raise InvalidInput(
                f"{name} is set in the environment, and --apply would read it where the setting "
                f"stays as it is: unset {name}"
            )


def words(changes: Pairs) -> str:
    """Return changes as `KEY=VALUE KEY=VALUE`."""
    return " ".join(f"{name}={value}" for name, value in changes) or "the default"


def _word(value: _Scalar) -> str:
    if isinstance(value, bool):  # YAML reads true and on as a truth value
        return "true" if value else "false"
    return str(value)
