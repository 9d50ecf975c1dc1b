"""`make verify`: measures what the docs claim, and keeps the table in docs/verification.md."""
