"""Rules: one YAML file each, checked when they are read."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from loadstone.audit import expression
from loadstone.audit.facts import Facts, MissingFact
from loadstone.diagnosis.finding import Confidence, Severity
from loadstone.errors import InvalidInput
from loadstone.system import yaml_file
from loadstone.system.strict_model import StrictModel, mistake

FOLDER = Path(__file__).parent / "rules"
CORE = "core"
_HOLE = re.compile(r"\{([^{}]+)\}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Applies(StrictModel):
    """The hosts to which a rule applies."""

    roles: tuple[str, ...] = ()  # any of them; empty: every host
    when: str = "True"
    otherwise: str = "does not apply"  # the reason of the skip where `when` is false


class SettingChange(StrictModel):
    """One setting that the fix changes."""

    where: Literal["keystone", "uwsgi", "sysctl"]
    section: str = ""
    option: str  # may have holes, like the message
    value: str  # the same


class Fix(StrictModel):
    """What to do about a finding."""

    text: str
    lines: str = ""  # configuration as it should be
    restart: str = ""  # what must be restarted; empty: nothing
    settings: tuple[SettingChange, ...] = ()


class RuleProof(StrictModel):
    """Settings of the lab (KEY=VALUE, as of `lab up --with`) that show the effect of the fix."""

    fault: tuple[str, ...] = Field(min_length=1)  # break the rule
    fix: tuple[str, ...] = Field(min_length=1)  # keep the rule; may have holes over host.cpus
    both: tuple[str, ...] = ()  # of both sides, without which there is no effect
    scenario: str = "issue"

    def fix_for(self, cpus: int) -> list[str]:
        """Return the settings that keep the rule on a machine with so many processors."""
        known = Facts({"host.cpus": cpus})
        return [filled(word, known.get) for word in self.fix]


class Rule(StrictModel):
    """One rule, as its file states it."""

    id: str = Field(pattern=r"^[A-Z]+-\d\d$")
    title: str
    group: str
    pack: str = CORE
    severity: Severity
    critical_if: str | None = None
    applies: Applies = Applies()
    needs: tuple[str, ...]
    check: str
    message: str
    fix: Fix
    tradeoff: str = ""
    confidence: Confidence
    sources: tuple[str, ...] = Field(min_length=1)
    study: str | None = None  # the study that shows the effect
    proof: RuleProof | None = None  # what `audit prove` measures; None: nothing here can show it

    @model_validator(mode="after")
    def _names_are_needed(self) -> "Rule":
        missing = self.names() - set(self.needs)
        unused = set(self.needs) - self.names()
        if missing or unused:
            raise ValueError(f"needs: missing {sorted(missing)}, unused {sorted(unused)}")
        return self

    def names(self) -> frozenset[str]:
        """Return the facts that its expressions and its message name."""
        texts = [self.applies.when, self.check, *holes(self.message)]
        texts += [
            hole
            for setting in self.fix.settings
            for text in (setting.option, setting.value)
            for hole in holes(text)
        ]
        texts += [hole for word in self.proof.fix for hole in holes(word)] if self.proof else []
        texts += [self.critical_if] if self.critical_if else []
        return frozenset(name for text in texts for name in expression.parse(text).names)

    @property
    def shown_by(self) -> str:
        """The commands that measure the effect of the fix; empty where nothing can."""
        commands = (
            f"`loadstone audit prove {self.id}`" if self.proof else "",
            f"`loadstone study run {self.study}`" if self.study else "",
        )
        text = " or ".join(one for one in commands if one)
        return f"{text} measures it" if text else ""

    @property
    def effect(self) -> str:
        """Return what shows the effect of the fix; "not measured" if nothing does."""
        return self.shown_by or "not measured"

    @property
    def highest(self) -> Severity:
        """Return the highest severity that a finding can have."""
        return Severity.CRITICAL if self.critical_if else self.severity


def holes(text: str) -> tuple[str, ...]:
    """Return the expressions in the holes (`{...}`) of a text."""
    return tuple(_HOLE.findall(text))


def filled(text: str, lookup: expression.Lookup) -> str:
    """Return a text with the values of the expressions in its braces; "?" for unknown ones."""

    def value(hole: re.Match[str]) -> str:
        try:
            return format_value(expression.parse(hole[1]).value(lookup))
        except (ArithmeticError, MissingFact, TypeError, ValueError):
            return "?"

    return _HOLE.sub(value, text)


def format_value(value: object) -> str:
    """Format a value for people."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
        case tuple() | list():
            return ", ".join(format_value(part) for part in value) or "none"
    return str(value)


def read(path: Path) -> Rule:
    """Return the rule of a file."""
    try:
        return Rule.model_validate(yaml.load(path.read_text(), _LOADER))  # noqa: S506  # a safe loader
    except ValidationError as wrong:
        raise InvalidInput(mistake(Rule, yaml_file.read(path), wrong)) from None
    except (yaml.YAMLError, InvalidInput) as wrong:
        raise InvalidInput(f"{path}: {' '.join(str(wrong).split())}") from None


@cache
def every() -> tuple[Rule, ...]:
    """Return all rules, in the order of their groups and numbers."""
    found = tuple(read(path) for path in sorted(FOLDER.glob("*.yaml")))
    return tuple(sorted(found, key=lambda rule: (_GROUPS.index(rule.group), rule.id)))


_GROUPS = (
    "host",
    "web server",
    "keystone",
    "keycloak",
    "database",
    "cache and balancer",
    "capacity",
    "reference architecture",
)


def find(rule_id: str) -> Rule:
    """Return a rule by its id."""
    for rule in every():
        if rule.id == rule_id.upper():
            return rule
    raise InvalidInput(f"no rule {rule_id}; `loadstone audit rules` lists all")


def select(packs: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules of the core and of some packs."""
    names = {CORE, *packs}
    unknown = names - {rule.pack for rule in every()}
    if unknown:
        available = sorted({rule.pack for rule in every()} - {CORE})
        raise InvalidInput(f"no pack {sorted(unknown)[0]!r}; there is {', '.join(available)}")
    return tuple(rule for rule in every() if rule.pack in names)
