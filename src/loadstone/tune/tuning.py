"""The whole of a tuning: check, search, proof, ablation, second proof, trades.

It gets `measure`, which compares two combinations in fresh pairs of trials, and knows nothing of
labs, clocks or disks. All its decisions follow from the outcomes, so a tuning that was interrupted
goes on where it ended when the same outcomes are given to it again.

The search is a race (successive halving: Jamieson and Talwalkar, AISTATS 2016). Its best value
flatters itself, because it is the highest of many noisy ones. So it only chooses; the gain that is
stated comes from pairs that the choice has not seen.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, hypot, inf

from loadstone.analysis import holm
from loadstone.errors import EnvironmentUnusable, MeasurementInvalid
from loadstone.system.say import Say
from loadstone.tune import budget
from loadstone.tune.budget import ComparisonDurations
from loadstone.tune.evidence import GainEvidence, pooled
from loadstone.tune.model import (
    Comparison,
    ComparisonOutcome,
    Measure,
    Proof,
    Share,
    Terms,
    Trade,
    TriedCombination,
    Tuned,
    TuningPhase,
)
from loadstone.tune.propose import Proposals
from loadstone.tune.space import Pairs, Space, words

ALPHA = 0.05  # chance that a stated interval misses the true gain
# There may be two proofs, and which one is stated depends on what they show. Each has half of the
# error rate (Bonferroni), so that both intervals hold with 95 %.
PROOF_ALPHA = ALPHA / 2
DROP_ALPHA = 0.2  # of the interval by which a race drops a combination: 90 % one-sided
NESTED = 1.64  # standard errors by which more settings must look better: one-sided, at 5 %
IMPOSSIBLE = "without it, the lab does not accept the rest"


def tune(
    space: Space,
    terms: Terms,
    suggested: Sequence[tuple[Pairs, str]],
    measure: Measure,
    say: Say,
) -> Tuned:
    """Search, prove and explain; `suggested` are combinations to try first, with their origin.

    Raises EnvironmentUnusable if the default does not start or cannot be measured.
    """
    return _Tuning(space, terms, measure, say).run(suggested)


@dataclass(slots=True)
class _Tuning:
    space: Space
    terms: Terms
    measure: Measure
    say: Say
    costs: ComparisonDurations = field(init=False)
    proposals: Proposals = field(init=False)
    tried: dict[Pairs, TriedCombination] = field(default_factory=dict, init=False)
    cut_short: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.costs = ComparisonDurations(self.terms)

    def run(self, suggested: Sequence[tuple[Pairs, str]]) -> Tuned:
        check = self._check()
        ordered = deque(_found_first(suggested, check.findings))
        self.proposals = Proposals(self.space, self.terms.seed, ordered)
        self._race()
        trials = tuple(self.tried.values())
        found = self._proven(Tuned(check, trials, _plainest(trials)))
        found = self._with_trades(found)
        found = self._with_capacities(found)
        return replace(found, spent_s=self.costs.spent_s, cut_short=tuple(self.cut_short))

    def _compared(self, phase: TuningPhase, a: Pairs, b: Pairs, pairs: int) -> ComparisonOutcome:
        outcome = self.measure(Comparison(phase, a, b, pairs))
        self.costs.add(outcome, pairs)
        return outcome

    def _check(self) -> ComparisonOutcome:
        """Compare the default with itself: it must start, and its scatter plans the rest."""
        self.say("the default beside itself")
        outcome = self._compared(TuningPhase.CHECK, (), (), budget.CHECK_PAIRS)
        if outcome.evidence is None:
            raise EnvironmentUnusable(f"the default cannot be measured: {outcome.failure}")
        self.costs.learn_scatter(outcome.evidence)
        self._require_time()
        return outcome

    def _require_time(self) -> None:
        """Raise MeasurementInvalid if no gain can be proven at what the check has taken."""
        count = min(budget.FEWEST_TRIED, self.space.combinations - 1)
        search_s = count * self.costs.of(self.costs.pairs_of_round(1))
        least_s = search_s + self.costs.of(budget.FEWEST_PROOF)
        if least_s > self.costs.left_s:
            minutes = int((self.costs.spent_s + least_s) // 60) + 1
            raise MeasurementInvalid(
                f"the default beside itself took {self.costs.spent_s:.0f} s, so that a search and "
                f"a proof take {least_s:.0f} s more, and {max(self.costs.left_s, 0.0):.0f} s of "
                f"the budget are left: give --budget {minutes}m or more"
            )

    # The race

    @property
    def _search_s(self) -> float:
        """Seconds that are left for the search."""
        share = budget.SEARCH_SHARE
        if self.terms.with_trades:
            share -= budget.TRADE_SHARE / 2
        return share * self.terms.budget_s - self.costs.spent_s

    def _race(self) -> None:
        """Halve a first field of combinations, then let others challenge the best."""
        count = budget.combinations(self.costs, self._search_s)
        running = _kept([one for one in islice(iter(self._entered, None), count) if one.evidence])
        while len(running) > 1 and running[0].rounds < budget.MOST_ROUNDS:
            if not self._has_time(running[0].rounds + 1):
                break
            again = (self._measured_on(one) for one in running)
            running = _kept([one for one in again if one is not None])
        while len(self.tried) < budget.MOST_TRIED and (challenger := self._entered()):
            self._challenge(challenger)

    def _challenge(self, challenger: TriedCombination | None) -> None:
        """Measure a combination on, as long as it looks better than the best so far."""
        while challenger is not None and _seen(challenger) > 0:
            best = _best(self.tried.values())
            if best is None or best is challenger or challenger.rounds >= best.rounds:
                return
            if _seen(challenger) <= _seen(best):
                return
            challenger = self._measured_on(challenger)

    def _entered(self) -> TriedCombination | None:
        """Measure the next combination for the first time; None without time or combination."""
        is_needed = len(self.tried) < budget.FEWEST_TRIED
        proposal = self.proposals.next() if is_needed or self._has_time(1) else None
        return None if proposal is None else self._measured(proposal)

    def _has_time(self, number: int) -> bool:
        return self._search_s >= self.costs.of(self.costs.pairs_of_round(number))

    def _measured_on(self, tried: TriedCombination) -> TriedCombination | None:
        """Measure the next round of a combination; None if there is no time, or if it fails."""
        if not self._has_time(tried.rounds + 1):
            return None
        again = self._measured(tried)
        return again if again.evidence is not None else None

    def _measured(self, tried: TriedCombination) -> TriedCombination:
        """Measure a round of a combination."""
        number = tried.rounds + 1
        self.say(f"{words(tried.changes)} ({tried.origin}), round {number}")
        pairs = self.costs.pairs_of_round(number)
        outcome = self._compared(TuningPhase.SEARCH, (), tried.changes, pairs)
        if outcome.evidence is None:
            evidence = None
            self.say(f"  dropped: {outcome.failure}")
        else:
            known = [] if tried.evidence is None else [tried.evidence]
            evidence = pooled([*known, outcome.evidence])
        failed_runs = (*tried.failed_runs, *outcome.failed_runs)
        again = TriedCombination(
            tried.changes, tried.origin, evidence, outcome.failure, number, failed_runs
        )
        self.tried[tried.changes] = again
        self.proposals.add(tried.changes, evidence)
        return again

    # The proofs

    def _proven(self, found: Tuned) -> Tuned:
        """Prove the winner, find what carries its gain, and prove the rest again."""
        winner = found.winner
        if winner is None or winner.evidence is None:
            return found
        left_s = self._proof_s
        share_s = left_s * (budget.PROOF_SHARE if len(winner.changes) > 1 else 1.0)
        if self.costs.pairs_in(share_s) < budget.FEWEST_PROOF:
            share_s = left_s  # a proof without an ablation says more than none
        proof = self._proof(TuningPhase.PROOF, winner.changes, winner.evidence, share_s)
        found = replace(found, proof=proof)
        if proof is None:
            self.cut_short.append("the proof")
        if proof is None or not proof.shows_gain or len(winner.changes) < 2:
            return found
        found = replace(found, ablation=self._ablation(winner.changes))
        reduced = self.space.applying([one.change for one in found.ablation if one.is_kept])
        is_other = bool(found.ablation) and 0 < len(reduced) < len(winner.changes)
        if not is_other or not self.space.is_possible(reduced):
            return found
        seen = proof.outcome.evidence or winner.evidence
        again = self._proof(TuningPhase.PROOF_AGAIN, reduced, seen, self._proof_s)
        if again is None:
            self.cut_short.append("the proof of the reduced combination")
        return replace(found, proof_again=again)

    @property
    def _proof_s(self) -> float:
        """Seconds that are left for proofs and ablation."""
        trades_s = budget.TRADE_SHARE * self.terms.budget_s if self.terms.with_trades else 0.0
        return self.costs.left_s - trades_s - self.costs.capacities_s

    def _proof(
        self, phase: TuningPhase, changes: Pairs, seen: GainEvidence, left_s: float
    ) -> Proof | None:
        pairs = budget.proof_pairs(self.costs, left_s, seen, PROOF_ALPHA)
        if pairs < budget.FEWEST_PROOF:
            return None
        self.say(f"{phase.value}: the default and {words(changes)}, {pairs} pairs")
        outcome = self._compared(phase, (), changes, pairs)
        interval = outcome.evidence.interval(PROOF_ALPHA) if outcome.evidence else None
        return Proof(changes, outcome, interval)

    def _ablation(self, winner: Pairs) -> tuple[Share, ...]:
        """Put back each changed setting alone; empty if there is no time for all of them."""
        pairs = budget.ablation_pairs(self.costs, self._proof_s, len(winner))
        if pairs < budget.FEWEST_ABLATION:
            self.cut_short.append("the ablation")
            return ()
        outcomes = []
        for change in winner:
            rest = self.space.applying([one for one in winner if one != change])
            if not self.space.is_possible(rest):
                outcomes.append(ComparisonOutcome(None, IMPOSSIBLE, a_does_not_start=True))
                continue
            self.say(f"without {words((change,))}, {pairs} pairs")
            outcomes.append(self._compared(TuningPhase.ABLATION, rest, winner, pairs))
        found = [one.evidence for one in outcomes]
        ps = holm.adjusted([None if one is None else one.p_no_gain for one in found])
        return tuple(
            Share(change, outcome.evidence, p, outcome.failure, outcome.a_does_not_start)
            for change, outcome, p in zip(winner, outcomes, ps, strict=True)
        )

    # Trades

    def _with_trades(self, found: Tuned) -> Tuned:
        if not self.terms.with_trades:
            return found
        base, trades = found.changes, list[tuple[tuple[str, str], ComparisonOutcome]]()
        for change in self._trades(base):
            left_s = self.costs.left_s - self.costs.capacities_s
            if left_s < self.costs.of(budget.TRADE_PAIRS):
                self.cut_short.append(f"the trade {words((change,))}")
                continue
            self.say(f"trade: {words((change,))}")
            changes = self.space.applying([*base, change])
            trades.append(
                (change, self._compared(TuningPhase.TRADE, base, changes, budget.TRADE_PAIRS))
            )
        alpha = ALPHA / max(len(trades), 1)  # all intervals together hold with 95 %
        shown = tuple(
            Trade(
                change,
                one.evidence,
                one.evidence.interval(alpha) if one.evidence else None,
                one.failure,
            )
            for change, one in trades
        )
        return replace(found, trades=shown)

    # What it means for N

    def _with_capacities(self, found: Tuned) -> Tuned:
        """Search N of the default and of what is stated; the gain itself stays the proven one."""
        if not found.has_gain or not self.terms.searches_n:
            return found
        if not 0 < self.costs.capacities_s <= self.costs.left_s:
            self.cut_short.append("N of both")
            return found
        self.say(f"N of the default and of {words(found.changes)}")
        return replace(found, capacities=self._compared(TuningPhase.CAPACITY, (), found.changes, 1))

    def _trades(self, base: Pairs) -> list[tuple[str, str]]:
        values = self.space.values(base)
        return [
            (one.name, level)
            for one in self.space.trades
            for level in self.space.choices(one, values)
            if level is not None
            and level != values.get(one.name)
            and self.space.is_possible((*base, (one.name, level)))
        ]


def _found_first(
    suggested: Sequence[tuple[Pairs, str]], findings: Sequence[str]
) -> list[tuple[Pairs, str]]:
    """Return the suggestions with those first whose rules the audit found broken."""

    def rank(one: tuple[Pairs, str]) -> int:
        rules = [rule for rule in findings if rule in one[1].replace(",", " ").split()]
        return findings.index(rules[0]) if rules else len(findings)

    return sorted(suggested, key=rank)


def _kept(trials: Sequence[TriedCombination]) -> list[TriedCombination]:
    """Return the better half, without those that are not better than the default."""
    better = [one for one in trials if one.evidence is not None and _may_win(one.evidence)]
    return sorted(better, key=_seen, reverse=True)[: ceil(len(trials) * budget.KEPT)]


def _may_win(evidence: GainEvidence) -> bool:
    return evidence.mean > 0 and evidence.interval(DROP_ALPHA).high > 1


def _seen(tried: TriedCombination) -> float:
    return -inf if tried.evidence is None else tried.evidence.mean


def _best(trials: Iterable[TriedCombination]) -> TriedCombination | None:
    """Return the best of those that went furthest, if it was better than the default.

    One with few pairs has a wide interval, so luck carries it less far here.
    """
    known = [one for one in trials if _seen(one) > 0]
    return max(known, key=lambda one: (one.rounds, _seen(one)), default=None)


def _plainest(trials: Sequence[TriedCombination]) -> TriedCombination | None:
    """Return the combination with the fewest changes that looks as good as the best.

    As good is within one standard error of the difference (after Breiman et al., "Classification
    and Regression Trees", 1984), and within NESTED of them for a part of the best: settings that
    are not shown to bring more are advice that nobody needs.
    """
    best = _best(trials)
    if best is None:
        return None
    near = [one for one in trials if one is best or _is_near(one, best)]
    return min(near, key=lambda one: (len(one.changes), -_seen(one)))


def _is_near(one: TriedCombination, best: TriedCombination) -> bool:
    if one.evidence is None or best.evidence is None:
        return False
    is_part = set(one.changes) < set(best.changes)
    error = (NESTED if is_part else 1.0) * hypot(one.evidence.error, best.evidence.error)
    return one.evidence.mean > 0 and best.evidence.mean - one.evidence.mean <= error
