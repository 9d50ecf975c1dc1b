from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from realistic import keystone

from loadstone.monitor.identity_requests import AccessLogs, RequestKind
from loadstone.observers.identity_requests import IdentityWatch, capacities
from loadstone.result.listing import Entry, MeasurementSummary

HERE = {"lab": "c", "url": "http://127.0.0.1:1/v3", "workers": "2"}


def entry(run_id: str, facts: dict[str, str], *found: tuple[str, float | None]) -> Entry:
    findings = tuple(MeasurementSummary(name, name, rate, None, None) for name, rate in found)
    begun = "2026-11-22T16:00:00+00:00"
    configuration = tuple(facts.items())
    return Entry(run_id, "capacity", "finished", begun, None, findings, 1, (), "", "", None,
                 configuration)  # fmt: skip


def test_n_is_the_newest_that_was_found_on_this_configuration():
    elsewhere = HERE | {"url": "http://127.0.0.1:2/v3"}  # started again, on another port
    stored = [
        entry("r5", HERE | {"workers": "4"}, ("Authenticate.keystone", 40.0)),
        entry("r4", elsewhere, ("Authenticate.keystone", 20.0), ("KeystoneBasic.create_user", 3.0)),
        entry("r3", HERE, ("Authenticate.keystone", 19.0), ("Keystone.validate_token", None)),
        entry("r2", HERE, ("Keystone.validate_token", 90.0)),
    ]
    store = SimpleNamespace(every=lambda _: stored)  # newest first
    found = {one.kind: (one.rate_rps, one.run_id) for one in capacities(store, HERE)}
    assert found == {RequestKind.LOGIN: (20.0, "r4"), RequestKind.VALIDATION: (90.0, "r2")}


def test_what_came_before_and_after_the_load_is_not_counted(tmp_path: Path):
    result, _ = keystone()
    trial = replace(result.measurements[0].trials[0], start_s=1000.0)
    ended_s = 1000.0 + trial.stats.load_s
    begun_s = (999.99, 1000.02, ended_s - 0.01, ended_s + 0.01)
    log = tmp_path / "access.log"
    lines = (f"{1000 * at:.0f} GET /v3/auth/tokens?allow_expired=1 200 -" for at in begun_s)
    log.write_text("\n".join(lines))
    watched = IdentityWatch(AccessLogs((log,)), ()).on_trial_end(trial)
    [validations] = watched.identity.kinds
    assert (validations.kind, validations.count) == (RequestKind.VALIDATION, 2)
