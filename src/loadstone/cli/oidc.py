"""Options of an OpenID provider as the target: --oidc ISSUER and its client."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click
from click.core import ParameterSource

from loadstone.cli.choose import once, option_table, refuse_given

if TYPE_CHECKING:
    from loadstone.keystone.federation import Federation
    from loadstone.oidc.target import OidcIssuer
    from loadstone.target.choice import NamedTarget, TargetChoice
    from loadstone.workload.searchable import Searchable

# Written here, because --help does not import the scenarios; a test compares them.
SCENARIOS = (
    *("oidc-client-credentials", "oidc-discover", "oidc-introspect", "oidc-login", "oidc-logout"),
    *("oidc-password", "oidc-refresh", "oidc-userinfo"),
)
SCENARIOS_HELP = f" With --oidc: {', '.join(SCENARIOS)}, or a mix of them."
_OF_OIDC = ("client_id", "secret_file", "users_file", "redirect_uri")
# Options that choose users or a target of another kind.
_OF_OTHERS = frozenset({
    *("lab", "cloud", "users", "given", "task", "labs", "clouds", "base", "releases", "levels"),
    *("baseline", "existing", "federation_file", "resumed", "rally_requests"),
})  # fmt: skip


class ClientOptions(TypedDict):
    """The values of `oidc_options`."""

    client_id: str | None
    secret_file: Path | None
    users_file: Path | None
    redirect_uri: str | None


class TargetOptions(ClientOptions):
    """The values of the options that choose a target."""

    lab: str | None
    cloud: str | None
    oidc: str | None


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
# Of the client; --oidc itself is added beside those that choose a target.
oidc_options = option_table(
    ("--client-id", "client_id", str, None, "Client of --oidc that sends the load."),
    ("--client-secret-file", "secret_file", _FILE, None,
     "File whose first line is the client's secret. Default: LOADSTONE_OIDC_CLIENT_SECRET; "
     "without either, the client is a public one."),
    ("--oidc-users", "users_file", _FILE, None,
     "Users that log in: CSV (username,password), YAML or JSON."),
    ("--redirect-uri", "redirect_uri", str, None,
     "Redirect URI of the client, for logins and logouts; nothing is sent there.  [default: "
     "http://127.0.0.1/callback]"),
)  # fmt: skip
OIDC = once(
    "--oidc",
    metavar="ISSUER",
    help="Target: an OpenID provider, by its issuer, such as http://HOST:8080/realms/NAME.",
)


def issuer(ctx: click.Context, url: str, options: Any) -> "OidcIssuer":
    """Return the provider of --oidc with its client and users."""
    from loadstone.oidc.client import REDIRECT_URI, VARIABLE, Client, read_secret
    from loadstone.oidc.target import OidcIssuer

    require_only_oidc(ctx)
    if options["client_id"] is None:
        raise click.UsageError("--oidc needs --client-id, the client that sends the load")
    file = options["secret_file"]
    secret = os.environ.get(VARIABLE) if file is None else read_secret(file)
    client = Client(options["client_id"], secret or None, options["redirect_uri"] or REDIRECT_URI)
    return OidcIssuer(
        url,
        client,
        options["users_file"],
        options["yes"],
        options["anyway"],
        options.get("watched", ()),
    )


def target_of(ctx: click.Context, options: Any) -> "OidcIssuer | NamedTarget":
    """Return the target that a command loads: a provider, or a Keystone."""
    from loadstone.target.choice import NamedTarget

    return provider_of(ctx, options) or NamedTarget(
        options["lab"],
        options["cloud"],
        options["yes"],
        options["anyway"],
        options.get("existing"),
        options.get("watched", ()),
        _federation(options),
    )


def _federation(options: Any) -> "Federation | None":
    """Return the identity provider of --federation; None if there is none."""
    if options["federation_file"] is None:
        return None
    if options["lab"] is not None:
        raise click.UsageError(
            "--federation is for clouds: a lab with federation=oidc-provider knows its own provider"
        )
    from loadstone.keystone.federation_file import read_federation

    return read_federation(options["federation_file"], beyond_loopback=options["yes"])


def provider_of(ctx: click.Context, options: Any) -> "OidcIssuer | None":
    """Return the provider of --oidc, or of --lab NAME; None if the target is a Keystone."""
    if options["oidc"] is None:
        require_no_client(ctx)
        return None if options["lab"] is None else of_lab(options["lab"], options)
    return issuer(ctx, options["oidc"], options)


def of_lab(name: str, options: Any) -> "OidcIssuer | None":
    """Return the provider that a lab is; None if it is a Keystone."""
    from dataclasses import replace

    from loadstone.target.connect import issuer_of_lab

    found = issuer_of_lab(name)
    if found is None:
        return None
    require_only_oidc(click.get_current_context(), name)
    return replace(
        found,
        beyond_loopback=options["yes"],
        anyway=options["anyway"],
        watched=options.get("watched", ()),
    )


def searched_of(ctx: click.Context, target: "TargetChoice", options: Any) -> "Searchable":
    """Return the scenario of a target that the options choose."""
    from loadstone.workload.services import searchable

    is_default = ctx.get_parameter_source("scenario") is ParameterSource.DEFAULT
    chosen = (options["scenario"], options["users"], options["given"])
    return searchable(target, *chosen, is_default=is_default)


def require_only_oidc(ctx: click.Context, lab: str | None = None) -> None:
    """Refuse options of other targets beside --oidc, or beside a lab that is a provider."""
    target = "--oidc" if lab is None else f"--lab {lab}"
    names = _OF_OTHERS if lab is None else _OF_OTHERS - {"lab", "labs"}
    refuse_given(ctx, names, f"does not go with {target}, an OpenID provider")


def require_no_client(ctx: click.Context) -> None:
    """Refuse the client's options without --oidc."""
    refuse_given(ctx, _OF_OIDC, "needs --oidc")
