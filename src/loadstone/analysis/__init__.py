"""From samples to a verdict; pure functions over columns."""
