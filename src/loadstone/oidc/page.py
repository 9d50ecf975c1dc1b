"""Login pages as HTML."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_USER_WORDS = ("user", "login", "email", "name")
_WITHOUT_TEXT = {"script", "style", "head"}
_FORM = re.compile(r"<form(?![0-9a-z])", re.IGNORECASE)
_SHOWN = 160  # characters of a page's text in a message


@dataclass(frozen=True, slots=True)
class Field:
    """An input of a form."""

    name: str
    kind: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class HtmlForm:
    """A form of a page."""

    number: int  # as the engine counts, which reads comments and scripts, too
    action: str
    fields: tuple[Field, ...] = ()

    @property
    def password(self) -> str | None:
        """The name of its field for the password."""
        return next((one.name for one in self.fields if one.kind == "password"), None)

    @property
    def user(self) -> str | None:
        """The name of its field for the user's name."""
        texts = [one.name for one in self.fields if one.kind in ("text", "email")]
        likely = (name for name in texts if any(word in name.lower() for word in _USER_WORDS))
        return next(likely, texts[0] if texts else None)

    @property
    def hidden(self) -> tuple[Field, ...]:
        """Its hidden fields."""
        return tuple(one for one in self.fields if one.kind == "hidden")


@dataclass(frozen=True, slots=True)
class Page:
    """The forms and the text of a page."""

    forms: tuple[HtmlForm, ...]
    text: str = field(repr=False)

    @property
    def login(self) -> HtmlForm | None:
        """The first form that asks for a password."""
        return next((form for form in self.forms if form.password), None)

    @property
    def shown(self) -> str:
        """The beginning of its text, for messages."""
        words = " ".join(self.text.split())
        return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 3]}..."


def read_page(html: str) -> Page:
    """Read a page."""
    parser = _FormParser(html)
    parser.feed(html)
    parser.close()
    return Page(tuple(parser.forms), " ".join(parser.texts))


class _FormParser(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self._lines = html.split("\n")
        self.forms: list[HtmlForm] = []
        self.texts: list[str] = []
        self._is_in_form = False
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _WITHOUT_TEXT:
            self._silent.append(tag)
        if tag == "form":
            self.forms.append(HtmlForm(self._number(), given.get("action", "")))
            self._is_in_form = True
        if tag == "input" and self._is_in_form and given.get("name"):
            last = self.forms[-1]
            kind = given.get("type", "text").lower()
            one = Field(given["name"], kind, given.get("value", ""))
            self.forms[-1] = HtmlForm(last.number, last.action, (*last.fields, one))

    def _number(self) -> int:
        """Return how many forms the engine finds before this one."""
        line, column = self.getpos()
        before = "\n".join((*self._lines[: line - 1], self._lines[line - 1][:column]))
        return len(_FORM.findall(before))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            self._silent.remove(tag)
        if tag == "form":
            self._is_in_form = False

    def handle_data(self, data: str) -> None:
        if not self._silent and data.strip():
            self.texts.append(data.strip())
