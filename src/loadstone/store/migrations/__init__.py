"""Alembic's folder: how older databases become the present one."""
