"""The WSGI application: Keystone's own, which reads its options from the command line.

The server's command line is hidden from it, and exactly our configuration shown: nothing of an
/etc/keystone on this machine.
"""

import os
import sys

sys.argv = ["keystone", *os.environ["LOADSTONE_KEYSTONE_OPTIONS"].split("\n")]

from keystone.server import (  # type: ignore[import-not-found]  # noqa: E402  # the lab's package
    wsgi,
)

# What keystone.wsgi.api does too; older releases have no such module.
application = wsgi.initialize_public_application()
# To the web server's log: the lab counts the processes that have come so far.
print(os.environ["LOADSTONE_LOADED"], file=sys.stderr, flush=True)
