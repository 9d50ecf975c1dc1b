"""Searches the settings of a service for a gain, and proves it apart from the search."""
