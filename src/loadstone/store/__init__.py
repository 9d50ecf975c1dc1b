"""Keeps results: a database beside Parquet files."""
