"""How long deployments and audits take."""
