"""Tunings of services on real sockets, whose true gain is known.

    python -m verification.tuning.real --null
    python -m verification.tuning.real

Each tuning changes a `loadstone serve` of its own with `--apply` and `--revert` (`switch.py`),
which start it anew with the capacity of the settings. All tunings run at the same time, so the
machine is busy. With `--null` no setting has an effect, and the answer must be that no gain is
shown. Without it, four settings with 36 combinations have effects and interactions of a few
percent. The stated interval must hold the true gain, and the stated combination must be within 3 %
of the best one.
"""

import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import exp
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.lab.ports import Ports
from loadstone.tune.space import ChangeEffort, Pairs, Setting, SettingKind, Space
from verification.tuning import switch
from verification.tuning.simulated import Truth, drawn

CAPACITY_RPS = 80.0
LEVELS = {"S0": 3, "S1": 3, "S2": 2, "S3": 2}
NEAR = 0.03  # of the best combination


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one tuning, with the true gains."""

    has_gain: bool
    changes: Pairs
    low: float | None  # of the stated combination's gain
    high: float | None
    true: float  # gain of the stated combination
    best: float  # gain of the best combination
    failure: str = ""

    @property
    def holds(self) -> bool:
        """Whether the stated interval holds the true gain; a tuning that states none does."""
        return self.low is None or self.high is None or self.low <= self.true <= self.high

    @property
    def regret(self) -> float:
        """Share by which the best combination is faster than the advised one."""
        return self.best / (self.true if self.has_gain else 1.0) - 1


def space() -> Space:
    """Return the space of all tunings; the default has level 0 of each setting."""
    settings = tuple(
        Setting(name, tuple(map(str, range(count))), SettingKind.GAIN, ChangeEffort.RESTART, "", "")
        for name, count in LEVELS.items()
    )
    return Space("real", settings, (), tuple((name, "0") for name in LEVELS), is_of_lab=False)


def combinations() -> Iterator[Pairs]:
    """Yield all combinations as changes of the default."""
    for chosen in product(*(range(count) for count in LEVELS.values())):
        both = zip(LEVELS, chosen, strict=True)
        yield tuple((name, str(level)) for name, level in both if level)


def tuned(folder: Path, truth: Truth, port: int, budget: str) -> Answer:
    """Carry out one tuning with the command line."""
    password = secrets.token_hex(8)
    (folder / "space.yaml").write_text(
        json.dumps(
            {
                "settings": [
                    {"name": name, "levels": list(range(count))} for name, count in LEVELS.items()
                ]
            }
        )
    )
    (folder / "truth.json").write_text(json.dumps(_as_data(truth, port)))
    auth = {
        "auth_url": f"http://127.0.0.1:{port}/v3",
        "username": "admin",
        "password": password,
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    (folder / "clouds.yaml").write_text(json.dumps({"clouds": {"mine": {"auth": auth}}}))
    command = shlex.join((sys.executable, switch.__file__, str(folder)))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
        "LOADSTONE_HOME": str(folder / "home"),
        "LOADSTONE_SERVE_PASSWORD": password,
    }
    words = (
        *("tune", "--cloud", "mine", "--space", "space.yaml", "--users", "0"),
        *("--apply", f"{command} apply", "--revert", f"{command} revert"),
        *(f"--with={name}=0" for name in LEVELS),
        *("--yes-change-this-target", "--seconds", "4", "--budget", budget),
        *("--seed", str(port), "--json", "answer.json"),
    )
    try:
        subprocess.run(
            (*shlex.split(f"{command} revert"),), env=environment, cwd=folder, check=True
        )
        ended = subprocess.run(
            (sys.executable, "-m", "loadstone", *words),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        running = folder / "running"
        if running.exists():
            switch.end(int(running.read_text().split()[0]))
    best = max(exp(truth.speed(one)) for one in combinations())
    if ended.returncode != 0:
        return Answer(False, (), None, None, 1.0, best, ended.stderr.strip().splitlines()[-1])
    [found] = json.loads((folder / "answer.json").read_text())["measurements"]
    proofs = (found["proof_again"], found["proof"])
    stated = next((one for one in proofs if one and one["low"] and one["low"] > 1), proofs[1])
    changes = tuple((stated or {"changes": {}})["changes"].items())
    return Answer(
        found["has_gain"],
        changes,
        stated["low"] if stated else None,
        stated["high"] if stated else None,
        exp(truth.speed(changes)),
        best,
    )


def _as_data(truth: Truth, port: int) -> dict[str, object]:
    return {
        "port": port,
        "capacity_rps": CAPACITY_RPS,
        "names": list(LEVELS),
        "effects": {f"{name}={level}": value for (name, level), value in truth.effects.items()},
        "interactions": [
            [*sorted(f"{name}={level}" for name, level in two), value]
            for two, value in truth.interactions.items()
        ],
    }


def answers(count: int, seed: int, budget: str, *, is_null: bool) -> list[Answer]:
    """Return the answers of so many tunings at once."""
    ports = Ports({})
    chosen = [ports.allocate(str(number)) for number in range(count)]
    truths = [
        Truth() if is_null else drawn(space(), np.random.default_rng((seed, number)))
        for number in range(count)
    ]
    with tempfile.TemporaryDirectory(prefix="loadstone-tune-") as folder:
        folders = [Path(folder) / str(number) for number in range(count)]
        for one in folders:
            one.mkdir()
        with ThreadPoolExecutor(count) as pool:
            found = list(pool.map(tuned, folders, truths, chosen, [budget] * count))
    ports.release()
    return found


@click.command()
@click.option("--null", "is_null", is_flag=True, help="No setting has an effect.")
@click.option("--count", default=10, help="Tunings, all at the same time.")
@click.option("--budget", default="20m", help="Of each tuning.")
@click.option("--seed", default=1)
def main(*, is_null: bool, count: int, budget: str, seed: int) -> None:
    """Print what each tuning stated beside the truth, and how many were right."""
    found = answers(count, seed, budget, is_null=is_null)
    console = Console(width=130)
    table = Table("stated", "interval", "true gain", "best", "holds", "regret")
    for one in found:
        changes = " ".join(f"{name}={level}" for name, level in one.changes) or "nothing"
        within = "" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        what = one.failure or (changes if one.has_gain else f"no gain ({changes})")
        holds = "yes" if one.holds else "NO"
        numbers = (within, f"{one.true:.3f}", f"{one.best:.3f}", holds, f"{one.regret:.1%}")
        table.add_row(what, *numbers)
    console.print(table)
    ended = [one for one in found if not one.failure]
    false = sum(one.has_gain and one.true <= 1 for one in ended)
    right, near = sum(one.holds for one in ended), sum(one.regret <= NEAR for one in ended)
    answer = (
        f"no gain shown in {sum(not one.has_gain for one in ended)} of {count}"
        if is_null
        else f"interval holds the truth in {right} of {count}; within {NEAR:.0%} of the best: "
        f"{near} of {count}; gain stated where there is none: {false}"
    )
    console.print(answer)
    sys.exit(0 if len(ended) == count else 1)


if __name__ == "__main__":
    main()
