"""Marks of claims in the docs, and measured statements that have none.

A measured statement names its claim in a comment, in its paragraph, table or list, or in a line of
its own directly before it:

    <!-- claim: search-real -->
    <!-- claim: fleet-counts, fleet-agreement -->
    <!-- example -->

A mark on a line of its own covers the paragraph, table or whole list that follows. The mark of a
paragraph that ends with a colon covers what it introduces, too. `<!-- example -->` is for numbers
that Loadstone has not measured: explanations, sample output, figures of others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CLAIM = re.compile(r"<!-- claim: ([a-z0-9, -]+) -->")
EXAMPLE = "<!-- example -->"
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_FENCE = re.compile(r"\s*(```|:::)")

# Words that come with a measured number. Each needs a digit in the same sentence.
_MEASURED_WORDS = re.compile(
    r"""\b(?:measured|median|medians|coverage|alternating\ runs|profile\ of)\b
    | \b\d[\d,]*\ of\ (?:the\ )?(?:same\ )?\d          # 19 of 20
    | \b\d[\d.,]*\ times\ (?:as|the|out\ of)\b
    | \bwithin\ \d[\d.]*\ ?%
    | \d\ ?(?:µs|us)\b
    | \bm?s\ of\ CPU\b | \bCPU\ of\ a\ request\b
    | \bN\ (?:was|=)\ \d | \bp99\ (?:was|rose|fell)\b | \brose\ (?:from|by|to)\ \d
    | \b(?:was|were|is|are)\ \d[\d.,]*\ ?(?:ms|µs|%|MB)(?!\w)
    | \b(?:of\ (?:a|one|the)|per)\ core\b
    | \d\ ?[MG]B/s\b | \bMB\ (?:at\ most|while|against|of\ memory)\b
    | \b20\d\d-\d\d-\d\d\b                             # the date of a measurement
    | \btook\b | \b(?:gave|found)\ (?:N\b|\d)
    | \b\d[\d.,]*\ ?%\ (?:faster|slower|higher|lower|less|more|apart|busy)\b
    | \bloss(?:es)?\ of\ \d | \bratio\ (?:of|was|is)\ \d
    | \bconfidence\ interval\ \d | \b95\ %\ interval\ \d
    | \b\d[\d,]*\ (?:requests|logins|validations|iterations|samples)\ (?:a|per)\ second\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[(])")
_NUMBER_CELL = re.compile(r"[<>~+-]?\d[\d.,]*(?: ?(?:%|s|ms|µs|MB|/s))?(?:$|[ ,;/(])")
# A table counts as measured if at least this share of its cells, first column aside, are numbers.
_MEASURED_SHARE = 0.5


class Kind(Enum):
    """What a block of Markdown is."""

    PARAGRAPH = auto()
    ITEM = auto()
    TABLE = auto()


@dataclass(slots=True)
class Block:
    """A paragraph, a list item or a table of a page, with its marks."""

    kind: Kind
    line: int  # of its first line, from 1
    text: str
    claims: set[str] = field(default_factory=set)
    is_example: bool = False
    heading: str = ""  # the nearest above it

    @property
    def plain(self) -> str:
        """The text without comments, on one line; cells are separated by a vertical bar."""
        return plain(self.text)


