"""What the collector prints on one host, checked as it comes in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

START = '{"loadstone_facts"'
FORMAT = 1


class UnreadableFacts(Exception):
    """A host's answer is not what the collector prints; the message says why."""


@dataclass(frozen=True, slots=True)
class Document:
    """The text that each section of the collector printed."""

    sections: Mapping[str, str]

    def text(self, section: str) -> str:
        """Return a section's text; empty where it is absent."""
        return self.sections.get(section, "")

    def pairs(self, section: str) -> dict[str, str]:
        """Return the NAME=VALUE lines of a section; the last of a name counts."""
        found = (line.partition("=") for line in self.text(section).splitlines())
        return {name: value.strip() for name, equals, value in found if equals}


def parse(answer: str) -> Document:
    """Return the document in an answer; a login banner in front of it does not matter."""
    begin = answer.find(START)
    if begin < 0:
        raise UnreadableFacts(f"the answer has no facts in it: {_beginning(answer)}")
    try:
        tree, _ = json.JSONDecoder(strict=False).raw_decode(answer, begin)
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


def _beginning(answer: str) -> str:
    words = " ".join(answer[:2000].split())[:80]
    return "".join(c if c.isprintable() else "?" for c in words) or "it is empty"
