"""Judges how an identity service is set up: facts of its hosts, rules over the facts."""
