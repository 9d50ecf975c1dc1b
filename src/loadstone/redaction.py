"""Secrets kept out of what is stored and shown.

`masked` hides what looks like a secret by its name or place: `admin_pass: ...`, `auth: [user,
...]`, `https://user:...@host`, `curl -u user:...`. `Redaction` hides known values wherever they
occur.
"""

import base64
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
LEAST_CHARACTERS = 4  # of a value to replace in other text, because shorter ones occur everywhere
SHORT_CHARACTERS = 8  # shorter values are only replaced as whole words

_WORDS = (
    r"password|passwd|passphrase|passcode|secret|token|credential|authorization|cookie"
    r"|(?:api|private|access|signing)[-_]?key|admin[-_]?pass"
)
_SECRET = re.compile(rf"{_WORDS}|(?:^|[-_.])(?:pass|pwd|pw)$", re.IGNORECASE)
# "password_length", "token_expiration": settings of secrets, not secrets.
_SETTING = re.compile(
    r"(?:length|count|size|lifetime|ttl|timeout|expiration|rounds|methods|type|file|path|url|name)$",
    re.IGNORECASE,
)
# Names that are not secret within {"password": {"user": {"name": ..., "password": ...}}}.
_OURS = ("OS_", "LOADSTONE_")  # environment variables
_IDENTIFIERS = {"id", "name", "domain", "user_id", "project_id", "domain_id", "type"}
_COMMON = {"true", "false", "none", "null", "default"}

_TOKEN = re.compile(r"gAAAA[\w\-]{20,}=*|eyJ[\w\-]+\.[\w\-]+\.[\w\-]+")  # Fernet, JWS
_USERINFO = re.compile(r"(\b[a-z][\w+.\-]*://)([^\s/@'\"]+)@", re.IGNORECASE)
_COOKIE = re.compile(r"(\b(?:set-)?cookie\s*[:=]\s*)([^\"'\r\n]+)", re.IGNORECASE)
_NAMED = re.compile(
    rf"(?P<name>[\w.\-]*(?:{_WORDS}|\b(?:pass|pwd|pw)\b)[\w.\-]*)"
    r"(?P<equals>(?:\\?[\"'])?\s*[:=]\s*)"
    r"(?P<quote>\\?[\"']|)(?P<scheme>(?:basic|bearer|digest)\s+|)"
    r"(?P<value>(?<=[\"'])[^\"'\\\n]+|[^\s\"',;}}&\\]+)",
    re.IGNORECASE,
)
_USER_OPTIONS = {"-u", "--user", "-U", "--proxy-user"}  # curl's: their value is user:password
_HEADER_OPTIONS = {"-H", "--header"}
_USER_OPTION = re.compile(r"(-[uU]|--user=|--proxy-user=)([^:]+):(.+)", re.DOTALL)


def is_secret(name: str) -> bool:
    """Return whether a value under this name is a secret."""
    return bool(_SECRET.search(name)) and not _SETTING.search(name)


def secrets_of_environment() -> frozenset[str]:
    """Return the values of OS_PASSWORD, OS_TOKEN and the like."""
    return frozenset(
        value for name, value in os.environ.items() if name.startswith(_OURS) and is_secret(name)
    )


def is_secret_option(name: str) -> bool:
    """Return whether a service's option holds a secret: `password`, not `token_provider`."""
    return name.endswith(("password", "passwd", "secret", "passphrase"))


def masked(value: Any) -> Any:
    """Return JSON data in which secrets are masked by their names and places."""
    return _Masker(set()).value(value)


