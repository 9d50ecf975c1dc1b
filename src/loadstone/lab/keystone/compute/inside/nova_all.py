"""Nova in one process: API, conductor, scheduler and compute, on oslo.messaging's own driver."""
# mypy: ignore-errors
# ruff: noqa: E402
# Nova is installed in the lab's environment only.

from nova import monkey_patch

monkey_patch.patch(backend="threading")  # before anything else of Nova

import os
import shlex
import sys
import time
import urllib.request

import nova.conf
import os_vif
import uwsgi
from nova import context, objects, service, utils
from nova.api.openstack import wsgi_app
from nova.compute import rpcapi as compute_rpcapi
from nova.conductor import rpcapi as conductor_rpcapi
from nova.objects import host_mapping
from nova.scheduler import rpcapi as scheduler_rpcapi
from oslo_privsep import priv_context
from oslo_service import opts as service_opts

PATIENCE_S = 120.0

application = wsgi_app.init_application("osapi_compute", "nova-api-os-compute")


def await_placement(url):
    """Wait until Placement serves: nova-compute reports its resources to it at its start."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310  # on loopback
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def start_services():
    """Start conductor, scheduler and compute in threads; return them."""
    service_opts.register_service_opts(nova.conf.CONF)
    priv_context.init(root_helper=shlex.split(utils.get_root_helper()))
    os_vif.initialize()
    objects.Service.enable_min_version_cache()
    started = []
    for binary, topics in (
        ("nova-conductor", {"topic": conductor_rpcapi.RPC_TOPIC}),
        ("nova-scheduler", {"topic": scheduler_rpcapi.RPC_TOPIC}),
        (
            "nova-compute",
            {"topic": compute_rpcapi.RPC_TOPIC, "topic_alt": compute_rpcapi.RPC_TOPIC_ALT},
        ),
    ):
        one = service.Service.create(binary=binary, **topics)
        one.start()
        started.append(one)
    return started


def end_at_once():
    """End the process: threads of Nova outlive a SIGTERM."""
    os._exit(0)


await_placement(os.environ["LOADSTONE_PLACEMENT"])
running = start_services()
# What `nova-manage cell_v2 discover_hosts` does: a new compute host is known to its cell.
host_mapping.discover_hosts(context.get_admin_context())
uwsgi.atexit = end_at_once
print(os.environ["LOADSTONE_LOADED"], file=sys.stderr, flush=True)
