"""Files that run with the service's packages, in its environment, never in Loadstone's."""
