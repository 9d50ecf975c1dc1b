"""The file of --federation: the identity provider of a cloud, and who logs in there."""

from pathlib import Path

from pydantic import Field, ValidationError

from loadstone.errors import InvalidInput
from loadstone.keystone.federation import Federation
from loadstone.oidc.client import REDIRECT_URI, Client, read_secret
from loadstone.oidc.target import OidcIssuer
from loadstone.system import yaml_file
from loadstone.system.strict_model import StrictModel, mistake

OPTION = "--federation"


class _Form(StrictModel):
    identity_provider: str = Field(min_length=1)
    protocol: str = Field(min_length=1)
    project: str = Field(min_length=1)
    issuer: str = Field(min_length=1)
    client_id: str = Field(min_length=1)
    client_secret_file: Path | None = None
    users_file: Path
    redirect_uri: str = REDIRECT_URI


def read_federation(path: Path, *, beyond_loopback: bool) -> Federation:
    """Read a federation from YAML or JSON; the files that it names are relative to its folder.

    `beyond_loopback`: the user permits load on another machine, which the provider may be.
    Raises InvalidInput, which names the file and the mistake.
    """
    file = yaml_file.read(path, OPTION)
    if not isinstance(file.content, dict):
        keys = ", ".join(_Form.model_fields)
        raise InvalidInput(f"{file.place()}: must be a mapping with {keys}")
    try:
        form = _Form.model_validate(file.content)
    except ValidationError as wrong:
        raise InvalidInput(mistake(_Form, file, wrong)) from None
    secret = None
    if form.client_secret_file is not None:
        place = f"{file.place('client_secret_file')}: client_secret_file"
        secret = read_secret(path.parent / form.client_secret_file, place)
    issuer = OidcIssuer(
        form.issuer,
        Client(form.client_id, secret, form.redirect_uri),
        path.parent / form.users_file,
        beyond_loopback,
        chosen=f"{file.place('issuer')}: issuer",
        users_option=f"{file.place('users_file')}: users_file",
    )
    _ = issuer.cloud, issuer.users  # mistakes in them are told now
    return Federation(form.identity_provider, form.protocol, form.project, issuer)
