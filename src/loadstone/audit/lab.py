"""A deployment of the lab as a host to collect from."""

from loadstone.audit.transport import Host, local
from loadstone.errors import InvalidInput
from loadstone.lab.keystone.deployment import Deployment
from loadstone.lab.keystone.settings import Service
from loadstone.lab.state import secret_folder


def has_rules(deployment: Deployment) -> bool:
    """Return whether there are rules for what a deployment serves."""
    has_some = deployment.service not in (Service.OIDC_PROVIDER, Service.HYDRA)
    return has_some and not deployment.is_in_rust


def host(deployment: Deployment, **more: str) -> Host:
    """Return this machine, limited to the deployment's processes and files.

    `more` are further settings of the collector.
    """
    if not has_rules(deployment):
        what = "Keystone in Rust" if deployment.is_in_rust else f"an {deployment.service}"
        raise InvalidInput(
            f"lab {deployment.name} is {what}, and the rules are for Keystone in Python and "
            "Keycloak"
        )
    leaders = (record.process for record in deployment.state.records)
    pids = (str(process.pid) for process in leaders if process is not None)
    folder = deployment.folder
    variables = {
        "AUDIT_NAME": deployment.name,
        "AUDIT_PIDS": " ".join(pids),
        "AUDIT_ETC": str(folder / "etc"),  # not that of this machine
    }
    if deployment.service is not Service.KEYCLOAK:
        files = (folder / "keystone.conf", secret_folder(folder) / "keystone.conf")
        variables |= {
            "AUDIT_PYTHON": str(deployment.python),
            "AUDIT_KEYSTONE_CONF": "\n".join(str(path) for path in files),
        }
    return local(variables | more, deployment.name)
