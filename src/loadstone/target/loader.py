"""openstacksdk's loader of clouds, without the clients of all services.

`import openstack.config` runs the package's own file, too, which imports them all: 11 MB and 0.2 s
of CPU that reading a cloud has no use for.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec


def import_loader() -> None:
    """Import `openstack.config`; the package's own file runs for who asks `openstack` for more."""
    if "openstack" in sys.modules:
        return
    spec = find_spec("openstack")
    if spec is None or spec.loader is None:
        raise AssertionError("openstacksdk is a dependency, and a package with a file")
    loader = spec.loader
    package = sys.modules["openstack"] = module_from_spec(spec)
    import_module("openstack.config")

    def rest(name: str) -> object:
        del vars(package)["__getattr__"]
        loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = rest  # PEP 562
