"""Studies: one measurement over many deployments, repeated, in random order."""
