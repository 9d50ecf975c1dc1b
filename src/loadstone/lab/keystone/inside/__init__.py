"""Files that run in the lab's environment with Keystone's packages, never in Loadstone's."""
