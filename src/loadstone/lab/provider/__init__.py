"""OpenID providers as deployments."""
