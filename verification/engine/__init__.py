"""Loadstone's engine side by side with other load generators, on this machine."""
