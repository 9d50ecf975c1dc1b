"""A deployment of the lab as a host to collect from."""

from loadstone.audit.transport import Host, local
from loadstone.errors import InvalidInput
from loadstone.lab.keystone.deployment import Deployment
from loadstone.lab.state import secret_folder


def host(deployment: Deployment) -> Host:
    """Return this machine, limited to the deployment's processes and files."""
    if deployment.is_provider:
        raise InvalidInput(
            f"lab {deployment.name} is an OpenID provider, and the rules are Keystone's"
        )
    leaders = (record.process for record in deployment.state.records)
    pids = (str(process.pid) for process in leaders if process is not None)
    folder = deployment.folder
    files = (folder / "keystone.conf", secret_folder(folder) / "keystone.conf")
    return local(
        {
            "AUDIT_NAME": deployment.name,
            "AUDIT_PIDS": " ".join(pids),
            "AUDIT_PYTHON": str(deployment.python),
            "AUDIT_KEYSTONE_CONF": "\n".join(str(path) for path in files),
            "AUDIT_ETC": str(folder / "etc"),  # not that of this machine
        },
        deployment.name,
    )
