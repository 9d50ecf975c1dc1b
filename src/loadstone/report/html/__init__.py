"""One self-contained page: no request to anywhere, readable without scripts, and on paper."""

from loadstone.report.html.page import live_document, present, render, results, write

__all__ = ["live_document", "present", "render", "results", "write"]
