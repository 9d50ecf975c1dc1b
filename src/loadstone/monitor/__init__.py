"""Watches machine and processes while load runs."""
