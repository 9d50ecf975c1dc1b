"""Keeps results: a database beside Parquet files."""

from loadstone.store.rows import Entry, Found
from loadstone.store.store import Store

__all__ = ["Entry", "Found", "Store"]
