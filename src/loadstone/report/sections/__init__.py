"""Makes sections of measurements; pure functions."""
