"""One self-contained page: no request to anywhere, readable without scripts, and on paper."""

from loadstone.report.html.page import render, render_runs, write, write_runs

__all__ = ["render", "render_runs", "write", "write_runs"]
