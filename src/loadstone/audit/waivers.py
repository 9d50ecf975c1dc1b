"""Waivers: findings that are accepted for a time, with the reason."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from loadstone.audit import rule as rules
from loadstone.audit.evaluate import Audit, RuleResult, RuleState
from loadstone.errors import InvalidInput
from loadstone.system import yaml_file

FIELDS = {"rule", "host", "reason", "expires"}


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted finding."""

    rule: str
    host: str  # may be a pattern, as control*
    reason: str
    expires: dt.date

    def covers(self, result: RuleResult) -> bool:
        """Return whether the waiver applies to this result."""
        return self.rule == result.rule.id and fnmatchcase(result.host, self.host)


def read(path: Path) -> tuple[Waiver, ...]:
    """Return the waivers of a YAML file: a list of rule, host, reason, expires."""
    file = yaml_file.read(path)
    if not isinstance(file.content, list):
        raise InvalidInput(
            f"{file.place()}: must be a list of waivers: rule, host, reason, expires"
        )
    return tuple(
        _waiver(partial(file.place, index), f"waiver {index + 1}", one)
        for index, one in enumerate(file.content)
    )


def _waiver(place: yaml_file.Place, name: str, tree: Any) -> Waiver:
    unknown = sorted(map(str, set(tree) - FIELDS)) if isinstance(tree, dict) else []
    if not isinstance(tree, dict) or unknown:
        raise InvalidInput(
            f"{place(*unknown[:1])}: {name}: must have rule, host, reason, expires and nothing else"
        )
    for needed in ("rule", "reason", "expires"):
        if not tree.get(needed):
            raise InvalidInput(f"{place(needed)}: {name}: {needed} is missing")
    expires = tree["expires"]
    if not isinstance(expires, dt.date) or isinstance(expires, dt.datetime):
        raise InvalidInput(
            f"{place('expires')}: {name}: expires must be a date, as 2027-01-31, not {expires!r}"
        )
    try:
        known = rules.find(str(tree["rule"])).id
    except InvalidInput as wrong:
        raise InvalidInput(f"{place('rule')}: {name}: {wrong}") from None
    return Waiver(known, str(tree.get("host") or "*"), str(tree["reason"]), expires)


def apply(audit: Audit, waivers: Sequence[Waiver], today: dt.date) -> Audit:
    """Return the audit with waived results; of several waivers, the longest counts."""
    return replace(audit, results=tuple(_apply(one, waivers, today) for one in audit.results))


def _apply(result: RuleResult, waivers: Sequence[Waiver], today: dt.date) -> RuleResult:
    if not (result.is_finding or result.state is RuleState.UNKNOWN):
        return result
    covering = (one for one in waivers if one.covers(result))
    waiver = max(covering, key=lambda one: one.expires, default=None)
    if waiver is None:
        return result
    if waiver.expires < today:
        expired = f"{result.message} (the waiver expired on {waiver.expires})"
        return replace(result, message=expired)
    message = f"{result.message} (waived until {waiver.expires}: {waiver.reason})"
    return replace(result, state=RuleState.WAIVED, message=message)
