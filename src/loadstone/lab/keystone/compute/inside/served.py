"""The WSGI application of a service, with the line by which the lab counts loaded processes."""

import importlib
import os
import sys

application = importlib.import_module(os.environ["LOADSTONE_APPLICATION"]).application
print(os.environ["LOADSTONE_LOADED"], file=sys.stderr, flush=True)
