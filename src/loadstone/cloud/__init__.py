"""The target: identity endpoint and credentials from clouds.yaml, OS_* or a lab."""

from loadstone.cloud.access import Access, connect
from loadstone.cloud.cloud import Cloud, Endpoint
from loadstone.cloud.permission import require_permission
from loadstone.cloud.read import from_clouds_yaml, from_environment

__all__ = [
    "Access",
    "Cloud",
    "Endpoint",
    "connect",
    "from_clouds_yaml",
    "from_environment",
    "require_permission",
]
