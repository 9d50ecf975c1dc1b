"""Searches for the capacity, by means of a function that runs trials."""