def masked_command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line with masked secrets."""
    return _Masker(set()).command(arguments)


def secrets_in(value: Any) -> frozenset[str]:
    """Return the secrets that `masked` would hide."""
    masker = _Masker(set())
    masker.value(value)
    return frozenset(masker.found)


@dataclass(frozen=True, slots=True)
class _Masker:
    """Masks secrets and collects them in `found`."""

    found: set[str]

    def value(self, value: Any, name: str = "") -> Any:
        """Mask the value of a name."""
        if is_secret(name):
            return self._secret(value, name)
        if isinstance(value, Mapping):
            return {key: self.value(part, str(key)) for key, part in value.items()}
        if isinstance(value, list | tuple):
            if name == "auth" and len(value) == 2 and not isinstance(value[1], Mapping | list):
                return [value[0], self._password(str(value[0]), value[1])]  # as in requests
            return [self.value(part) for part in value]
        if not isinstance(value, str):
            return value
        return self._line(value) if name == "sys_call" else self._text(value)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Mask the arguments of a command line."""
        before = ["", *arguments]
        return [self._argument(one, last) for last, one in zip(before, arguments, strict=False)]

    def _argument(self, argument: str, last: str) -> str:
        if last in _USER_OPTIONS and ":" in argument:
            return self._pair(argument)
        if last in _HEADER_OPTIONS and is_secret(argument.partition(":")[0]):
            name, colon, value = argument.partition(":")
            return f"{name}{colon} {self._secret(value.strip(), name)}"
        if last.startswith("-") and "=" not in last and is_secret(last.strip("-")):
            return str(self._secret(argument))
        if last == "sshpass" and argument.startswith("-p") and len(argument) > 2:
            return f"-p{self._secret(argument[2:])}"
        if attached := _USER_OPTION.fullmatch(argument):
            return attached[1] + self._pair(f"{attached[2]}:{attached[3]}")
        return self._line(argument) if any(map(str.isspace, argument)) else self._text(argument)

    def _pair(self, pair: str) -> str:
        user, _, password = pair.partition(":")
        return f"{user}:{self._password(user, password)}"

    def _password(self, user: str, password: Any) -> Any:
        self.found.add(base64.b64encode(f"{user}:{password}".encode()).decode())  # as it is sent
        return self._secret(password)

    def _line(self, line: str) -> str:
        """Mask a command line, also one quoted within another (`sh -c '...'`)."""
        try:
            arguments = shlex.split(line)
        except ValueError:
            return self._text(line)
        hidden = self.command(arguments) if len(arguments) > 1 else arguments
        return self._text(line) if hidden == arguments else shlex.join(hidden)

    def _secret(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {
                key: self._secret(part, str(key))
                if str(key) not in _IDENTIFIERS or is_secret(str(key))
                else self.value(part)
                for key, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._secret(part, name) for part in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        self.found.update(_parts(str(value), name))
        return MASK

    def _text(self, text: str) -> str:
        text = _USERINFO.sub(self._userinfo, text)
        text = _COOKIE.sub(lambda match: match[1] + str(self._secret(match[2], "cookie")), text)
        text = _NAMED.sub(self._named, text)
        return _TOKEN.sub(lambda match: str(self._secret(match[0])), text)

    def _userinfo(self, match: re.Match[str]) -> str:
        _, _, password = match[2].partition(":")
        if password:
            self.found.update({password, unquote(password)})
        return f"{match[1]}{MASK}@"

    def _named(self, match: re.Match[str]) -> str:
        if match["value"] == MASK or not is_secret(match["name"]):
            return match[0]
        value = match["scheme"] + match["value"]
        self.found.update({unquote(match["value"]), *_parts(value, match["name"])})
        return f"{match['name']}{match['equals']}{match['quote']}{match['scheme']}{MASK}"


def _parts(text: str, name: str) -> Iterator[str]:
    """Yield a secret, and the parts of it that could occur alone."""
    yield text
    scheme, _, rest = text.partition(" ")
    if scheme.lower() in ("basic", "bearer", "digest"):
        yield rest
    if scheme.lower() == "basic":
        with suppress(ValueError):
            yield base64.b64decode(rest, validate=True).decode().partition(":")[2]
    if "cookie" in name.lower():
        yield from (pair.partition("=")[2] for pair in re.split(r";\s*", text))


@dataclass(frozen=True, slots=True)
class Redaction:
    """Known secrets, replaced wherever text is kept or shown."""

    values: frozenset[str] = field(default=frozenset(), repr=False)
    _spellings: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    _pattern: re.Pattern[str] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wanted = {
            one
            for value in self.values
            if len(value) >= LEAST_CHARACTERS and value.lower() not in _COMMON and value != MASK
            for one in _spellings(value)
        }
        if wanted:
            longest_first = sorted(wanted, key=lambda one: (-len(one), one))
            pattern = re.compile("|".join(map(_pattern_of, longest_first)))
            object.__setattr__(self, "_spellings", tuple(longest_first))
            object.__setattr__(self, "_pattern", pattern)

    def also(self, values: Iterable[str]) -> Self:
        """Return a redaction with further secrets."""
        return type(self)(self.values | frozenset(values))

    def may_occur_in(self, text: str) -> bool:
        """Return whether a text may contain a known secret, also in JSON within JSON."""
        return any(one in text for one in self._spellings)

    def text(self, text: str) -> str:
        """Replace known secrets in a text."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def data(self, value: Any, kept: frozenset[str] = frozenset()) -> Any:
        """Replace known secrets in the strings of JSON data, except values of names in `kept`.

        Keys are kept. A string that is JSON itself is processed in the same way, and stays JSON.
        """
        if self._pattern is None:
            return value
        if isinstance(value, Mapping):
            return {
                key: part
                if key in kept and not isinstance(part, Mapping)
                else self.data(part, kept)
                for key, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(part, kept) for part in value]
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            return self._json(value)
        return self.text(value)

    def _json(self, text: str) -> str:
        try:
            plain = json.loads(text)
        except ValueError:
            return self.text(text)
        hidden = self.data(plain)
        return text if hidden == plain else json.dumps(hidden)


def _spellings(value: str) -> tuple[str, ...]:
    """Return the value as written in URLs, in JSON and within a shell's quotes."""
    return (
        value,
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(json.dumps(value)[1:-1])[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("'", "'\"'\"'"),
    )


def _pattern_of(value: str) -> str:
    pattern = re.escape(value)
    if value.isdecimal():
        return rf"(?<![\w.]){pattern}(?!\w|\.\d)"  # not within 0.1234 or 1234567
    if len(value) < SHORT_CHARACTERS:
        return rf"(?<![^\W_]){pattern}(?![^\W_])"
    return pattern
