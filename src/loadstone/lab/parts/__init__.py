"""The servers of which a deployment is made."""
