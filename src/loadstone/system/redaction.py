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
LONG_CHARACTERS = 16  # words of a language are shorter
SHORT_CHARACTERS = 8  # shorter values are only replaced as whole words

_WORDS = (
    r"password|passwd|passphrase|passcode|(?:key|store)pass"  # Java's -storepass
    r"|secret|token|credential|authorization|cookie"
    r"|(?:api|private|access|signing)[-_]?key|admin[-_]?pass"
)
# Names whose last word is one of these hold a secret if the value is a text or a number.
_LAST_WORDS = frozenset({
    *("assertion", "auth", "bearer", "hmac", "jwt", "key", "mfa", "otp", "pin", "psk", "sid"),
    *("sig", "signature", "session", "sessionid", "totp", "wsse"),
})  # fmt: skip
_SECRET_WORDS = frozenset({
    *("pass", "password", "passwd", "passphrase", "pwd", "secret", "token", "key", "credential"),
})  # fmt: skip
# "sort_key", "public_key": keys that are no secrets.
_KEYS = frozenset({"cache", "foreign", "group", "index", "partition", "primary", "public", "sort"})
_SECRET = re.compile(rf"{_WORDS}|(?:^|[-_.])(?:pass|pwd|pw)$", re.IGNORECASE)
# "password_length", "token_expiration": settings of secrets, not secrets.
_SETTING = re.compile(
    r"(?:length|count|size|lifetime|ttl|timeout|expiration|rounds|methods|type|file|path|url|name)$",
    re.IGNORECASE,
)
# conf.SECTION.OPTION of a lab, and token.OPTION in the sentence of a rolling restart.
_KEYSTONE_OPTION = re.compile(
    r"(?:conf\.\w+\.|token\.(?=provider|caching|cache_|allow_|revoke_))(\w+)", re.IGNORECASE
)
# Names that are not secret within {"password": {"user": {"name": ..., "password": ...}}}.
_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PROVIDERS = {"fernet", "jws", "uuid"}  # of tokens: values of a lab's setting "token"
_OURS = ("OS_", "LOADSTONE_")  # environment variables
_IDENTIFIERS = {"id", "name", "domain", "user_id", "project_id", "domain_id", "type"}
_COMMON = {"true", "false", "none", "null", "default"}

