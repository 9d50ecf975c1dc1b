"""Processes, ports, state and the parts of which a deployment is made."""
