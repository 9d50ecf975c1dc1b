"""The settings of the two labs that `audit prove` compares: before and after a rule's fix."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadstone.audit.evaluate import RuleState
from loadstone.audit.rule import Rule, every
from loadstone.errors import MeasurementInvalid
from loadstone.lab.keystone import settings

Pair = tuple[str, str]  # of `lab up --with`
DEFAULT = "its default"
BEFORE, AFTER = "before", "after"  # the names of both sides
# Parameters of both runs of a proof, by which `loadstone audit` finds them again.
OF_RULE, OF_DEPLOYMENT, OF_CHANGES = "audit rule", "audit deployment", "audit changes"


@dataclass(frozen=True, slots=True)
class ProofSides:
    """The settings of both deployments, and their differences."""

    before: tuple[Pair, ...]
    after: tuple[Pair, ...]
    changes: tuple[str, ...]  # KEY=VALUE of what the fix changes
    note: str  # which side is the user's deployment


def sides(rule: Rule, pairs: Sequence[Pair], state: RuleState | None, cpus: int) -> ProofSides:
    """Return the settings to measure; `pairs` are a deployment's, `state` is the rule's there.

    A deployment that breaks the rule is compared with a fixed one; one that keeps it, with one that
    breaks it. If the rule could not be evaluated (None), both sides are derived from its proof.
    Raises MeasurementInvalid for a rule whose fix is not a setting of the lab, and where something
    else than the setting breaks the rule or keeps it.
    """
    proof = rule.proof
    if proof is None:
        raise MeasurementInvalid(not_measured(rule))

    own_pairs = [pair for pair in pairs if pair[0] not in settings.OF_ITS_OWN]
    base = _with(own_pairs, proof.both)
    broken = _with(base, proof.fault)
    fix = proof.fix_for(cpus)
    fixed = _with(base, fix)
    match state:
        case RuleState.FAIL | RuleState.WARN:
            before, after, note = base, fixed, "The deployment breaks the rule; B has the fix"
        case RuleState.PASS:
            before, after = broken, base
            note = "The deployment keeps the rule; A breaks it on purpose"
        case _:
            before, after = broken, fixed
            note = "A breaks the rule on purpose; B keeps it"
    if settings.read(before) == settings.read(after):
        is_kept = state is RuleState.PASS
        own = ", ".join(proof.fault if is_kept else fix)
        raise MeasurementInvalid(
            f"{rule.id}: not measured: the deployment {'keeps' if is_kept else 'breaks'} the rule "
            f"although its settings have {own}: both sides would be the same"
        )
    return ProofSides(tuple(before), tuple(after), _changes(before, after), note)


def parameters(rule: Rule, measured: ProofSides, deployment: str) -> tuple[Pair, ...]:
    """Return the parameters that identify a proof in both of its runs."""
    return (
        (OF_RULE, rule.id),
        (OF_DEPLOYMENT, deployment),
        (OF_CHANGES, ", ".join(_steps(measured.before, measured.after))),
    )


def not_measured(rule: Rule) -> str:
    """Return the message that a rule cannot be proven, with the rules that can."""
    provable = ", ".join(one.id for one in every() if one.proof is not None)
    by_study = f"; `loadstone study run {rule.study}` shows it" if rule.study else ""
    return (
        f"{rule.id}: not measured: no setting of the lab makes the difference{by_study}. Rules "
        f"that can be proven: {provable}"
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
