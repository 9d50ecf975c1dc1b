"""What the engine costs and how true it is, beside other load generators.

    python -m verification.engine --only http,https --rounds 9

Prints the tables of docs/performance.md, as Markdown; `--write` puts them there. Ratios are of
alternating runs; in brackets are the least and the most of all rounds.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from verification.engine import fast, machine, truth
from verification.engine.command import command
from verification.engine.rally import rally
from verification.engine.settings import Settings

PAGE = Path(__file__).parents[2] / "docs/performance.md"
BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"
SECTIONS: dict[str, tuple[str, Callable[[Settings], Iterator[str]]]] = {
    "http": ("Closed loop, http", fast.http),
    "https": ("Closed loop, https", fast.https),
    "http2": ("Closed loop, HTTP/2 over TLS", fast.http2),
    "lag": ("Open loop: send lag", truth.lag),
    "stall": ("A target that stalls 500 ms in every 5 s", truth.stall),
    "waits": ("Service times of `loadstone serve`", truth.waits),
    "memory": ("Memory of long runs", truth.memory),
    "summaries": ("Summaries of 10 million samples", truth.summaries),
    "command": ("`loadstone run` as a whole", command),
    "rally": ("`loadstone run` and Rally", rally),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="alternating runs of each")
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--rally", type=Path, metavar="VENV", help="environment with Rally in it")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(SECTIONS):
        raise SystemExit(
            f"verify: no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}"
        )
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("verify: needs two cores, one for the target and one for the generator")
    # At nice 0 our engine would raise its own priority, and the others could not keep up.
    os.nice(1)
    settings = Settings(options.rounds, options.seconds, cores[0], cores[1], options.rally)
    lines = list(_lines(settings, chosen))
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        text = "".join(f"{line}\n" for line in lines)
        PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2])


def _lines(settings: Settings, chosen: list[str]) -> Iterator[str]:
    for line in _sections(settings, chosen):
        print(line, flush=True)  # whoever waits sees what is there
        yield line


def _sections(settings: Settings, chosen: list[str]) -> Iterator[str]:
    yield f"<!-- claim: {', '.join(f'engine-{name}' for name in chosen)} -->"
    yield from machine.words(settings)
    for name in chosen:
        title, section = SECTIONS[name]
        yield from ("", f"### {title}", "")
        yield from _marked(name, section(settings))


def _marked(name: str, lines: Iterator[str]) -> Iterator[str]:
    """Put the mark of the section's claim before each table."""
    before = ""
    for line in lines:
        if line.startswith("|") and not before.startswith("|"):
            yield f"<!-- claim: engine-{name} -->"
        yield line
        before = line


if __name__ == "__main__":
    main()
