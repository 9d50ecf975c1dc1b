"""The collector's output on one host, validated."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

START = '{"loadstone_facts"'
FORMAT = 1


class UnreadableFacts(Exception):
    """A host's output is not a document of the collector; the message says why."""


@dataclass(frozen=True, slots=True)
class Document:
    """The text that each section of the collector printed."""

    sections: Mapping[str, str]

    def text(self, section: str) -> str:
        """Return a section's text; empty where it is absent."""
        return self.sections.get(section, "")

    def pairs(self, section: str) -> dict[str, str]:
        """Return the NAME=VALUE lines of a section; the last value of a name counts."""
        parts = (line.partition("=") for line in self.text(section).splitlines())
        return {name: value.strip() for name, equals, value in parts if equals}


def parse(output: str) -> Document:
    """Parse the collector's output; a login banner before it is ignored."""
    begin = output.find(START)
    if begin < 0:
        raise UnreadableFacts(f"the answer has no facts in it: {_beginning(output)}")
    try:
        tree, _ = json.JSONDecoder(strict=False).raw_decode(output, begin)
    except (ValueError, RecursionError):
        raise UnreadableFacts("the answer is cut off or damaged") from None
    return from_tree(tree)


def from_tree(tree: object) -> Document:
    """Return the document of parsed JSON."""
    match tree:
        case {"loadstone_facts": int(version), "sections": dict(sections), "complete": True}:
            pass
        case _:
            raise UnreadableFacts("the answer is not a complete document of the collector")
    if version != FORMAT:
        raise UnreadableFacts(f"facts of format {version}; this Loadstone reads format {FORMAT}")
    if not all(isinstance(text, str) for text in sections.values()):
        raise UnreadableFacts("a section of the facts is not text")
    return Document({str(name): str(text) for name, text in sections.items()})


def to_tree(document: Document) -> dict[str, object]:
    """Return the document as JSON that `from_tree` reads."""
    return {"loadstone_facts": FORMAT, "sections": dict(document.sections), "complete": True}


def _beginning(output: str) -> str:
    text = " ".join(output[:2000].split())[:80]
    return "".join(c if c.isprintable() else "?" for c in text) or "it is empty"
