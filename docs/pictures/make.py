"""Make the pictures of README.md from a real run: `python docs/pictures/make.py [RUN]`.

RUN is a stored run. Without it, N of `loadstone serve --capacity 200` is searched for a minute, as
in lesson 1, into a store of its own. Then takes a screenshot of the run's report and of what
`loadstone results show` prints. Needs Chromium.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Make the pictures of the run that the command line names, or of a new one."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        [run] = sys.argv[1:] or [_search(folder)]
        # Chromium refuses its sandbox to root.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 10})
        terminal = Path(folder) / "terminal.html"
        shown = _loadstone("results", "show", run)
        terminal.write_text(_as_page(shown, f"results show {run}"))
        page.goto(terminal.as_uri())
        _take(page, "terminal.png", whole=True)
        report = Path(folder) / "report.html"
        _loadstone("report", run, "-o", str(report))
        page.set_viewport_size({"width": 1100, "height": 1095})
        page.goto(report.as_uri())
        page.locator("details").first.evaluate("details => details.open = true")
        _take(page, "report.png", whole=False)
        browser.close()


def _search(folder: str) -> str:
    """Search N of a service of known capacity; return the run's id."""
    # Not --store, which the commands in the pictures would repeat.
    os.environ["LOADSTONE_STORE"] = folder
    with _served() as variables:
        words = ("capacity", "--scenario", "issue", "--users", "4", "--budget", "60s")
        subprocess.run([LOADSTONE, *words], check=True, env=os.environ | variables)
    return _loadstone("results", "list").split()[0]


@contextmanager
def _served() -> Iterator[dict[str, str]]:
    """Start the service; yield its OS_* variables."""
    words = ("serve", "--capacity", "200", "--workers", "4", "--until-stdin-closes")
    with subprocess.Popen(
        [LOADSTONE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        variables: dict[str, str] = {}
        while "OS_REGION_NAME" not in variables:
            name, _, value = process.stdout.readline().removeprefix("export ").partition("=")
            variables[name] = "".join(shlex.split(value))
        yield variables
        process.stdin.close()


def _loadstone(*words: str) -> str:
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    ended = subprocess.run(
        [LOADSTONE, *words], check=True, env=environment, stdout=subprocess.PIPE, text=True
    )
    return ended.stdout


def _as_page(shown: str, command: str) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(f"$ loadstone {command}\n{shown}"), soft_wrap=True)
    return console.export_html(inline_styles=True, theme=MONOKAI, code_format=PAGE)


def _take(page: Page, name: str, *, whole: bool) -> None:
    page.wait_for_timeout(500)
    page.screenshot(path=HERE / name, full_page=whole)
    print(HERE / name)


if __name__ == "__main__":
    main()
