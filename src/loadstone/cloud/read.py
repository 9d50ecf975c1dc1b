"""Reads clouds with openstacksdk's own loader, so that settings mean the same as elsewhere.

On import the loader decides where it looks for clouds.yaml, including the working directory;
OS_CLIENT_CONFIG_FILE is read in each call.
"""

import json
import logging
import os
import re
import ssl
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Any

from loadstone.cloud.cloud import Cloud, Endpoint
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.model import Tls
from loadstone.system import yaml_file
from loadstone.system.installation import pip_install

if TYPE_CHECKING:
    from openstack.config import OpenStackConfig
    from openstack.config.cloud_region import CloudRegion

# Returns the name of a setting as the source calls it.
Where = Callable[[str], str]

# Settings of a cloud in clouds.yaml that are not in its section `auth`.
_BESIDE_AUTH = ("auth_type", "verify", "cacert", "cert", "key")
_OF_SAML = ("v3adfspassword", "v3samlpassword")  # their module fails without lxml
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")  # of keystoneauth's plugins
_KINDS = {NoneType: "nothing", list: "a list", str: "a text", bool: "true or false"}
# Variables that select file or cloud, or that collide with parameters of get_one.
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
    """Read OS_* variables; if OS_CLOUD is set, that entry of clouds.yaml."""
    if env.get("OS_CLOUD"):
        return from_clouds_yaml(env["OS_CLOUD"], f"OS_CLOUD={env['OS_CLOUD']}")
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
        return _cloud(config, settings, settings, chosen, lambda field: f"OS_{field.upper()}")


def from_clouds_yaml(name: str, given: str = "") -> Cloud:
    """Read the entry `name` of clouds.yaml (and secure.yaml), at OpenStack's usual places.

    `given` is how the user named it, for messages; by default --cloud NAME.
    """
    if not name:
        raise InvalidInput("--cloud: is empty; name a cloud, or is a variable not set?")
    given = given or f"--cloud {name}"
    config_file = os.environ.get("OS_CLIENT_CONFIG_FILE")
    if config_file:
        # The loader would go on to the next place, whose cloud of this name may be another one.
        require_file(config_file, "OS_CLIENT_CONFIG_FILE")
    choices = _choices()
    also = "".join(f", OS_{key.upper()}={value}" for key, value in choices.items())
    with _reading(f"clouds.yaml{also}"):
        from openstack.config import OpenStackConfig, loader

        for kind in ("SECURE", "CONFIG"):
            # As above, it would go on to the next place if a file is not YAML.
            if (file := _file_of_loader(loader, kind)) is not None:
                _require_shape(file, name)
        if (vendors := _file_of_loader(loader, "VENDOR")) is not None:
            yaml_file.require_finite(vendors)
        config = OpenStackConfig()
        path = config.config_filename
        # The loader adds an entry of this name for the OS_* variables.
        of_variables = str(getattr(config, "envvar_key", "envvars"))
        names = sorted({str(one) for one in config.cloud_config["clouds"]} - {of_variables})
        if path is None or name not in names:
            _require_clouds(given, path)
            raise InvalidInput(_unknown(given, path, names))
        if name not in (entries := config.cloud_config["clouds"]):
            place = yaml_file.read(Path(path), may_repeat=True).place("clouds", name)
            raise InvalidInput(
                f"{given}: {place}: YAML does not read the name {name} as a text: put it in quotes"
            )
        entry = entries[name] or {}

        def where(field: str) -> str:
            is_beside = field in _BESIDE_AUTH or field in entry
            section = f"clouds.{name}" if is_beside else f"clouds.{name}.auth"
            return f"{path}: {section}.{field}"

        return _cloud(config, {"cloud": name, **choices}, entry, f"--cloud {name}", where)


def _choices() -> dict[str, str]:
    """Return the variables that `openstack` reads although a cloud of clouds.yaml is named."""
    names = ("region_name", "interface")
    given = {name: os.environ.get(f"OS_{name.upper()}") for name in names}
    return {name: value for name, value in given.items() if value}


def _file_of_loader(loader: ModuleType, kind: str) -> Path | None:
    """Return the file of a kind that the loader reads: the first that it can read."""
    places = (os.environ.get(f"OS_CLIENT_{kind}_FILE"), *getattr(loader, f"{kind}_FILES"))
    # Path.is_file would raise for a folder that may not be entered; the loader passes over it.
    files = (file for file in places if file and os.path.isfile(file))
    return next((Path(file) for file in files if os.access(file, os.R_OK)), None)


