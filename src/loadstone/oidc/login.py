"""One login with the authorization code flow, step by step, and the way that it took."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.oidc.http import HttpAnswer
from loadstone.oidc.page import HtmlForm, read_page
from loadstone.oidc.pkce import ProofKey
from loadstone.oidc.provider import HTTP_OK, SCOPE, Provider, Tokens, new_state
from loadstone.oidc.users import OidcUser

REDIRECTS = (302, 303, 307)
_MOST_REDIRECTS = 10  # before the page, and after the form


@dataclass(frozen=True, slots=True)
class LoginWay:
    """The requests of a login at this provider, which iterations repeat."""

    to_page: tuple[int, ...]  # statuses of the redirects from the authorization request to the page
    form: int  # number of the form in the page
    user_field: str
    password_field: str
    has_hidden: bool  # the form has hidden fields
    to_code: tuple[int, ...]  # statuses of the redirects from the form to the code

    @property
    def requests(self) -> int:
        """The number of requests, with the exchange of the code."""
        return len(self.to_page) + 1 + len(self.to_code) + 1


@dataclass(frozen=True, slots=True)
class CompletedLogin:
    """A completed login."""

    tokens: Tokens
    way: LoginWay


def authorization(provider: Provider, state: str, nonce: str, challenge: str) -> str:
    """Return the path of an authorization request."""
    path = provider.require("authorization", "a login")
    query = {
        "response_type": "code",
        "client_id": provider.client.id,
        "redirect_uri": provider.client.redirect_uri,
        "scope": SCOPE,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}"


def log_in(provider: Provider, user: OidcUser) -> CompletedLogin:
    """Log a user in as a browser does; EnvironmentUnusable says why that is not possible."""
    return _Browser(provider, user).log_in()


@dataclass(slots=True)
class _Browser:
    provider: Provider
    user: OidcUser
    key: ProofKey = field(default_factory=ProofKey.make)
    state: str = field(default_factory=new_state)
    # Name and path of a cookie -> value.
    cookies: dict[tuple[str, str], str] = field(default_factory=dict)

    def log_in(self) -> CompletedLogin:
        path = authorization(self.provider, self.state, new_state(), self.key.challenge)
        statuses: list[int] = []
        answer = self._get(path)
        while answer.status in REDIRECTS and len(statuses) < _MOST_REDIRECTS:
            self._refuse_error(answer)
            statuses.append(answer.status)
            path = self._inside(path, answer.location)
            answer = self._get(path)
        form = self._form(answer)
        code, after = self._post(path, form)
        way = LoginWay(
            tuple(statuses),
            form.number,
            form.user or "",
            form.password or "",
            bool(form.hidden),
            after,
        )
        return CompletedLogin(self._exchange(code), way)

    def _form(self, answer: HttpAnswer) -> HtmlForm:
        page = read_page(answer.text)
        if answer.status in (*REDIRECTS, 301, 308):
            raise self._impossible(
                f"the authorization request is redirected more than {_MOST_REDIRECTS} times, or "
                "with HTTP 301 or 308, which cannot be measured"
            )
        if answer.status != HTTP_OK:
            said = answer.error if answer.json else f"HTTP {answer.status}: {page.shown}"
            raise self._impossible(
                f"the authorization request is refused ({said}); check --client-id, and that "
                f"{self.provider.client.redirect_uri} is a redirect URI of the client "
                "(--redirect-uri)"
            )
        form = page.login
        if form is None or form.user is None:
            raise self._impossible(
                f"the page that came has no form for name and password ({page.shown!r}); logins "
                "in several pages or by script cannot be measured"
            )
        if not form.action:
            raise self._impossible("the login form names no action, which cannot be measured")
        return form

    def _post(self, page: str, form: HtmlForm) -> tuple[str, tuple[int, ...]]:
        """Send name and password: the code, and the statuses on the way to it."""
        given = {one.name: one.value for one in form.hidden}
        given |= {str(form.user): self.user.name, str(form.password): self.user.password}
        path = self._inside(page, form.action)
        answer = self.provider.http.post(path, urlencode(given), self._cookies(path))
        self._keep(answer)
        statuses: list[int] = []
        while answer.status in REDIRECTS and len(statuses) < _MOST_REDIRECTS:
            statuses.append(answer.status)
            self._refuse_error(answer)
            if self._is_back(answer.location):
                code = parse_qs(urlsplit(answer.location).query).get("code")
                if not code:
                    raise self._impossible("the provider sent the browser back without a code")
                return code[0], tuple(statuses)
            path = self._inside(path, answer.location)
            answer = self._get(path)
        page_ = read_page(answer.text)
        if answer.status == HTTP_OK and page_.login is not None:
            raise self._impossible(
                f"the login form came again ({page_.shown!r}); check name and password in the "
                "file of --oidc-users, and that the user is enabled"
            )
        raise self._impossible(
            f"after the password came HTTP {answer.status} and a page ({page_.shown!r}) in place "
            "of a redirect with a code; consent, a required action or a second factor cannot be "
            "measured: switch it off for these users and this client"
        )

    def _exchange(self, code: str) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.provider.client.redirect_uri,
            "code_verifier": self.key.verifier,
        }
        return self.provider.grant(form, f"exchange of the code of user {self.user.name}")

    def _refuse_error(self, answer: HttpAnswer) -> None:
        """Refuse a redirect that brings an error (RFC 6749, 4.1.2.1)."""
        query = parse_qs(urlsplit(answer.location).query)
        if self._is_back(answer.location) and "error" in query:
            words = (*query["error"], *query.get("error_description", ()))
            raise self._impossible(f"the provider refuses the login ({': '.join(words)})")

    def _is_back(self, location: str) -> bool:
        return location.partition("?")[0] == self.provider.client.redirect_uri.partition("?")[0]

    def _inside(self, page: str, link: str) -> str:
        """Return the path of a link; the issuer's host is the only one that may be loaded."""
        issuer = self.provider.endpoint
        base = Endpoint(issuer.scheme, issuer.host, issuer.port, "").url
        try:
            whole = urljoin(f"{base}{page}", link)
            parts = urlsplit(whole)
            target = Endpoint.parse(whole.partition("?")[0].partition("#")[0])
        except ValueError as wrong:
            raise self._impossible(f"it leads to {link[:40]!r}: {wrong}") from None
        if (target.scheme, target.host, target.port) != (issuer.scheme, issuer.host, issuer.port):
            raise self._impossible(
                f"it leads to {parts.scheme}://{parts.netloc}, and only {base} was named to be "
                "loaded"
            )
        if not link.startswith("/") and not urlsplit(link).scheme:
            raise self._impossible(
                f"it follows the relative link {link[:40]!r}, which cannot be measured"
            )
        return f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"

    def _get(self, path: str) -> HttpAnswer:
        answer = self.provider.http.get(path, self._cookies(path))
        self._keep(answer)
        return answer

    def _keep(self, answer: HttpAnswer) -> None:
        for header in answer.set_cookies:
            pair, _, attributes = header.partition(";")
            name, equals, value = pair.partition("=")
            if not equals:
                continue
            parsed = _attributes(attributes)
            path = parsed.get("path", "")
            key = (name.strip(), path if path.startswith("/") else "/")
            self.cookies.pop(key, None)
            if not _is_expired(parsed):
                self.cookies[key] = value.strip()

    def _cookies(self, path: str) -> dict[str, str]:
        asked = urlsplit(path).path
        fitting = [
            f"{name}={value}"
            for (name, place), value in self.cookies.items()
            if asked == place or asked.startswith(place.rstrip("/") + "/")
        ]
        return {"Cookie": "; ".join(fitting)} if fitting else {}

    def _impossible(self, why: str) -> EnvironmentUnusable:
        return EnvironmentUnusable(f"{self.provider.url}: login of user {self.user.name}: {why}")


def _is_expired(cookie: dict[str, str]) -> bool:
    """As the engine does it (rust/engine/src/cookies.rs): Max-Age counts more than Expires."""
    if "max-age" in cookie:
        return cookie["max-age"] == "0" or cookie["max-age"].startswith("-")
    return re.search("19[0-9][0-9]", cookie.get("expires", "")) is not None


def _attributes(text: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
