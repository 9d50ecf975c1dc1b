"""Faults whose truth is known: simulated ones, and those of `loadstone serve --script`."""

import json
import tempfile
import time
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from known_service import ISSUE, known_service

from loadstone.analysis.iterations import Iterations, iterations
from loadstone.engine.local import run
from loadstone.engine.outcome import Outcome
from loadstone.engine.progress import Progress
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Plan


@dataclass(frozen=True)
class Scripted:
    """A fault: `dark`, `slow` (a factor), `refuse` (a share, evenly spread) or `none`."""

    kind: str
    at_s: float
    lasts_s: float
    amount: float = 0.0

    @property
    def end_s(self) -> float:
        return self.at_s + self.lasts_s

    @property
    def row(self) -> dict[str, float]:
        if self.kind == "dark":
            return {"at": self.at_s, "dark": self.lasts_s}
        return {"at": self.at_s, self.kind: self.amount, "for": self.lasts_s}


def made(due_s, done_s, outcome=None, status=None) -> Iterations:
    """Iterations from their instants."""
    due_s, done_s = np.asarray(due_s, float), np.asarray(done_s, float)
    outcome = np.zeros(len(due_s), np.uint8) if outcome is None else np.asarray(outcome, np.uint8)
    return Iterations(
        number=np.arange(len(due_s), dtype=np.uint32),
        due_ns=(due_s * 1e9).astype(np.int64),
        sent_ns=(due_s * 1e9).astype(np.int64),
        done_ns=(done_s * 1e9).astype(np.int64),
        outcome=outcome,
        status=np.full(len(due_s), 201, np.uint16) if status is None else np.asarray(status),
        has_ended=np.ones(len(due_s), np.bool_),
        failing=np.flatnonzero(outcome),
    )


def simulated(
    fault: Scripted, seed: int, rate_rps: float = 50.0, seconds: float = 25.0, mean_s: float = 0.01
) -> Iterations:
    """A queue of four workers with noisy service times, and one fault."""
    random = np.random.default_rng(seed)
    due_s = (np.arange(round(rate_rps * seconds)) + random.random()) / rate_rps
    service_s = mean_s * (0.7 + random.exponential(0.3, len(due_s)))
    free_s = [0.0] * 4
    done_s, outcome, refused = np.empty(len(due_s)), np.zeros(len(due_s), np.uint8), 0.0
    for i, due in enumerate(due_s.tolist()):
        is_on = fault.at_s <= due < fault.end_s
        refused += fault.amount if is_on and fault.kind == "refuse" else 0.0
        if is_on and fault.kind == "dark":
            done_s[i], outcome[i] = due + 0.0005, Outcome.REFUSED
        elif refused > 1 - 1e-9:
            refused -= 1
            done_s[i], outcome[i] = due + 0.0005, Outcome.HTTP_STATUS
        else:
            place = int(np.argmin(free_s))
            factor = fault.amount if is_on and fault.kind == "slow" else 1.0
            free_s[place] = done_s[i] = max(due, free_s[place]) + factor * service_s[i]
    return made(due_s, done_s, outcome, np.where(outcome == Outcome.HTTP_STATUS, 503, 201))


def measured(
    faults: list[Scripted], seconds: float, rate_rps: float = 50.0, service_s: float = 0.05
) -> tuple[Iterations, list[Scripted]]:
    """Load a service of 16 workers with such a script; return what came, and the faults.

    Instants are seconds after the load's start: those of `faults` as far as that can be foreseen,
    those returned as the service tells them.
    """
    start_s = 2.0  # of the service, until load begins
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.yaml"
        rows = [replace(one, at_s=one.at_s + start_s).row for one in faults]
        script.write_text(json.dumps(rows))
        with known_service(16, service_s, f"--script={script}") as known:
            began: list[float] = []

            def watch(progress: Progress) -> bool:
                began.append(time.time() - progress.elapsed_s)
                return True

            plan = Plan(
                origin=Origin("http", "127.0.0.1", known.port),
                steps=(ISSUE,),
                load=OpenLoad(rate_rps, seconds),
                limits=Limits(request_timeout_s=10.0),
                retries="never",
            )
            samples = run(plan, watch).samples
            url = f"http://127.0.0.1:{known.port}/loadstone/counts"
            with urllib.request.urlopen(url) as answer:
                happened = json.load(answer)["script"]
    zero_s = min(began)
    truth = [
        Scripted(one["kind"], one["began_s"] - zero_s, one["ended_s"] - one["began_s"],
                 one["amount"])
        for one in happened
    ]  # fmt: skip
    return iterations(samples), truth