# Each pattern takes time in proportion to the text, whatever the text: hooks print anything.
_TOKEN = re.compile(r"gAAAA[\w\-]{20,}=*|(?<![\w\-])eyJ[\w\-]+\.[\w\-]+\.[\w\-]+")  # Fernet, JWS
_USERINFO = re.compile(r"((?<![\w+.\-])[a-z][\w+.\-]*+://)([^\s/@'\"]+)@", re.IGNORECASE)
_COOKIE = re.compile(r"(\b(?:set-)?cookie\s*[:=]\s*)([^\"'\r\n]+)", re.IGNORECASE)
_NAME = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]++)(?:\\?[\"']|\])?\s*+[:=]\s*(?:\\?[\"'])?"
    r"(?:(?:basic|bearer|digest)\s+)?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?<![^\s'\"(])(--?[A-Za-z][\w\-]*+)([ \t]++)(?![\-'\"])(\S+)")
_VALUE = re.compile(r"(?<=[\"'])[^\"'\\\n]+|[^\s\"',;}&\\]+")
_SCHEMES = "bearer|basic|digest|token|apikey|negotiate|ntlm|hawk|dpop|splunk"
_SCHEME_VALUE = re.compile(rf"({_SCHEMES})\s+(\S+)", re.IGNORECASE)
_SCHEME_IN_TEXT = re.compile(rf"\b({_SCHEMES})(\s+)([\w.~+/\-]{{6,}}=*)", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.+?)(?=-----END|\Z)", re.DOTALL)
# Headers whose values are shown; any other header may hold a secret.
_PLAIN_HEADER = re.compile(
    r"accept(-.*)?|age|allow|cache-control|connection|content-.*|date|expect|from|host|if-.*"
    r"|keep-alive|max-forwards|origin|pragma|range|referer|te|traceparent|tracestate|trailer"
    r"|transfer-encoding|upgrade|user-agent|vary|via|warning|x-forwarded-.*|forwarded"
    r"|.*-version|.*request-id|correlation-id|x-(user|project|domain|tenant)-(id|name)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"([\w\-]+):\s*(?!//)(\S.*)", re.DOTALL)
# Options of programs whose value is a password, attached to the option or after it.
_PASSWORD_OPTIONS = {
    **dict.fromkeys(
        ("mysql", "mysqladmin", "mysqldump", "mysqlcheck", "mysqlimport", "mysqlslap", "mycli"),
        "-p",
    ),
    **dict.fromkeys(("mariadb", "mariadb-admin", "mariadb-dump", "mariadb-check"), "-p"),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "sshpass"), "-p"),
    "login": "-p",  # docker login, az login
    "curl": "-E",  # CERTIFICATE:PASSWORD
    **dict.fromkeys(("http", "https"), "-a"),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami"), "-w"),
    "redis-cli": "-a",
    "valkey-cli": "-a",
    "ipmitool": "-P",
    "sqlcmd": "-P",
    "snmpget": "-c",
    "snmpwalk": "-c",
}
# Commands of programs whose password is this argument after them, from 1.
_PASSWORD_ARGUMENTS = {
    ("rabbitmqctl", "add_user"): 2,
    ("rabbitmqctl", "authenticate_user"): 2,
    ("rabbitmqctl", "change_password"): 2,
    ("mysqladmin", "password"): 1,
    ("mariadb-admin", "password"): 1,
    ("redis-cli", "auth"): 1,
    ("valkey-cli", "auth"): 1,
}
_POSITIONAL = {"htpasswd", *(program for program, _ in _PASSWORD_ARGUMENTS)}
_PASSPHRASE = re.compile(r"(pass:)(.+)", re.DOTALL)  # openssl's
_USER_OPTIONS = {"-u", "--user", "-U", "--proxy-user"}  # curl's: their value is user:password
_HEADER_OPTIONS = {"-H", "--header", "--proxy-header"}
_COOKIE_OPTIONS = {"-b", "--cookie"}
_USER_OPTION = re.compile(r"(-[uU]|--user=|--proxy-user=)([^:]+):(.+)", re.DOTALL)


def _password_positions(arguments: Sequence[str]) -> set[int]:
    """Return where passwords stand that have no option: `rabbitmqctl add_user USER PASSWORD`."""
    found, program = set(), ""
    for position, one in enumerate(arguments):
        after = _PASSWORD_ARGUMENTS.get((program, one.lower()))
        plain = [
            place
            for place in range(position + 1, len(arguments))
            if not arguments[place].startswith("-")
        ]
        if after is not None and len(plain) >= after:
            found.add(plain[after - 1])
        if program == "htpasswd" and re.fullmatch(r"-[A-Za-z]*b[A-Za-z]*", one) and plain:
            found.add(plain[-1])
        name = one.rpartition("/")[2]
        program = name if name in _POSITIONAL else program
    return found


def is_secret(name: str) -> bool:
    """Return whether a value under this name is a secret."""
    if option := _KEYSTONE_OPTION.fullmatch(name):
        name = option[1]  # its section is [token] or [credential]
    return (bool(_SECRET.search(name)) and not _SETTING.search(name)) or _may_be_secret(name)


def _may_be_secret(name: str) -> bool:
    """Return whether the last word of a name is that of a short secret: pin, sessionKey, X-Key."""
    words = [word.lower() for word in _NAME_WORDS.findall(name)]
    if words[-2:] == ["session", "id"]:
        return True
    return bool(words) and words[-1] in _LAST_WORDS and not _KEYS.intersection(words[-2:-1])


def secrets_of_environment() -> frozenset[str]:
    """Return the values of OS_PASSWORD, OS_TOKEN and the like."""
    return frozenset(
        value
        for name, value in os.environ.items()
        if name.startswith(_OURS) and name != "OS_KEY" and is_secret(name)  # OS_KEY is a path
    )


def is_secret_option(name: str) -> bool:
    """Return whether a service's option holds a secret: `password`, not `token_provider`."""
    endings = ("password", "passwd", "secret", "passphrase", "admin_token", "secret_key")
    return name.endswith((*endings, "hmac_keys", "signing_key"))


def is_secret_variable(name: str) -> bool:
    """Return whether a variable of a command holds a secret: `DB_PASS`, not `TOKEN_PROVIDER`."""
    return name.lower().rpartition("_")[2] in _SECRET_WORDS


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
        is_nested = isinstance(value, Mapping | list | tuple)
        if is_secret(name) and not (is_nested and _may_be_secret(name)):
            return self._secret(value, name)
        if isinstance(value, Mapping):
            mask = self._header if name.lower() == "headers" else self.value
            return {key: mask(part, str(key)) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return self._list(value, name)
        if not isinstance(value, str):
            return value
        if scheme := _SCHEME_VALUE.fullmatch(value.strip()):
            return f"{scheme[1]} {self._secret(scheme[2])}"
        return self._line(value) if name == "sys_call" else self._text(value)

    def _list(self, value: Sequence[Any], name: str) -> list[Any]:
        if name == "auth" and len(value) == 2 and not isinstance(value[1], Mapping | list):
            return [value[0], self._password(str(value[0]), value[1])]  # as in requests
        return [self.value(part) for part in value]

    def _header(self, value: Any, name: str) -> Any:
        """Mask the value of a header, unless headers of this name hold no secret."""
        if _PLAIN_HEADER.fullmatch(name) and not is_secret(name):
            return self.value(value)
        return self._secret(value, name)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Mask the arguments of a command line."""
        hidden, last, option = [], "", ""
        passwords = _password_positions(arguments)
        for position, one in enumerate(arguments):
            option = _PASSWORD_OPTIONS.get(one.rpartition("/")[2], option)
            if position in passwords:
                hidden.append(str(self._secret(one)))
            else:
                hidden.append(self._argument(one, last, option))
            last = one
        return hidden

    def _argument(self, argument: str, last: str, password_option: str) -> str:
        """Mask an argument after `last`, of a program with this option for a password."""
        option, is_attached, value = argument.partition("=")
        if is_attached and option in _HEADER_OPTIONS:
            return f"{option}={self._argument(value, option, password_option)}"
        if password_option and last == password_option:
            return str(self._secret(argument))
        if password_option and argument.startswith(password_option) and argument[2:]:
            return f"{password_option}{self._secret(argument[2:])}"
        if _is_name_of_secret(last):
            return str(self._secret(argument))
        attached = "-H" if argument.startswith("-H") else ""
        header = _HEADER.fullmatch(argument.removeprefix(attached))
        if header is not None and (attached or last in _HEADER_OPTIONS):
            return f"{attached}{header[1]}: {self._header(header[2], header[1])}"
        return self._plain_argument(argument, last)

    def _plain_argument(self, argument: str, last: str) -> str:
        if last in _USER_OPTIONS and ":" in argument:
            return self._pair(argument)
        if last == "-U" and "%" in argument:  # smbclient's USER%PASSWORD
            user, _, password = argument.partition("%")
            return f"{user}%{self._secret(password)}"
        if last in _COOKIE_OPTIONS and "=" in argument:
            return str(self._secret(argument, "cookie"))
        if passphrase := _PASSPHRASE.fullmatch(argument):
            return f"{passphrase[1]}{self._secret(passphrase[2])}"
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
        self._add(_parts(str(value), name), name)
        return MASK

    def _add(self, values: Iterable[str], name: str) -> None:
        """Remember secrets, but no word that would be hidden wherever it occurs by chance."""
        is_sure = not name or bool(_SECRET.search(name))
        self.found.update(one for one in values if is_sure or not _is_common(one))

    def _text(self, text: str) -> str:
        text = _USERINFO.sub(self._userinfo, text)
        text = _COOKIE.sub(lambda match: match[1] + str(self._secret(match[2], "cookie")), text)
        text = _PRIVATE_KEY.sub(lambda match: match[1] + str(self._secret(match[2])), text)
        text = self._named(text)
        text = _OPTION.sub(self._option, text)
        text = _SCHEME_IN_TEXT.sub(self._scheme, text)
        return _TOKEN.sub(lambda match: str(self._secret(match[0])), text)

    def _userinfo(self, match: re.Match[str]) -> str:
        _, _, password = match[2].partition(":")
        if password:
            self.found.update({password, unquote(password)})
        elif len(match[2]) >= LONG_CHARACTERS:  # a token as the user
            self.found.add(match[2])
        return f"{match[1]}{MASK}@"

    def _option(self, match: re.Match[str]) -> str:
        """Mask the value of an option in a text, as in a message that quotes a command."""
        name = match[1].lstrip("-")
        if is_secret(name):
            self.found.update(() if _is_common(match[3]) else _parts(match[3], name))
            return f"{match[1]}{match[2]}{MASK}"
        if match[1] in _USER_OPTIONS and ":" in match[3]:
            return f"{match[1]}{match[2]}{self._pair(match[3])}"
        return match[0]

    def _scheme(self, match: re.Match[str]) -> str:
        if match[3].isalpha() and (match[3].islower() or len(match[3]) < SHORT_CHARACTERS):
            return match[0]  # "Basic authentication", "Token Error"
        return f"{match[1]}{match[2]}{self._secret(match[3])}"

    def _named(self, text: str) -> str:
        """Mask the values of names: `password=...`, `"pin": "..."`."""
        parts, kept, at = [], 0, 0
        while (name := _NAME.search(text, at)) is not None:
            at = name.end()
            if not is_secret(name["name"]) or (value := _VALUE.match(text, at)) is None:
                continue
            at = value.end()
            if name["name"] == "token" and value[0] in _PROVIDERS:
                continue
            if value[0] != MASK:
                self._add({unquote(value[0]), *_parts(value[0], name["name"])}, name["name"])
                parts += [text[kept : name.end()], MASK]
                kept = at
        return "".join((*parts, text[kept:]))


def _is_common(text: str) -> bool:
    """Return whether a value is likely to occur in other texts: a short number, a word."""
    return len(text) < 6 or (text.isalpha() and len(text) < LONG_CHARACTERS)


def _is_name_of_secret(argument: str) -> bool:
    """Return whether the next argument is a secret: after `--token`, `aws_secret_access_key`."""
    if argument.startswith("-"):
        # "-HX-Auth-Token: ..." and "--token=..." have their value already.
        is_given = "=" in argument or (argument.startswith("-H") and ":" in argument)
        return not is_given and is_secret(argument.strip("-:"))
    return "_" in argument and argument.isidentifier() and is_secret(argument)


def _parts(text: str, name: str) -> Iterator[str]:
    """Yield a secret, and the parts of it that could occur alone."""
    yield text
    yield text.rstrip(";|&)")  # at the end of a shell's command
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
