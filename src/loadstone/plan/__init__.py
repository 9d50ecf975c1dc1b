"""Plans: which requests are sent, and when."""
