"""Applies rules to the facts of hosts."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from loadstone.audit import expression
from loadstone.audit.facts import HostFacts, MissingFact, SettingOrigin, Value
from loadstone.audit.gain import Gain
from loadstone.audit.readers import sections
from loadstone.audit.rule import Rule, SettingChange, filled, find, format_value
from loadstone.diagnosis.finding import Evidence, Finding, Severity

ACROSS = "hosts."  # hosts.NAME: the fact's values on all hosts that have it
CAPACITY = "capacity."  # begins the names of what each host with Keystone needs or offers
KEYSTONE = "keystone"  # role
UNFIT = (TypeError, ValueError, ZeroDivisionError, OverflowError)  # of facts that fit no rule
REACHED = "HOST-00"  # the only rule that is evaluated on hosts without facts


class RuleState(StrEnum):
    """The state of a rule on a host."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    WARN = "warn"  # a finding of severity info
    SKIP = "skip"  # does not apply
    UNKNOWN = "unknown"  # a fact could not be read
    WAIVED = "waived"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule on one host."""

    rule: Rule
    host: str
    state: RuleState
    severity: Severity
    message: str  # of a finding, else the reason for the state
    found: Mapping[str, Value] = field(default_factory=dict)
    origin: SettingOrigin | None = None
    settings: tuple[SettingChange, ...] = ()  # of the fix, with their values on the host
    gain: Gain | None = None  # measured gain of the fix, if any

    @property
    def effect(self) -> str:
        """The measured gain of the fix; else "not measured", and what would measure it."""
        if self.gain is not None:
            return self.gain.sentence
        return f"not measured ({self.rule.shown_by})" if self.rule.shown_by else "not measured"

    @property
    def is_finding(self) -> bool:
        """Return whether the rule found something wrong."""
        return self.state in (RuleState.FAIL, RuleState.WARN)

    def finding(self) -> Finding:
        """Return the result as a finding."""
        evidence = tuple(Evidence(name, format_value(value)) for name, value in self.found.items())
        rule = self.rule
        return Finding(rule.id, self.message, evidence, rule.confidence, rule.fix.text)


@dataclass(frozen=True, slots=True)
class Audit:
    """Hosts and the results of all rules on them."""

    hosts: tuple[HostFacts, ...]
    results: tuple[RuleResult, ...]

    def of(self, host: HostFacts) -> tuple[RuleResult, ...]:
        """Return the results on one host."""
        return tuple(result for result in self.results if result.host == host.host)

    def findings(self, host: HostFacts | None = None) -> tuple[RuleResult, ...]:
        """Return the results, or those on one host, that found something wrong, worst first."""
        results = self.results if host is None else self.of(host)
        found = (result for result in results if result.is_finding)
        return tuple(sorted(found, key=lambda result: -result.severity.rank))

    def with_gains(self, gains: Mapping[str, Gain]) -> "Audit":
        """Return the audit with measured gains, by rule."""
        results = (replace(one, gain=gains.get(one.rule.id)) for one in self.results)
        return replace(self, results=tuple(results))

    def falls_short(self, fail_on: Severity) -> bool:
        """Return whether there is a finding at or above a severity."""
        return any(result.severity.rank >= fail_on.rank for result in self.findings())

    def is_incomplete(self, fail_on: Severity) -> bool:
        """Return whether an unchecked rule could have had such a finding."""
        unknown = (result for result in self.results if result.state is RuleState.UNKNOWN)
        return any(result.severity.rank >= fail_on.rank for result in unknown)


def counted(results: Sequence[RuleResult]) -> str:
    """Return how many results have each state: "2 pass, 1 fail"."""
    counts = ((state, sum(result.state is state for result in results)) for state in RuleState)
    return ", ".join(f"{count} {state.value}" for state, count in counts if count)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names in an expression: facts of one host, and of all hosts."""

    own: HostFacts
    everyone: Sequence[HostFacts]

    def get(self, name: str) -> Value:
        if not name.startswith(ACROSS):
            return self.own.facts.get(name)
        fact = name.removeprefix(ACROSS)
        if fact.startswith(CAPACITY):
            self._require_everywhere(fact)
        return tuple(one.facts.get(fact) for one in self.everyone if one.facts.knows(fact))

    def _require_everywhere(self, fact: str) -> None:
        """Raise MissingFact if a host with Keystone lacks the fact: a sum would be too small.

        A host without any facts may have Keystone.
        """
        for one in self.everyone:
            if one.failure is not None:
                raise MissingFact(fact, f"{one.host}: {one.failure}")
        asked = [one for one in self.everyone if KEYSTONE in one.facts.roles]
        if not asked:
            raise MissingFact(fact, "no host of this audit has Keystone")
        for one in asked:
            try:
                one.facts.get(fact)
            except MissingFact as missing:
                raise MissingFact(fact, f"{one.host}: {missing.reason}") from None


