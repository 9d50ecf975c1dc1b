"""Finds a study: a file or a built-in one."""

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from loadstone.errors import InvalidInput
from loadstone.rally.task.limits import MAX_BYTES
from loadstone.rally.task.spec import masked_task
from loadstone.rally.task.tree import parse
from loadstone.study.check import check
from loadstone.study.model import Study
from loadstone.system.paths import existing
from loadstone.system.redaction import Redaction

BUILTIN = Path(__file__).parent / "builtin"


@dataclass(frozen=True, slots=True)
class StudySource:
    """A study's text and its name."""

    file: str  # as the user named it
    text: str = field(repr=False)

    def study(self, *, quick: bool) -> Study:
        """Read the study or its quick form; TaskInvalid lists all problems."""
        name = self.file if "/" not in self.file else Path(self.file).stem
        return check(parse(self.text, self.file), name.removesuffix(".yaml"), quick=quick)

    def without_secrets(self, secrets: frozenset[str]) -> str:
        """Return the text with its secrets masked, as JSON."""
        value: Any = parse(self.text, self.file).value
        task = value.get("measurement", {}).get("task")
        if task is not None:
            value["measurement"]["task"] = masked_task(task)
        return json.dumps(Redaction(secrets).data(value), default=str)


def builtin() -> tuple[str, ...]:
    """Return the names of the built-in studies."""
    return tuple(sorted(path.stem for path in BUILTIN.glob("*.yaml")))


def find(name: str) -> StudySource:
    """Return the built-in study of this name, or else the study in this file."""
    if not name:
        raise InvalidInput("no study is named: the name is empty; is a variable not set?")
    if name in builtin():
        return StudySource(name, (BUILTIN / f"{name}.yaml").read_text(encoding="utf-8"))
    path = existing(name)
    if path is None:
        near = get_close_matches(name, builtin(), 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(
            f"{name}: no such study and no such file{meant}; built in are {', '.join(builtin())}; "
            "`loadstone study list` names those that have begun"
        )
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"{name}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{name}: is not UTF-8 text") from None
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name}: more than {MAX_BYTES:,} bytes: no study is so long")
    return StudySource(name, text)
