"""Clouds read by openstacksdk's own loader, so that they mean here what they mean elsewhere.

The loader fixes where it looks for clouds.yaml, the working directory among them, when it is
imported; OS_CLIENT_CONFIG_FILE is looked at in each call.
"""

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone.errors import InvalidInput
from loadstone.target.cloud import Cloud, Endpoint, Tls

if TYPE_CHECKING:
    from openstack.config.cloud_region import CloudRegion

# Variables that say which file or cloud to read, or that would be taken for get_one's own words.
_NOT_SETTINGS = {
    "auth",
    "argparse",
    "client_config_file",
    "client_secure_file",
    "cloud",
    "cloud_name",
    "profile",
    "validate",
}


def from_environment(env: Mapping[str, str], chosen: str = "OS_*") -> Cloud:
    """Read OS_* variables; with OS_CLOUD among them, that entry of clouds.yaml."""
    if env.get("OS_CLOUD"):
        return from_clouds_yaml(env["OS_CLOUD"])
    settings: dict[str, Any] = {
        key.removeprefix("OS_").lower(): value
        for key, value in env.items()
        if key.startswith("OS_") and value
    }
    settings = {key: value for key, value in settings.items() if key not in _NOT_SETTINGS}
    if not settings:
        raise InvalidInput(
            "no target: give --lab NAME or --cloud NAME, or set OS_AUTH_URL and the other OS_*"
        )
    with _reading("the OS_* variables"):
        from openstack.config import OpenStackConfig

        config = OpenStackConfig(load_yaml_config=False, load_envvars=False)
        return _cloud(config.get_one(**settings), chosen, _variable)


def from_clouds_yaml(name: str) -> Cloud:
    """Read the entry `name` of clouds.yaml (and secure.yaml), found where OpenStack looks."""
    with _reading("clouds.yaml") as skipped:
        from openstack.config import OpenStackConfig

        config = OpenStackConfig()
        names = sorted(config.cloud_config["clouds"])
        if name not in names or config.config_filename is None:
            raise InvalidInput(_unknown(name, config.config_filename, names, skipped))
        return _cloud(
            config.get_one(cloud=name),
            f"--cloud {name}",
            lambda field: f"{config.config_filename}: clouds.{name}.auth.{field}",
        )


def _unknown(name: str, path: str | None, names: list[str], skipped: list[str]) -> str:
    if skipped:
        return f"clouds.yaml cannot be read: {skipped[0]}"
    if path is None:
        given = os.environ.get("OS_CLIENT_CONFIG_FILE")
        missing = f" ({given} of OS_CLIENT_CONFIG_FILE does not exist)" if given else ""
        return (
            f"--cloud {name}: no clouds.yaml found{missing}; it is looked for in the working "
            "directory, ~/.config/openstack and /etc/openstack"
        )
    known = f"it has {', '.join(names)}" if names else "it has no clouds"
    return f"--cloud {name}: no such cloud in {path}; {known}"


def _variable(field: str) -> str:
    return f"OS_{field.upper()}"


@contextmanager
def _reading(what: str) -> Iterator[list[str]]:
    """Turn the loader's own complaints into one line; give the files that it skipped."""
    from keystoneauth1.exceptions import ClientException
    from openstack.exceptions import SDKException

    heard = _Listener()
    log = logging.getLogger("openstack.config")
    log.addHandler(heard)
    try:
        with warnings.catch_warnings():
            # The loader warns of its own plans, not of the user's file.
            warnings.simplefilter("ignore")
            yield heard.lines
    except (SDKException, ClientException) as error:
        raise InvalidInput(f"{what}: {_one_line(str(error))}") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The loader formats values with each other and trusts the shape of the file.
        raise InvalidInput(f"{what}: not in the form that OpenStack reads ({error!r})") from None
    finally:
        log.removeHandler(heard)


class _Listener(logging.Handler):
    """Keeps what the loader logs: a file that it cannot parse is skipped with a warning only."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("Skipping config file"):
            self.lines.append(_one_line(record.getMessage().removeprefix("Skipping config file ")))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cloud(region: "CloudRegion", chosen: str, where: Any) -> Cloud:
    auth: Mapping[str, Any] = region.get_auth_args()
    _require(region, auth, where)
    try:
        endpoint = Endpoint.parse(str(auth["auth_url"]))
    except ValueError as error:
        raise InvalidInput(f"{where('auth_url')}: {auth['auth_url']!r}: {error}") from error
    plugin = region.get_auth()
    if plugin is None:
        raise InvalidInput(f"{where('auth_type')}: it asks for no authentication at all")
    return Cloud(
        chosen=chosen,
        auth_url=str(auth["auth_url"]).rstrip("/"),
        endpoint=endpoint,
        who=_who(auth),
        auth=plugin,
        tls=_tls(region, where),
        region=region.get_region_name("identity") or None,
    )


def _require(region: "CloudRegion", auth: Mapping[str, Any], where: Any) -> None:
    if not auth.get("auth_url"):
        raise InvalidInput(f"{where('auth_url')} is missing: the URL of Keystone")
    if str(region.config.get("identity_api_version") or "3").startswith("2"):
        raise InvalidInput("Identity API v2 is asked for; only v3 exists since Queens: ask for 3")
    if region.config["auth_type"] not in {"password", "v3password"}:
        return
    if not auth.get("password"):
        raise InvalidInput(f"{where('password')} is missing")
    if auth.get("user_id"):
        return
    if not auth.get("username"):
        raise InvalidInput(f"{where('username')} is missing (or user_id)")
    domains = ("user_domain_id", "user_domain_name", "default_domain_id", "default_domain_name")
    if not any(auth.get(field) for field in domains):
        raise InvalidInput(
            f"{where('user_domain_name')} is missing (or user_domain_id); often it is Default"
        )


def _who(auth: Mapping[str, Any]) -> str:
    for field, word in (
        ("username", "user"),
        ("user_id", "user"),
        ("application_credential_name", "application credential"),
        ("application_credential_id", "application credential"),
    ):
        if auth.get(field):
            return f"{word} {auth[field]}"
    return "the given identity"


def _tls(region: "CloudRegion", where: Any) -> Tls:
    verify, cert = region.get_requests_verify_args()
    cert_file, key_file = cert if isinstance(cert, tuple) else (cert, cert)
    ca_file = verify if isinstance(verify, str) else None
    for field, path in (("cacert", ca_file), ("cert", cert_file), ("key", key_file)):
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidInput(f"{where(field)}: {path} is no file that can be read")
    return Tls(bool(verify), ca_file, cert_file, key_file)
