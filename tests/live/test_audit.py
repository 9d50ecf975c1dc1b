"""The audit, against real servers that are set up well and wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from audited import CONTEXT
from command_line import CommandLine

from loadstone.audit import lab, rule
from loadstone.audit.evaluate import evaluate
from loadstone.audit.extract import extract
from loadstone.audit.transport import collect
from loadstone.lab import processes
from loadstone.lab.deployment import Deployment

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

Start = Callable[..., Deployment]
WELL = (
    "storage=tmpfs",
    "hash-rounds=10",
    "cache=memcached-pool",
    "conf.cache.memcache_dead_retry=30",
    "conf.cache.memcache_pool_connection_get_timeout=1",
)


def audited(deployment: Deployment, *words: str) -> tuple[int, dict]:
    """Return the exit code and the results by rule of an audit of a deployment."""
    done = command()("audit", "--lab", deployment.name, "--json", "-", *words)
    assert done.stderr == ""
    return done.returncode, by_rule(json.loads(done.stdout)["results"])


def command() -> CommandLine:
    return CommandLine(Path(os.environ["LOADSTONE_HOME"]))


def by_rule(results: list[dict]) -> dict[str, dict]:
    return {result["rule"]: result for result in results}


def found(results: dict) -> dict[str, str]:
    return {
        rule: result["severity"]
        for rule, result in results.items()
        if result["state"] in ("fail", "warn")
    }


def unknown(results: dict) -> dict[str, str]:
    return {r["rule"]: r["message"] for r in results.values() if r["state"] == "unknown"}


def test_a_deployment_that_is_set_up_well_has_no_finding_and_gives_no_secret(
    balanced_keystone: Deployment, tmp_path: Path
) -> None:
    deployment = balanced_keystone
    facts = tmp_path / "facts.json"
    collected = command()("audit", "collect", "--lab", deployment.name, "-o", str(facts))
    assert (collected.returncode, collected.stderr) == (0, "")
    done = command()("audit", str(facts), "--json", "-")
    results = by_rule(json.loads(done.stdout)["results"])
    assert (found(results), unknown(results), done.returncode) == ({}, {}, 0)
    assert results["KS-01"]["found"]["conf.cache.backend"] == "oslo_cache.memcache_pool"
    assert results["CAP-02"]["found"]["db.max_connections"] == 400
    assert results["LB-03"]["state"] == "pass"
    text = facts.read_text()
    assert "max_connections" in text  # the database was read
    assert [secret for secret in secrets_of(deployment) if secret in text] == []


def secrets_of(deployment: Deployment) -> set[str]:
    """Return passwords and keys of a deployment, as its files hold them."""
    files = [*(deployment.folder / "secret").iterdir()]
    words = " ".join(path.read_text() for path in files if path.is_file())
    for sign in ":@'":
        words = words.replace(sign, " ")
    found = {word for word in words.split() if len(word) >= 16 and "/" not in word}
    keys = (deployment.folder / "keys" / "fernet").iterdir()
    assert found
    return found | {path.read_text() for path in keys}


@pytest.mark.verify
def test_nodes_behind_haproxy_that_are_set_up_well_have_no_finding(start: Start) -> None:
    code, results = audited(start(*WELL, "database=postgres", "workers=2", "nodes=2"))
    assert (found(results), unknown(results), code) == ({}, {}, 0)
    assert results["LB-03"]["state"] == "pass"


def test_every_fault_of_a_deployment_with_mariadb_is_found(start: Start) -> None:
    deployment = start(
        "database=mariadb",
        "storage=tmpfs",
        "workers=1",
        "threads=8",
        "listen=10",
        "db-connections=10",
        "db-buffer-mb=8",
        "fernet-keys=100",
        "revocation-events=1500",
        "conf.DEFAULT.debug=true",
        "conf.DEFAULT.insecure_debug=true",
        "conf.database.connection_recycle_time=100000",
        "conf.token.cache_on_issue=false",
        "conf.catalog.caching=false",
        "hash-rounds=5",
    )
    with (deployment.folder / "keystone.conf").open("a") as file:
        file.write("\n[DEFAULT]\npublic_workers = 4\n")
    code, results = audited(deployment)
    assert found(results) == {
        "WEB-01": "critical",  # one worker
        "WEB-02": "warning",  # eight threads
        "WEB-06": "warning",  # a listen queue of 10
        "KS-01": "critical",  # "enabled" with the backend null
        "KS-02": "warning",
        "KS-03": "warning",
        "KS-07": "warning",  # 100 keys
        "KS-09": "info",
        "KS-12": "critical",
        "KS-18": "warning",
        "KS-23": "warning",  # public_workers
        "KS-26": "warning",  # doctor names debug
        "DB-12": "warning",
        "CAP-02": "critical",
    }
    # The lab makes its 100 keys at once.
    assert unknown(results) == {
        "KS-06": "capacity.keys_needed: fernet.rotation_s: the times of the keys show no period"
    }
    assert code == 1
    assert results["WEB-06"]["found"]["uwsgi.listen"] == 10
    assert results["KS-07"]["found"]["fernet.keys"] == 100
    assert results["CAP-02"]["found"]["db.max_connections"] == 10
    # A new Keystone's data fits even into 8 MB.
    assert results["DB-02"]["state"] == "pass"
    assert results["DB-02"]["found"]["db.buffer_mb"] == 8
    assert results["KS-09"]["found"]["keystone.stored_costs"] == [5]
    assert results["WEB-06"]["file"].endswith("uwsgi.conf")
    assert results["KS-12"]["line"] is not None


@pytest.mark.verify
def test_every_fault_of_a_deployment_with_postgres_is_found(start: Start) -> None:
    deployment = start(
        "database=postgres",
        "storage=tmpfs",
        "web=apache",
        "workers=2",
        "threads=10",
        "db-connections=20",
        "db-buffer-mb=8",
        "cache=memcached-pool",
        "hash-rounds=10",
        "conf.database.connection_debug=50",
        "conf.profiler.enabled=true",
    )
    (leader,) = (r.process for r in deployment.state.records if r.part == "memcached")
    assert leader is not None
    processes.stop(leader)  # `--lab` refuses a deployment of which a part has died
    (answer,) = collect([lab.host(deployment)])
    assert answer.document is not None
    facts = extract(deployment.name, answer.document, {**CONTEXT, "audit.is_lab": True})
    audit = evaluate(rule.select(()), [facts])
    assert {r.rule.id: r.severity for r in audit.findings()} == {
        "WEB-02": "warning",
        "KS-13": "warning",
        "KS-26": "warning",  # doctor sees it, too
        "DB-13": "critical",
        "DB-14": "warning",
        "MC-03": "critical",  # memcached is gone
        "MC-04": "warning",
    }
    results = {result.rule.id: result for result in audit.results}
    assert "Connection refused" in results["MC-03"].message
    assert results["MC-01"].state == "unknown"
    assert results["WEB-11"].state == "pass"