def evaluate(rules: Iterable[Rule], hosts: Sequence[HostFacts]) -> Audit:
    """Apply every rule to every host; a host without facts has one result, whatever the rules."""
    all_rules, reached = tuple(rules), (find(REACHED),)
    results = tuple(
        _judge(rule, _Scope(host, hosts))
        for host in hosts
        for rule in (all_rules if host.failure is None else reached)
    )
    return Audit(tuple(hosts), results)


def _judge(rule: Rule, scope: _Scope) -> RuleResult:
    own = scope.own
    result = RuleResult(rule, own.host, RuleState.UNKNOWN, rule.highest, "")
    if own.failure is not None:
        return replace(result, message=own.failure)
    try:
        reason = _not_applicable(rule, scope)
        if reason is not None:
            return replace(result, state=RuleState.SKIP, severity=rule.severity, message=reason)
        holds = bool(expression.parse(rule.check).value(scope.get))
        return _judged(result, scope, holds)
    except MissingFact as missing:
        return replace(result, message=f"{missing.name}: {missing.reason}")
    except UNFIT as wrong:
        return replace(result, message=f"the facts do not fit the rule: {wrong}")


def _judged(result: RuleResult, scope: _Scope, holds: bool) -> RuleResult:
    rule = result.rule
    found: dict[str, Value] = {}
    for name in rule.needs:
        with suppress(MissingFact):
            found[name] = scope.get(name)
    result = replace(result, found=found, message=rule.title, severity=rule.severity)
    if holds:
        return replace(result, state=RuleState.PASS)
    severity = _severity(rule, scope)
    settings = tuple(
        one.model_copy(
            update={
                "option": filled(one.option, scope.get),
                "value": filled(one.value, scope.get),
            }
        )
        for one in rule.fix.settings
    )
    return replace(
        result,
        state=RuleState.WARN if severity is Severity.INFO else RuleState.FAIL,
        severity=severity,
        message=filled(rule.message, scope.get),
        origin=_origin(rule, scope, settings),
        settings=settings,
    )


def _origin(rule: Rule, scope: _Scope, settings: Sequence[SettingChange]) -> SettingOrigin | None:
    """Return the line to look at: of a setting that breaks the rule.

    A setting breaks the rule if the rule does not hold although the fix changes all others. If it
    is not written, a line of its group is returned, else the beginning of the file.
    """
    origins = scope.own.facts.origins
    known = [name for name in rule.needs if name in origins]
    lines = sections.File("", tuple(enumerate(rule.fix.lines.splitlines())))
    values = dict(sections.settings((lines,)).values)
    values |= {(one.section, one.option): one.value for one in settings if one.where == "keystone"}
    fixed = {f"conf.{section}.{option}": value for (section, option), value in values.items()}
    check = expression.parse(rule.check)

    def breaks(name: str) -> bool:
        def get(asked: str) -> Value:
            value = scope.get(asked)
            is_fixed = asked in fixed and asked != name
            return sections.typed(fixed[asked], value) if is_fixed else value

        with suppress(*UNFIT, MissingFact):
            return name in fixed and not check.value(get)
        return False

    broken = [name for name in known if breaks(name)] or known
    groups = {name.rpartition(".")[0] for name in broken}
    beside = [name for name in known if name.rpartition(".")[0] in groups]
    written = [name for name in (*broken, *beside) if not origins[name].is_default]
    return next((origins[name] for name in (*written, *broken)), None)


def _severity(rule: Rule, scope: _Scope) -> Severity:
    with suppress(MissingFact):
        if rule.critical_if and expression.parse(rule.critical_if).value(scope.get):
            return Severity.CRITICAL
    return rule.severity


def _not_applicable(rule: Rule, scope: _Scope) -> str | None:
    """Return why a rule does not apply to a host, or None."""
    applies, roles = rule.applies, scope.own.facts.roles
    if applies.roles and not roles.intersection(applies.roles):
        return f"no {' or '.join(applies.roles)} on this host"
    if not expression.parse(applies.when).value(scope.get):
        return applies.otherwise
    return None
