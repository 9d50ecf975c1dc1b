"""The example for Kubernetes is what the operator and Dask's own commands accept."""

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker
from jsonschema import Draft202012Validator

from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY
from loadstone.engine.fleet.dask_settings import environment
from loadstone.engine.fleet.hosts_file import LOAD

MANIFEST = Path(__file__).parents[3] / "docs/examples/fleet-kubernetes.yaml"
DEFINITION = "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds"
COMMANDS = {
    "distributed.cli.dask_scheduler": dask_scheduler,
    "distributed.cli.dask_worker": dask_worker,
}


@pytest.fixture(scope="module")
def cluster() -> dict[str, Any]:
    return yaml.safe_load(MANIFEST.read_text())


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    path = distribution("dask-kubernetes").locate_file(f"{DEFINITION}/daskcluster.yaml")
    [version] = yaml.safe_load(Path(str(path)).read_text())["spec"]["versions"]
    return Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]))


def closed(schema: Any) -> Any:
    """Return a schema that refuses unknown fields, as the API server's strict validation does."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    preserves = found.get("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(found.get("properties"), dict) and not preserves:
        found.setdefault("additionalProperties", False)
    return found


def containers(cluster: dict[str, Any]) -> list[list[str]]:
    parts = (cluster["spec"]["scheduler"], cluster["spec"]["worker"])
    return [one["command"] for part in parts for one in part["spec"]["containers"]]


def test_the_operator_accepts_the_cluster(
    cluster: dict[str, Any], validator: Draft202012Validator
) -> None:
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    assert [one.message for one in validator.iter_errors({"spec": cluster["spec"]})] == []


def test_its_workers_have_our_settings_of_dask(cluster: dict[str, Any]) -> None:
    [worker] = cluster["spec"]["worker"]["spec"]["containers"]
    given = {one["name"]: one["value"] for one in worker["env"]}
    ours = environment()
    assert given == {name: value for name, value in ours.items() if "__SCHEDULER__" not in name}


def test_a_misspelt_field_would_be_refused(
    cluster: dict[str, Any], validator: Draft202012Validator
) -> None:
    spec = cluster["spec"] | {"workers": cluster["spec"]["worker"]}
    container = cluster["spec"]["worker"]["spec"]["containers"][0] | {"arguments": []}
    deep = cluster["spec"] | {"worker": {"replicas": 4, "spec": {"containers": [container]}}}
    assert any("'workers'" in one.message for one in validator.iter_errors({"spec": spec}))
    assert any("'arguments'" in one.message for one in validator.iter_errors({"spec": deep}))


def test_dask_accepts_the_commands_of_its_containers(
    cluster: dict[str, Any], tmp_path: Path
) -> None:
    for name in (CA, CERTIFICATE, KEY):
        (tmp_path / name).touch()
    for python, option, module, *arguments in containers(cluster):
        assert (python, option) == ("python", "-m")
        here = [one.replace("/fleet/", f"{tmp_path}/") for one in arguments]
        given = COMMANDS[module].main.make_context(module, here).params
        tls = (given["tls_ca_file"], given["tls_cert"], given["tls_key"])
        assert tls == tuple(f"{tmp_path}/{name}" for name in (CA, CERTIFICATE, KEY))
    assert given["resources"] == f"{LOAD}=1"
