"""Alembic migrations of older databases."""
