"""Scripts and applications that run in the compute cloud's environment."""
