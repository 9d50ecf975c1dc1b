"""One self-contained page: no request to anywhere, readable without scripts, and on paper."""

from loadstone.report.html.page import render, write

__all__ = ["render", "write"]
