"""Files that run in the service's environment with its packages, never in Loadstone's."""
