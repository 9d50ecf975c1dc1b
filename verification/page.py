"""The page docs/verification.md: a row for each claim."""

from collections.abc import Iterator, Mapping

from verification import parts, timing
from verification.claim import Claim, Result, Results
from verification.part import Part

PAGE = parts.ROOT / "docs/verification.md"
INTRODUCTION = """\
# Verification

<!-- Written by `python -m verification --page` from verification/claims.yaml and results.json. -->

`make verify` measures what these pages claim. It is not part of the tests: it takes {hours} hours
on two cores, which should have nothing else to do, and some more for the tests marked `verify`.

    make verify LIST=1                # the topics, how long each takes, what to run first
    make verify LIST=1 ONLY=search    # the parts of a topic
    make verify ONLY=search-real,faults
    make verify                       # everything
    make verify ONLY=fleet QUICK=1    # only proves that the parts run; records nothing

Parts run one after the other. A part that fails or takes three times as long as usual is ended, and
the next one runs. The output of each part is in `target/verify/PART.log`. A table at the end shows
how each part ended; the exit code is 1 if one failed. What a part found is written to
`verification/results.json` and to the table below.

**What to run and trust first.** These parts compare Loadstone's figures with a truth that is known
by other means: a capacity or fault that was set, the target's own counts and log, the kernel's
account of CPU time.

{first}

## Claims

Each row is a claim of these pages, word for word. A figure found on a busy machine says so:
compare it with care. A claim that no part has measured since it was written shows the date and the
commit at which the docs began to state it. The row of a claim that was measured by hand says how.

| claim | stated in | measured by | figure found | date | commit | machine |
| --- | --- | --- | --- | --- | --- | --- |
"""


def render(
    rows: Mapping[str, Claim],
    results: Results,
    pages: Mapping[str, list[tuple[str, str]]],
    every: tuple[Part, ...],
) -> str:
    """Return the page; `pages` has the page and heading where each claim stands."""
    by_name = {one.name: one for one in every}
    fixed = [one for one in every if one.topic != parts.TESTS]
    hours = sum(timing.expected_s(one, results.seconds) for one in fixed) / parts.HOUR_S
    first = "\n".join(f"- `{one.name}`: {one.shows}" for one in every if one.is_first)
    lines = _rows(rows, results, pages, by_name)
    return INTRODUCTION.format(hours=f"{hours:.0f}", first=first) + "".join(lines)


def _rows(
    rows: Mapping[str, Claim],
    results: Results,
    pages: Mapping[str, list[tuple[str, str]]],
    by_name: Mapping[str, Part],
) -> Iterator[str]:
    for row in rows.values():
        stated = "; ".join(_place(*one) for one in pages.get(row.id, []))
        how = f"by hand: {row.by_hand}"
        if row.part:
            how = f"`make verify ONLY={row.part}`: `{by_name[row.part].shown()}`"
        found = _found(row, results.claims.get(row.id))
        cells = (row.claim, stated, how, *found)
        yield f"| {' | '.join(_cell(one) for one in cells)} |\n"


def _found(row: Claim, result: Result | None) -> tuple[str, str, str, str]:
    if result is None:
        return f"not measured since {row.since}", "", "", ""
    figure = result.figure if result.passed else f"**failed** {result.figure}".strip()
    return figure, result.date, result.commit, str(result.machine)


def _place(page: str, heading: str) -> str:
    link = "README" if page == "README.md" else f"[{page.removesuffix('.md')}]({page})"
    return f"{link}, {heading}"


def _cell(text: str) -> str:
    return text.replace("|", "·").replace("<", "&lt;")
