from types import SimpleNamespace

from loadstone.identity_watch import capacities
from loadstone.monitor.identity_requests import RequestKind
from loadstone.result import Entry, MeasurementSummary

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
