"""Proposes combinations to try, by Optuna's tree-structured Parzen estimator (TPE)."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from loadstone.errors import EnvironmentUnusable
from loadstone.tune.space import Pairs, Setting, Space

if TYPE_CHECKING:
    import optuna

MOST_REPEATS = 10  # proposals in a row that are known or impossible, until one is drawn at random
MOST_DRAWN = 1000  # such draws, until the space counts as searched
FIRST = 8  # proposals at random before the estimator has its say: Optuna's default is 10
SEARCHED = "search"  # origin of a combination


def require_optuna() -> None:
    """Raise EnvironmentUnusable if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise EnvironmentUnusable(
            "loadstone tune needs Optuna, which is not installed: pip install 'optuna>=4'"
        ) from None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A combination to try; `tell` says how good it was."""

    changes: Pairs
    origin: str
    tell: Callable[[float | None], None]  # mean log ratio; None: it failed


@dataclass(slots=True)
class Proposals:
    """Proposes each combination once; suggestions come first."""

    space: Space
    seed: int
    suggested: deque[tuple[Pairs, str]] = field(default_factory=deque)
    _study: "optuna.Study" = field(init=False)
    _known: set[Pairs] = field(default_factory=set, init=False)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        import optuna

        self._random = Random(self.seed)  # noqa: S311 (no secret)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=FIRST)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        # The default beside itself is a trial that needs no measurement.
        self._enqueue(())
        self._known.add(())
        _, tell = self._ask()
        tell(0.0)

    def next(self) -> Proposal | None:
        """Return the next combination; None if none that is new was found."""
        while self.suggested:
            changes, origin = self.suggested.popleft()
            if self._is_new(changes):
                self._enqueue(changes)
                found, tell = self._ask()
                self._known.add(found)
                return Proposal(found, origin, tell)
        for _ in range(MOST_REPEATS):
            changes, tell = self._ask()
            if self._is_new(changes):
                self._known.add(changes)
                return Proposal(changes, SEARCHED, tell)
            tell(None)
        for _ in range(MOST_DRAWN):
            changes = self._drawn()
            if self._is_new(changes):
                self.suggested.append((changes, SEARCHED))
                return self.next()
        return None

    def _is_new(self, changes: Pairs) -> bool:
        return changes not in self._known and self.space.is_possible(changes)

    def _drawn(self) -> Pairs:
        changes = list[tuple[str, str]]()
        for one in self.space.settings:
            choices = self.space.choices(one, self.space.values(tuple(changes)))
            level = self._random.choice(choices)
            if level is not None:
                changes.append((one.name, level))
        return tuple(changes)

    def _enqueue(self, changes: Pairs) -> None:
        chosen = dict(changes)
        values = self.space.values(changes)
        fixed: dict[str, object] = {}
        for one in self.space.settings:
            choices = self.space.choices(one, values)
            if len(choices) > 1:
                fixed[one.name] = _code(one, choices, chosen.get(one.name))
        self._study.enqueue_trial(fixed)

    def _ask(self) -> tuple[Pairs, Callable[[float | None], None]]:
        from optuna.trial import TrialState

        trial = self._study.ask()
        changes: list[tuple[str, str]] = []
        for one in self.space.settings:
            choices = self.space.choices(one, self.space.values(tuple(changes)))
            if len(choices) < 2:
                continue
            level = _suggested(trial, one, choices)
            if level is not None:
                changes.append((one.name, level))

        def tell(value: float | None) -> None:
            state = TrialState.FAIL if value is None else TrialState.COMPLETE
            self._study.tell(trial, value, state=state)

        return tuple(changes), tell


def _suggested(
    trial: "optuna.Trial", setting: Setting, choices: tuple[str | None, ...]
) -> str | None:
    if _is_ordered(setting):
        return choices[trial.suggest_int(setting.name, 0, len(choices) - 1)]
    named = trial.suggest_categorical(setting.name, [one or "" for one in choices])
    return str(named) or None


def _code(setting: Setting, choices: tuple[str | None, ...], level: str | None) -> int | str:
    return choices.index(level) if _is_ordered(setting) else level or ""


def _is_ordered(setting: Setting) -> bool:
    """Return whether the levels are numbers, so that neighbours are alike."""
    with suppress(ValueError):
        return bool([float(one) for one in setting.levels])
    return False
