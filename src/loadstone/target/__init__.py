"""The target: identity endpoint and credentials from clouds.yaml, OS_* or a lab."""

from loadstone.target.access import Access, connect
from loadstone.target.cloud import Cloud, Endpoint, TlsFiles
from loadstone.target.permission import require_permission
from loadstone.target.read import from_clouds_yaml, from_environment

__all__ = [
    "Access",
    "Cloud",
    "Endpoint",
    "TlsFiles",
    "connect",
    "from_clouds_yaml",
    "from_environment",
    "require_permission",
]
