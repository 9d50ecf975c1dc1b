"""Make the pictures of README.md from a real run: `python docs/pictures/make.py`.

Runs `loadstone demo` (some minutes) into a store of its own, then takes a screenshot of its report
and of what `loadstone results show` prints. Needs Chromium.
"""

import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
LOADSTONE = Path(sys.executable).parent / "loadstone"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
COLUMNS = 110
PAGE = (
    "<body style='margin:0;padding:16px;background:{background}'>"
    "<pre style='font:14px/1.35 monospace;color:{foreground}'>{code}</pre></body>"
)


def main() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        # Not --store, which the commands in the pictures would repeat.
        os.environ["LOADSTONE_STORE"] = folder
        subprocess.run([LOADSTONE, "demo"], check=True)
        shown = _loadstone("results", "show", "latest")
        report = Path(folder) / "report.html"
        _loadstone("report", "latest", "-o", str(report))
        terminal = Path(folder) / "terminal.html"
        terminal.write_text(_as_page(shown))
        # Chromium refuses its sandbox to root.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        _take(page, report, "report.png", whole=False)
        _take(page, terminal, "terminal.png", whole=True)
        browser.close()


def _loadstone(*words: str) -> str:
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    ended = subprocess.run(
        [LOADSTONE, *words], check=True, env=environment, stdout=subprocess.PIPE, text=True
    )
    return ended.stdout


def _as_page(shown: str) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(f"$ loadstone results show latest\n{shown}"), soft_wrap=True)
    return console.export_html(inline_styles=True, theme=MONOKAI, code_format=PAGE)


def _take(page: Page, file: Path, name: str, *, whole: bool) -> None:
    page.goto(file.as_uri())
    page.wait_for_timeout(500)  # charts are drawn after the page has loaded
    page.screenshot(path=HERE / name, full_page=whole)
    print(HERE / name)


if __name__ == "__main__":
    main()
