"""Load from several hosts at once, over Dask distributed."""
