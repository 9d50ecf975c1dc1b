"""Whether docs, claims and the table of claims agree."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from verification import claim, page, parts
from verification.claim import Claim
from verification.marks import Block, blocks, is_measured, plain

ROOT = parts.ROOT


def pages(root: Path = ROOT) -> dict[str, list[Block]]:
    """Return the blocks of README and of each page of the docs, by its name."""
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {one.name: blocks(one.read_text()) for one in files if one.name != page.PAGE.name}


def stated_in(
    found: Mapping[str, list[Block]], rows: Mapping[str, Claim]
) -> dict[str, list[tuple[str, str]]]:
    """Return the page and heading of each block that states a claim word for word."""
    where: dict[str, list[tuple[str, str]]] = {}
    for name, page_blocks in found.items():
        for block in page_blocks:
            for row in rows.values():
                if row.id in block.claims and plain(row.claim) in block.plain:
                    where.setdefault(row.id, []).append((name, block.heading))
    return where


def problems(found: Mapping[str, list[Block]], rows: Mapping[str, Claim]) -> Iterator[str]:
    """Yield what is wrong with marks and rows."""
    for name, page_blocks in found.items():
        yield from _unmarked(name, page_blocks)
        for block in page_blocks:
            for one in sorted(block.claims - rows.keys()):
                yield f"{name}:{block.line}: claim {one} has no row in verification/claims.yaml"
    known = {part.name for part in parts.every()}
    for row in rows.values():
        marked = [b for page_blocks in found.values() for b in page_blocks if row.id in b.claims]
        if not marked:
            yield f"claims.yaml: {row.id}: no page has the mark <!-- claim: {row.id} -->"
        elif not any(plain(row.claim) in block.plain for block in marked):
            yield f"claims.yaml: {row.id}: the docs do not state {plain(row.claim)!r}"
        if row.part and row.part not in known:
            yield f"claims.yaml: {row.id}: there is no part {row.part}"


def _unmarked(name: str, page_blocks: list[Block]) -> Iterator[str]:
    for block in page_blocks:
        if is_measured(block) and not block.claims and not block.is_example:
            yield (
                f"{name}:{block.line}: a measured figure without a claim: {block.plain[:80]!r}; "
                "mark it with <!-- claim: ID --> and give it a row in verification/claims.yaml, "
                "or with <!-- example --> if Loadstone has not measured it"
            )


def rendered() -> str:
    """Return docs/verification.md as it should be."""
    rows = claim.claims()
    return page.render(rows, claim.results(), stated_in(pages(), rows), parts.every())


def every_problem() -> list[str]:
    """Return what is wrong with docs, claims and the page of claims."""
    found = list(problems(pages(), claim.claims()))
    if found:
        return found
    if not page.PAGE.exists() or page.PAGE.read_text() != rendered():
        found.append("docs/verification.md is out of date: run `python -m verification --page`")
    return found
