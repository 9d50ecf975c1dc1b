"""Stores results in a database and in Parquet files."""
