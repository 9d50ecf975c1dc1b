"""The whole of a tuning: check, search, proof, ablation, second proof, trades.

It gets `measure`, which compares two combinations in fresh pairs of trials, and knows nothing of
labs, clocks or disks. All its decisions follow from the outcomes, so a tuning that was interrupted
goes on where it ended when the same outcomes are given to it again.

The search is a race (successive halving: Jamieson and Talwalkar, AISTATS 2016). Its best value
flatters itself, because it is the highest of many noisy ones. So it only chooses; the gain that is
stated comes from pairs that the choice has not seen.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from loadstone.analysis import holm
from loadstone.errors import EnvironmentUnusable
from loadstone.tune import budget
from loadstone.tune.budget import Costs
from loadstone.tune.evidence import Evidence, pooled
from loadstone.tune.model import (
    Comparison,
    Measure,
    Outcome,
    Phase,
    Proof,
    Share,
    Terms,
    Trade,
    Trial,
    Tuned,
)
from loadstone.tune.propose import Proposal, Proposals
from loadstone.tune.space import Pairs, Space, words

Say = Callable[[str], None]

ALPHA = 0.05  # chance that a stated interval misses the true gain
# There may be two proofs, and which one is stated depends on what they show. Each has half of the
# error rate (Bonferroni), so that both intervals hold with 95 %.
PROOF_ALPHA = ALPHA / 2
DROP_ALPHA = 0.2  # of the interval by which a race drops a combination: 90 % one-sided


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
class _Racer:
    """A combination in the race."""

    proposal: Proposal
    evidence: Evidence | None = None
    failure: str = ""
    rounds: int = 0

    @property
    def trial(self) -> Trial:
        proposal = self.proposal
        return Trial(proposal.changes, proposal.origin, self.evidence, self.failure, self.rounds)


@dataclass(slots=True)
class _Tuning:
    space: Space
    terms: Terms
    measure: Measure
    say: Say
    costs: Costs = field(init=False)
    cut_short: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.costs = Costs(self.terms)

    def run(self, suggested: Sequence[tuple[Pairs, str]]) -> Tuned:
        check = self._check()
        racers = self._race(Proposals(self.space, self.terms.seed, deque(suggested)))
        found = Tuned(check, tuple(one.trial for one in racers), winner=_winner(racers))
        found = self._proven(found)
        found = self._with_trades(found)
        return replace(found, spent_s=self.costs.spent_s, cut_short=tuple(self.cut_short))

    def _compared(self, phase: Phase, a: Pairs, b: Pairs, pairs: int) -> Outcome:
        outcome = self.measure(Comparison(phase, a, b, pairs))
        self.costs.add(outcome, pairs)
        return outcome

    def _check(self) -> Outcome:
        """Compare the default with itself: it must start, and its scatter plans the rest."""
        self.say("the default beside itself")
        outcome = self._compared(Phase.CHECK, (), (), budget.CHECK_PAIRS)
        if outcome.evidence is None:
            raise EnvironmentUnusable(f"the default cannot be measured: {outcome.failure}")
        return outcome

    # The race

    @property
    def _search_s(self) -> float:
        """Seconds that are left for the search."""
        share = budget.SEARCH_SHARE
        if self.terms.with_trades:
            share -= budget.TRADE_SHARE / 2
        return share * self.terms.budget_s - self.costs.spent_s

    def _race(self, proposals: Proposals) -> list[_Racer]:
        count = budget.combinations(self.costs, self._search_s)
        racers = self._first_round(proposals, count)
        running = [one for one in racers if one.evidence is not None]
        pairs = budget.FIRST_PAIRS
        for _ in range(budget.MOST_ROUNDS - 1):
            running = _kept(running)
            pairs *= 2
            if not running or self._search_s < self.costs.of(pairs):
                break
            for one in running:
                if self._search_s < self.costs.of(pairs):
                    break
                self._measure_again(one, pairs)
        return racers

    def _first_round(self, proposals: Proposals, count: int) -> list[_Racer]:
        racers: list[_Racer] = []
        while len(racers) < count:
            # Later rounds need their share of the time.
            if len(racers) >= budget.FEWEST_TRIED and self._search_s < self.costs.of(
                budget.FIRST_PAIRS
            ):
                break
            proposal = proposals.next()
            if proposal is None:
                break
            racer = _Racer(proposal)
            self.say(f"{words(proposal.changes)} ({proposal.origin})")
            self._measure_again(racer, budget.FIRST_PAIRS)
            proposal.tell(None if racer.evidence is None else racer.evidence.mean)
            racers.append(racer)
        return racers

    def _measure_again(self, racer: _Racer, pairs: int) -> None:
        if racer.rounds:
            self.say(f"{words(racer.proposal.changes)}, round {racer.rounds + 1}")
        outcome = self._compared(Phase.SEARCH, (), racer.proposal.changes, pairs)
        racer.rounds += 1
        if outcome.evidence is None:
            racer.failure, racer.evidence = outcome.failure, None
            self.say(f"  dropped: {outcome.failure}")
            return
        known = [] if racer.evidence is None else [racer.evidence]
        racer.evidence = pooled([*known, outcome.evidence])

    # The proofs

    def _proven(self, found: Tuned) -> Tuned:
        """Prove the winner, find what carries its gain, and prove the rest again."""
        winner = found.winner
        if winner is None or winner.evidence is None:
            return found
        left_s = self._proof_s
        if len(winner.changes) > 1:
            left_s *= budget.PROOF_SHARE
        proof = self._proof(Phase.PROOF, winner.changes, winner.evidence, left_s)
        found = replace(found, proof=proof)
        if proof is None:
            self.cut_short.append("the proof")
        if proof is None or not proof.shows_gain or len(winner.changes) < 2:
            return found
        found = replace(found, ablation=self._ablation(winner.changes))
        reduced = self.space.applying([one.change for one in found.ablation if one.carries])
        if not reduced or len(reduced) == len(winner.changes) or not found.ablation:
            return found
        seen = proof.outcome.evidence or winner.evidence
        again = self._proof(Phase.PROOF_AGAIN, reduced, seen, self._proof_s)
        if again is None:
            self.cut_short.append("the proof of the reduced combination")
        return replace(found, proof_again=again)

    @property
    def _proof_s(self) -> float:
        """Seconds that are left for proofs and ablation."""
        trades_s = budget.TRADE_SHARE * self.terms.budget_s if self.terms.with_trades else 0.0
        return self.costs.left_s - trades_s

    def _proof(self, phase: Phase, changes: Pairs, seen: Evidence, left_s: float) -> Proof | None:
        pairs = budget.proof_pairs(self.costs, left_s, seen, PROOF_ALPHA)
        if pairs < budget.FEWEST_PROOF:
            return None
        self.say(f"{phase.value}: the default and {words(changes)}, {pairs} pairs")
        outcome = self._compared(phase, (), changes, pairs)
        interval = outcome.evidence.interval(PROOF_ALPHA) if outcome.evidence else None
        return Proof(changes, outcome, interval)

    def _ablation(self, winner: Pairs) -> tuple[Share, ...]:
        """Put back each changed setting alone; empty if there is no time for all of them."""
        each_s = budget.ABLATION_SHARE * self._proof_s / len(winner)
        pairs = min(self.costs.pairs_in(each_s), budget.MOST_PROOF)
        if pairs < budget.FEWEST_ABLATION:
            self.cut_short.append("the ablation")
            return ()
        outcomes = []
        for change in winner:
            rest = self.space.applying([one for one in winner if one != change])
            self.say(f"without {words((change,))}, {pairs} pairs")
            outcomes.append(self._compared(Phase.ABLATION, rest, winner, pairs))
        found = [one.evidence for one in outcomes]
        ps = holm.adjusted([None if one is None else one.p_no_gain for one in found])
        return tuple(
            Share(change, outcome.evidence, p, outcome.failure)
            for change, outcome, p in zip(winner, outcomes, ps, strict=True)
        )

    # Trades

    def _with_trades(self, found: Tuned) -> Tuned:
        if not self.terms.with_trades:
            return found
        base, trades = found.changes, list[tuple[tuple[str, str], Outcome]]()
        for change in self._trades(base):
            if self.costs.left_s < self.costs.of(budget.TRADE_PAIRS):
                self.cut_short.append(f"the trade {words((change,))}")
                continue
            self.say(f"trade: {words((change,))}")
            changes = self.space.applying([*base, change])
            trades.append((change, self._compared(Phase.TRADE, base, changes, budget.TRADE_PAIRS)))
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


def _kept(racers: Sequence[_Racer]) -> list[_Racer]:
    """Return the better half, without those that are not better than the default."""
    better = [one for one in racers if one.evidence is not None and _may_win(one.evidence)]
    ranked = sorted(better, key=lambda one: one.evidence.mean if one.evidence else 0, reverse=True)
    return ranked[: ceil(len(racers) * budget.KEPT)]


def _may_win(evidence: Evidence) -> bool:
    return evidence.mean > 0 and evidence.interval(DROP_ALPHA).high > 1


def _winner(racers: Sequence[_Racer]) -> Trial | None:
    """Return the best of those that went furthest, if it was better than the default."""
    known = [one for one in racers if one.evidence is not None and one.evidence.mean > 0]
    if not known:
        return None
    # A combination with few pairs has a wide interval, so luck carries it less far here.
    best = max(known, key=lambda one: (one.rounds, one.evidence.mean if one.evidence else 0))
    return best.trial
