"""The reference service, whose capacity is known."""