def plain(text: str) -> str:
    """Return Markdown without comments and emphasis, on one line."""
    bare = _COMMENT.sub(" ", text).replace("**", "")
    return re.sub(r"\s+", " ", bare).strip()


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, each with the marks that cover it."""
    found: list[Block] = []
    marks, heading = _Marks(), ""
    for raw in _raw_blocks(page.splitlines()):
        if isinstance(raw, _Comment):
            marks.begin(raw.text)
        elif isinstance(raw, _Break):
            marks.end()
            heading = raw.heading or heading
        else:
            marks.cover(raw)
            raw.heading = heading
            found.append(raw)
    return found


@dataclass(frozen=True, slots=True)
class _Comment:
    text: str


@dataclass(frozen=True, slots=True)
class _Break:
    """A heading or code: no mark reaches beyond it."""

    heading: str = ""


class _Marks:
    """Marks of what was read last, for what follows."""

    def __init__(self) -> None:
        self._pending = ""  # from lines of their own
        self._list = ""  # of the list that is being read
        self._intro = ""  # of a paragraph that ends with a colon
        self._last: Kind | None = None

    def begin(self, text: str) -> None:
        """Keep a mark for the next block."""
        self._pending += text

    def end(self) -> None:
        """Forget marks that no block may inherit; code may stand between text and its table."""
        self._list = ""
        self._last = None

    def cover(self, block: Block) -> None:
        """Give a block its marks."""
        is_item = block.kind is Kind.ITEM
        if is_item and self._last is Kind.ITEM:
            inherited = self._list + self._pending
        else:
            inherited = self._pending + self._intro
            self._list = inherited if is_item else ""
        words = block.text + inherited
        for names in _CLAIM.findall(words):
            block.claims.update(name.strip() for name in names.split(","))
        block.is_example = EXAMPLE in words
        introduces = not is_item and block.plain.endswith(":")
        self._intro = words if introduces else ""
        self._pending = ""
        self._last = block.kind


def _raw_blocks(lines: list[str]) -> Iterator[Block | _Comment | _Break]:
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        yield from reader.read(number, line)
    yield from reader.finish()


class _Reader:
    """Joins lines to blocks."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._in_fence = False
        self._after_blank = True
        self._last: Kind | None = None

    def read(self, number: int, line: str) -> Iterator[Block | _Comment | _Break]:
        """Yield what this line ends."""
        if _FENCE.match(line):
            yield from self.finish()
            self._in_fence = not self._in_fence
            yield _Break()
            return
        if self._in_fence:
            return
        if not line.strip():
            yield from self.finish()
            self._after_blank = True
            return
        in_list = self._last is Kind.ITEM
        is_code = self._after_blank and line.startswith("    ") and not in_list
        self._after_blank = False
        if line.startswith("#"):
            yield from self.finish()
            self._last = None
            yield _Break(line.strip("# `"))
        elif is_code:
            yield from self.finish()
            self._after_blank = True  # the next line of the code
        elif not _COMMENT.sub("", line).strip():
            yield from self.finish()
            yield _Comment(line)
        else:
            yield from self._add(number, line)

    def _add(self, number: int, line: str) -> Iterator[Block]:
        kind = self._kind(line)
        if self._block is not None and kind is self._block.kind and not _ITEM.match(line):
            self._block.text += "\n" + line
            return
        yield from self.finish()
        self._block, self._last = Block(kind, number, line), kind

    def _kind(self, line: str) -> Kind:
        if line.startswith("|"):
            return Kind.TABLE
        if _ITEM.match(line):
            return Kind.ITEM
        continues = self._block is not None and self._block.kind is Kind.ITEM
        return Kind.ITEM if continues else Kind.PARAGRAPH

    def finish(self) -> Iterator[Block]:
        """Yield the block that has ended."""
        if self._block is not None:
            yield self._block
        self._block = None


def is_measured(block: Block) -> bool:
    """Return whether a block states a measured figure, as far as its words tell."""
    if block.kind is Kind.TABLE:
        return _is_measured_table(block)
    return any(
        re.search(r"\d", sentence) and _MEASURED_WORDS.search(sentence)
        for sentence in _SENTENCE_ENDS.split(block.plain)
    )


def _is_measured_table(block: Block) -> bool:
    rows = [line.strip().strip("|").split("|") for line in block.text.splitlines()]
    cells = [cell.strip(" *`") for row in rows[2:] for cell in row[1:]]
    cells = [cell for cell in cells if cell]
    numbers = sum(bool(_NUMBER_CELL.match(cell)) for cell in cells)
    if cells and numbers >= _MEASURED_SHARE * len(cells):
        return True
    return any(
        re.search(r"\d", cell) and _MEASURED_WORDS.search(cell) for row in rows for cell in row
    )
