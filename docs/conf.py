"""Sphinx configuration for `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from loadstone.audit import rule as rules
from loadstone.audit.views import rule_page

sys.path.insert(0, str(Path(__file__).parent.parent))
from verification import check

project = "Loadstone"
author = "The Loadstone developers"
release = version = installed_version("loadstone")

# A page for each rule of the audit, from the rule's own file.
RULE_PAGES = Path(__file__).parent / "audit-rules"
RULE_PAGES.mkdir(exist_ok=True)
for rule in rules.every():
    page = rule_page.render(rule)
    path = RULE_PAGES / f"{rule.id}.md"
    if not path.exists() or path.read_text() != page:
        path.write_text(page)

extensions = ["myst_parser", "sphinx_click"]
exclude_patterns = ["_build", "pictures"]
myst_enable_extensions = ["colon_fence"]
# Links of the form page.md#heading are checked, as links to pages are.
myst_heading_anchors = 3
smartquotes = False  # "--lab" must not become a dash

html_theme = "furo"
html_title = "Loadstone"
html_copy_source = False
html_show_sphinx = False

man_pages = [("commands", "loadstone", "measure how much load a service sustains", author, 1)]


def write_plain_text(app: Sphinx, problem: Exception | None) -> None:
    """Write the plain text of each page beside it, and llms.txt, which lists them."""
    if problem is not None or app.builder.format != "html":
        return
    lines = [
        f"# {project}",
        "",
        "> Each page as plain text. The words are explained in glossary.md.",
        "",
    ]
    for name in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(name))
        target = Path(app.outdir) / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        lines.append(f"- [{app.env.titles[name].astext()}]({name}.md)")
    (Path(app.outdir) / "llms.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Warn of measured figures without a claim, and of claims that differ from the docs."""
    app.connect("build-finished", write_plain_text)
    for problem in check.every_problem():
        logging.getLogger(app.config.project).warning(problem)
