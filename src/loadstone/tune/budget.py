"""How a tuning spends its time: what comparisons cost, and how many there is time for."""

from dataclasses import dataclass, field
from math import ceil, isfinite, log
from statistics import fmean

from loadstone.compare.sequential import pairs_needed
from loadstone.compare.starts import PAIRS_OF_A_START, most_starts
from loadstone.tune.evidence import GainEvidence
from loadstone.tune.model import ComparisonOutcome, Terms

CHECK_PAIRS = 6  # of the default with itself
# Pairs of a combination's first round; each further round has twice as many.
FIRST_PAIRS, FEWEST_FIRST = 4, 2
FIRST_ERROR = 0.015  # standard error of a first round for which fewer than FIRST_PAIRS are enough
MOST_ROUNDS = 3  # of a race: at most 4, 8 and 16 pairs
KEPT = 0.5  # share of the combinations that a round keeps
MOST_TRIED = 64  # combinations; a longer budget goes into more pairs
FEWEST_TRIED = 2  # combinations that a search is worth beginning for
FEWEST_PROOF, MOST_PROOF = 8, 64  # pairs; with 7 degrees of freedom t is 2.8 times the error
SEARCH_SHARE = 0.5  # of the budget
PROOF_SHARE = 0.4  # of what is left after the search, when an ablation and a second proof follow
ABLATION_SHARE = 0.5  # of what is left after the proof
FEWEST_ABLATION = 6  # pairs of each setting
TRADE_SHARE = 0.2  # of the budget, with --with-trades
TRADE_PAIRS = 8
N_S = 60.0  # of load, of each search at the end
N_SHARE = 0.15  # of the budget, at most, for both
# The gain that was seen while searching is larger than the true one; half of it must be found.
EXPECTED = 0.5


@dataclass(slots=True)
class ComparisonDurations:
    """Seconds of a comparison, learned from those that were made."""

    terms: Terms
    spent_s: float = 0.0
    first_pairs: int = FIRST_PAIRS  # of a combination's first round
    _starts_s: list[float] = field(default_factory=list)
    _loads_s: list[tuple[float, int]] = field(default_factory=list)
    _restarts_s: list[float] = field(default_factory=list)  # after the first, of both services

    def add(self, outcome: ComparisonOutcome, pairs: int) -> None:
        """Count a comparison."""
        self.spent_s += outcome.took_s
        if outcome.evidence is not None and outcome.load_s > 0:
            restarts_s = (most_starts(pairs) - 1) * outcome.restart_s
            self._starts_s.append(outcome.took_s - outcome.load_s - restarts_s)
            self._loads_s.append((outcome.load_s, pairs))
            self._restarts_s.append(outcome.restart_s)

    def learn_scatter(self, check: GainEvidence) -> None:
        """Plan the first rounds: pairs that scatter little tell enough when there are few."""
        if not isfinite(check.deviation):
            return
        wanted = ceil(min(check.deviation / FIRST_ERROR, FIRST_PAIRS) ** 2)
        self.first_pairs = min(max(wanted, FEWEST_FIRST), FIRST_PAIRS)

    def pairs_of_round(self, number: int) -> int:
        """Return the pairs of a round of the race; 1 is the first."""
        return self.first_pairs << (number - 1)

    @property
    def start_s(self) -> float:
        """Seconds until the first pair."""
        known = self._starts_s
        return sum(known) / len(known) if known else self.terms.start_s

    @property
    def pair_s(self) -> float:
        """Seconds of a pair of trials, with its share of a restart."""
        known = self._loads_s
        if not known:
            return self.terms.pair_s
        load_s = sum(one_s for one_s, _ in known) / sum(pairs for _, pairs in known)
        return load_s + fmean(self._restarts_s) / PAIRS_OF_A_START

    def of(self, pairs: int) -> float:
        """Return the seconds of a comparison of so many pairs."""
        return self.start_s + pairs * self.pair_s

    def pairs_in(self, seconds: float) -> int:
        """Return how many pairs a comparison has time for; negative if not even for the start."""
        return int((seconds - self.start_s) / self.pair_s)

    @property
    def capacities_s(self) -> float:
        """Seconds of the two searches at the end; 0 if the budget is too small for them."""
        seconds = self.start_s + 2 * N_S
        fits = seconds <= N_SHARE * self.terms.budget_s
        return seconds if self.terms.searches_n and fits else 0.0

    @property
    def left_s(self) -> float:
        """Seconds that are left of the budget."""
        return self.terms.budget_s - self.spent_s


def least_s(terms: Terms) -> float:
    """Return the shortest budget that can prove a gain of one setting."""
    costs = ComparisonDurations(terms)
    search_s = FEWEST_TRIED * costs.of(FIRST_PAIRS)
    # The check is a part of the search's share.
    return max(
        (costs.of(CHECK_PAIRS) + search_s) / SEARCH_SHARE,
        costs.of(CHECK_PAIRS) + search_s + costs.of(FEWEST_PROOF),
    )


def combinations(costs: ComparisonDurations, seconds: float) -> int:
    """Return how many combinations a race has time for."""
    for count in range(MOST_TRIED, FEWEST_TRIED, -1):
        if _race_s(costs, count) <= seconds:
            return count
    return FEWEST_TRIED


def _race_s(costs: ComparisonDurations, count: int) -> float:
    total = 0.0
    for number in range(MOST_ROUNDS):
        total += count * costs.of(costs.pairs_of_round(number + 1))
        count = ceil(count * KEPT)
    return total


def ablation_pairs(costs: ComparisonDurations, seconds: float, settings: int) -> int:
    """Return the pairs of each setting's ablation; fewer than FEWEST_ABLATION if there is no time.

    Half of the seconds are for the second proof. If the other half is too short for the fewest
    pairs, the ablation gets what these take: to know what carries a gain says more than a proof of
    the rest.
    """
    within = costs.pairs_in(ABLATION_SHARE * seconds / settings)
    fewest = min(costs.pairs_in(seconds / settings), FEWEST_ABLATION)
    return min(max(within, fewest), MOST_PROOF)


def proof_pairs(
    costs: ComparisonDurations, seconds: float, seen: GainEvidence, alpha: float
) -> int:
    """Return the pairs of a proof; fewer than FEWEST_PROOF if there is no time for it.

    As many as it takes to find half of the gain that was seen, with 80 % power.
    """
    expected = max(EXPECTED * seen.mean, log(1.005))
    needed = MOST_PROOF
    if seen.deviation > 0:
        needed = pairs_needed(seen.deviation, expected, alpha)
    return min(max(needed, FEWEST_PROOF), MOST_PROOF, costs.pairs_in(seconds))
