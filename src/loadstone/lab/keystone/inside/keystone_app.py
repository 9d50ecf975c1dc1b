"""The WSGI application: Keystone's own, which reads its options from the command line.

The server's command line is replaced by one that names our configuration, so that nothing from
/etc/keystone on this machine is read.
"""

import gc
import os
import sys

sys.argv = ["keystone", *os.environ["LOADSTONE_KEYSTONE_OPTIONS"].split("\n")]

from keystone.server import (  # type: ignore[import-not-found]  # noqa: E402  # the lab's package
    wsgi,
)

if os.environ.get("LOADSTONE_GC_THRESHOLD"):
    gc.set_threshold(int(os.environ["LOADSTONE_GC_THRESHOLD"]))
# keystone.wsgi.api does the same; older releases have no such module.
application = wsgi.initialize_public_application()
# Goes to the web server's log, where the lab counts the loaded processes.
print(os.environ["LOADSTONE_LOADED"], file=sys.stderr, flush=True)
