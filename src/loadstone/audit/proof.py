"""What is measured to show the effect of a rule's fix: the lab's settings before and after."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadstone.audit.evaluate import RuleState
from loadstone.audit.facts import MissingFact, Value
from loadstone.audit.rule import Rule, every, filled
from loadstone.errors import MeasurementInvalid
from loadstone.keystone.deploy.settings import OF_ITS_OWN

Pair = tuple[str, str]  # of `lab up --with`
DEFAULT = "its default"
BEFORE, AFTER = "before", "after"  # the names of both sides
# Parameters of both runs of a proof, by which `loadstone audit` finds them again.
OF_RULE, OF_DEPLOYMENT, OF_CHANGES = "audit rule", "audit deployment", "audit changes"


@dataclass(frozen=True, slots=True)
class ProofSides:
    """The settings of both deployments, and in what they differ."""

    before: tuple[Pair, ...]
    after: tuple[Pair, ...]
    changes: tuple[str, ...]  # KEY=VALUE of what the fix changes
    note: str  # which of the two is the deployment that was named


def sides(rule: Rule, known: Sequence[Pair], state: RuleState | None, cpus: int) -> ProofSides:
    """Return the settings to measure; `known` are those of a deployment, `state` the rule's there.

    A deployment that breaks the rule is mended; one that keeps it is measured against one that
    breaks it. Where the rule could not be judged (None), one is made that breaks it and one that
    keeps it. Raises MeasurementInvalid for a rule whose fix is no setting of the lab.
    """
    proof = rule.proof
    if proof is None:
        raise MeasurementInvalid(not_measured(rule))

    def lookup(name: str) -> Value:
        if name != "host.cpus":
            raise MissingFact(name, "a proof knows the processors only")
        return cpus

    kept = [pair for pair in known if pair[0] not in OF_ITS_OWN]
    base = _with(kept, proof.both)
    broken = _with(base, proof.fault)
    fixed = _with(base, [filled(word, lookup) for word in proof.fix])
    match state:
        case RuleState.FAIL | RuleState.WARN:
            before, after, note = base, fixed, "the deployment breaks the rule; B has the fix"
        case RuleState.PASS:
            before, after = broken, base
            note = "the deployment keeps the rule; A breaks it on purpose"
        case _:
            before, after = broken, fixed
            note = "A breaks the rule on purpose; B keeps it"
    return ProofSides(tuple(before), tuple(after), _changes(before, after), note)


def parameters(rule: Rule, measured: ProofSides, deployment: str) -> tuple[Pair, ...]:
    """Return what both runs of a proof keep of it; `deployment` is the one that was named."""
    return (
        (OF_RULE, rule.id),
        (OF_DEPLOYMENT, deployment),
        (OF_CHANGES, ", ".join(_steps(measured.before, measured.after))),
    )


def not_measured(rule: Rule) -> str:
    """Say that nothing here can show the effect of a rule, and of which rules it can."""
    listed = ", ".join(one.id for one in every() if one.proof is not None)
    by_study = f"; `loadstone study run {rule.study}` shows it" if rule.study else ""
    return (
        f"{rule.id}: not measured: no setting of the lab makes the difference{by_study}. Rules "
        f"that can be proven: {listed}"
    )


def _with(pairs: Sequence[Pair], words: Sequence[str]) -> list[Pair]:
    changed = dict(pairs)
    for word in words:
        key, _, value = word.partition("=")
        changed[key] = value
    return list(changed.items())


def _changes(before: Sequence[Pair], after: Sequence[Pair]) -> tuple[str, ...]:
    new = dict(after)
    return tuple(f"{name}={new.get(name, DEFAULT)}" for name in _changed(before, after))


def _steps(before: Sequence[Pair], after: Sequence[Pair]) -> tuple[str, ...]:
    old, new = dict(before), dict(after)
    names = _changed(before, after)
    return tuple(f"{name} {old.get(name, DEFAULT)} -> {new.get(name, DEFAULT)}" for name in names)


def _changed(before: Sequence[Pair], after: Sequence[Pair]) -> tuple[str, ...]:
    old, new = dict(before), dict(after)
    return tuple(name for name in {**old, **new} if old.get(name) != new.get(name))