def _require_shape(path: Path, name: str) -> None:
    """Refuse an entry of another form: the loader's error names neither file nor key.

    It is a mapping with a mapping `auth`, in which `auth_url` is a text.
    """
    file = yaml_file.read(path, is_secret=True, may_repeat=True)
    if path.name.endswith("json"):  # the loader reads it as JSON
        try:
            json.loads(yaml_file.read_text(path))
        except json.JSONDecodeError as wrong:
            raise InvalidInput(f"{path}:{wrong.lineno}: not JSON") from None
    content, keys = file.content, list[str]()
    for key in ("clouds", name, "auth"):
        if not isinstance(content, dict) or key not in content:
            return
        content = content[key]
        keys.append(key)
        if not isinstance(content, dict):
            kind = _KINDS.get(type(content), "a number")
            raise InvalidInput(
                f"{file.place(*keys)}: {'.'.join(keys)} must be a mapping, not {kind}"
            )
    url = content.get("auth_url", "")
    if not isinstance(url, str):
        kind = _KINDS.get(type(url), "a number or a mapping")
        raise InvalidInput(
            f"{file.place(*keys, 'auth_url')}: {'.'.join(keys)}.auth_url must be a text, not {kind}"
        )


def _require_clouds(given: str, path: str | None) -> None:
    """Refuse a file without clouds, to which the loader adds one named `defaults`."""
    content = yaml_file.read(Path(path), may_repeat=True).content if path else None
    if path and content is None:
        raise InvalidInput(f"{given}: {path} is empty")
    if isinstance(content, dict) and "clouds" not in content:
        raise InvalidInput(
            f"{given}: {path} has no `clouds:` section; it has "
            f"{', '.join(f'{key}:' for key in content) or 'nothing'}"
        )
    if isinstance(content, dict) and not content["clouds"]:
        raise InvalidInput(_unknown(given, path, []))


def _unknown(given: str, path: str | None, names: list[str]) -> str:
    if path is None:
        return (
            f"{given}: no clouds.yaml found; it is looked for in the working directory, "
            "~/.config/openstack and /etc/openstack"
        )
    known = f"it has {', '.join(names)}" if names else "it has no clouds"
    return f"{given}: no such cloud in {path}; {known}"


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn the loader's errors into one line."""
    _import_openstack()
    from keystoneauth1.exceptions import ClientException
    from openstack.exceptions import SDKException

    # Its warnings repeat our own messages.
    logging.getLogger("openstack.config").addHandler(logging.NullHandler())
    try:
        with warnings.catch_warnings():
            # The loader's deprecation warnings are not about the user's file.
            warnings.simplefilter("ignore")
            yield
    except (SDKException, ClientException) as error:
        raise InvalidInput(f"{what}: {' '.join(str(error).split())}") from error
    except ImportError as error:  # of a kind of authentication such as v3kerberos
        raise EnvironmentUnusable(f"{what}: {' '.join(str(error).split())}") from error
    except OSError as error:  # the loader fetches a profile that is a URL
        url = getattr(getattr(error, "request", None), "url", None)
        raise EnvironmentUnusable(
            f"{what}: its profile cannot be fetched ({url}); leave out `profile`, and write its "
            "auth_url and other settings into the file"
        ) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The loader interpolates values and does not check the structure of the file.
        raise InvalidInput(f"{what}: not in the form that OpenStack reads ({error!r})") from None


