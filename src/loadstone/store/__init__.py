"""Keeps results: a database beside Parquet files."""

from loadstone.store.store import Store

__all__ = ["Store"]