class _Openstack(ModuleType):
    """The package `openstack`, whose own code runs as soon as something needs what it defines.

    It imports a client for every service of a cloud, 0.1 s of CPU and 11 MB, of which the loader
    needs none.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            object.__setattr__(self, "__class__", ModuleType)
            if self.__spec__ is not None and self.__spec__.loader is not None:
                self.__spec__.loader.exec_module(self)
            return getattr(self, name)


def _import_openstack() -> None:
    spec = None if "openstack" in sys.modules else find_spec("openstack")
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = _Openstack
        sys.modules["openstack"] = package


def _cloud(
    config: "OpenStackConfig",
    settings: Mapping[str, Any],
    given: Mapping[str, Any],
    chosen: str,
    where: Where,
) -> Cloud:
    """Return the cloud of `settings`, for messages `given` by the user in this form."""
    from keystoneauth1.exceptions import MissingRequiredOptions

    try:
        region = config.get_one(**settings)
    except MissingRequiredOptions as error:
        missing = error.options[0].name.replace("-", "_")
        raise InvalidInput(f"{where(missing)} is missing") from None
    except TypeError as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown is None:
            raise
        raise InvalidInput(
            f"{where(unknown[1])} is not a setting of this kind of authentication; correct its "
            "name, or remove it"
        ) from None
    except AttributeError:
        kind = given.get("auth_type")
        if kind not in _OF_SAML or find_spec("lxml") is not None:
            raise
        raise EnvironmentUnusable(
            f"{where('auth_type')}: {kind} needs the package lxml, which is not installed: "
            f"{pip_install('keystoneauth1[saml2]')}"
        ) from None
    except (IndexError, KeyError, ValueError):
        if (field := _unfilled(given)) is None:
            raise
        raise InvalidInput(
            f"{where(field)} has braces, in which the name of another setting is expected; write "
            "{{ and }} for braces, or remove it"
        ) from None
    auth: Mapping[str, Any] = region.get_auth_args()
    _require_v3(region)
    _require_text(auth, where)
    if region.config["auth_type"] in {"password", "v3password"}:
        _require_password(auth, where)
    plugin = region.get_auth()
    if plugin is None or "auth_url" not in auth:
        raise InvalidInput(f"{where('auth_type')}: this kind of authentication uses no Keystone")
    endpoint = _endpoint(str(auth["auth_url"]), where)
    scope = f"{where('project_name')} (or a domain, or system_scope)"
    return Cloud(
        chosen=chosen,
        auth_url=str(auth["auth_url"]).rstrip("/"),
        endpoint=endpoint,
        who=_who(auth),
        auth=plugin,
        tls=_tls(region, endpoint, where),
        region=region.get_region_name() or None,
        interface=_interface(region),
        overrides=frozenset(one for one in region.config if one.endswith("_endpoint_override")),
        missing_scope="" if _has_scope(region, auth) else scope,
        secrets=_secrets(region, auth),
    )


def _unfilled(given: Mapping[str, Any]) -> str | None:
    """Return the first setting with a reference to another one (`{region_name}`) that fails."""
    auth = given.get("auth")
    settings = {**(auth if isinstance(auth, dict) else {}), **given}
    for field, value in settings.items():
        if not isinstance(value, str) or field in _TEXTS:
            continue  # the loader does not fill in what identifies a user
        try:
            value.format_map(given)
        except (IndexError, KeyError, ValueError):
            return str(field)
    return None


# Of the methods that v3multifactor joins. Its own options name only them.
_SECRETS_OF_METHODS = ("application_credential_secret", "passcode", "password", "token")


def _secrets(region: "CloudRegion", auth: Mapping[str, Any]) -> frozenset[str]:
    """Return the values of the settings that the plugin calls secret."""
    from keystoneauth1.loading import get_plugin_options

    options = get_plugin_options(region.config["auth_type"])
    names = {*_SECRETS_OF_METHODS, *(option.dest for option in options if option.secret)}
    return frozenset(str(auth[name]) for name in names if auth.get(name))


def _interface(region: "CloudRegion") -> str:
    given = region.get_interface()
    # clouds.yaml may list several, the preferred one first.
    first = given[0] if isinstance(given, list) and given else given
    return str(first or "public")


# An application credential belongs to a project. What other plugins do is not known.
_SCOPES = (
    "project_id",
    "project_name",
    "tenant_id",
    "tenant_name",
    "domain_id",
    "domain_name",
    "system_scope",
    "trust_id",
)


def _has_scope(region: "CloudRegion", auth: Mapping[str, Any]) -> bool:
    """Return whether a token will be for a project, a domain or the system."""
    is_password = region.config["auth_type"] in {"password", "v3password"}
    return not is_password or any(auth.get(name) for name in _SCOPES)


def _endpoint(url: str, where: Where) -> Endpoint:
    try:
        if url.split() != [url]:
            raise ValueError("it contains white space")
        return Endpoint.parse(url)
    except ValueError as error:
        # Text before an @ may be a password.
        shown = "" if "@" in url else f"{url!r}: "
        raise InvalidInput(f"{where('auth_url')}: {shown}{error}") from None


def _require_v3(region: "CloudRegion") -> None:
    if str(region.config.get("identity_api_version") or "3").startswith("2"):
        raise InvalidInput("Identity API v2 is asked for; only v3 exists since Queens: ask for 3")
    kind = str(region.config["auth_type"])
    if kind.startswith("v2"):
        raise InvalidInput(
            f"auth_type {kind} asks for Identity API v2; only v3 exists since Queens: "
            f"choose v3{kind.removeprefix('v2')}"
        )


# Settings of `auth` that are text, whatever the authentication. Numbers are taken for text.
_TEXTS = (
    *("username", "user_id", "password", "passcode", "token", "project_name", "project_id"),
    *(f"application_credential_{part}" for part in ("id", "name", "secret")),
)


def _require_text(auth: Mapping[str, Any], where: Where) -> None:
    """Refuse words that YAML reads as a date or as true, and lists."""
    for field in _TEXTS:
        value = auth.get(field)
        if isinstance(value, bool) or not isinstance(value, (str, int, float, NoneType)):
            kind = _KINDS.get(type(value), "a date or a mapping")
            raise InvalidInput(f"{where(field)} must be a text, not {kind}: put it in quotes")


def _require_password(auth: Mapping[str, Any], where: Where) -> None:
    if not auth.get("password"):
        raise InvalidInput(f"{where('password')} is missing")
    if not auth.get("user_id"):
        if not auth.get("username"):
            raise InvalidInput(f"{where('username')} is missing (or user_id)")
        _require_domain(auth, "user", where)
    if auth.get("project_name") and not auth.get("project_id"):
        _require_domain(auth, "project", where)


def _require_domain(auth: Mapping[str, Any], of: str, where: Where) -> None:
    fields = (f"{of}_domain_id", f"{of}_domain_name", "default_domain_id", "default_domain_name")
    if not any(auth.get(field) for field in fields):
        raise InvalidInput(f"{where(fields[1])} is missing (or {fields[0]}); often it is Default")


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


def _tls(region: "CloudRegion", endpoint: Endpoint, where: Where) -> Tls:
    verify, cert = region.get_requests_verify_args()
    cert_file, key_file = cert if isinstance(cert, tuple) else (cert, cert)
    ca_file = verify if isinstance(verify, str) else None
    if ca_file is not None and ca_file.lower() in ("true", "false"):
        # The loader knows no text here: requests would look for a file of this name.
        raise InvalidInput(
            f"{where('verify')} is the text {ca_file!r}: in clouds.yaml, write true or false "
            "without quotes; in place of OS_VERIFY=false, set OS_INSECURE=true"
        )
    for field, path in (("cacert", ca_file), ("cert", cert_file), ("key", key_file)):
        if path is not None:
            require_file(path, where(field))
    if endpoint.scheme == "https":
        if ca_file is not None:
            require_certificates(ca_file, where("cacert"))
        if cert_file is not None:
            _require_pair(cert_file, key_file, where)
    return Tls(bool(verify), ca_file, cert_file, key_file)


def require_certificates(path: str, name: str) -> None:
    """Raise InvalidInput, with the name of the setting, for a file without certificates in PEM."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise InvalidInput(
            f"{name}: {path} has no certificate in PEM; from DER: openssl x509 -inform der"
        ) from None


def _require_pair(cert_file: str, key_file: str | None, where: Where) -> None:
    """Refuse a client's certificate and key that cannot be used."""

    def passphrase() -> str:
        raise InvalidInput(
            f"{where('key')}: {key_file or cert_file} is encrypted, and its passphrase cannot be "
            "given; write a key without one: openssl pkey"
        )

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert_file, key_file, passphrase)
    except ssl.SSLError as problem:
        reason = (problem.reason or "").lower().replace("_", " ")
        why = reason or "one of them is not PEM"
        key = key_file if key_file not in (None, cert_file) else "the key in it"
        raise InvalidInput(
            f"{where('cert')}: {cert_file} and {key} cannot be used together ({why}); give a "
            f"certificate and its own key in PEM ({where('key')})"
        ) from None


def require_file(path: str, name: str) -> None:
    """Raise InvalidInput, with the name of the setting, for what is not a file that can be read."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise InvalidInput(f"{name}: {path} is not a file that can be read")
