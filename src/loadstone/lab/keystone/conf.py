"""keystone.conf of a deployment."""

from pathlib import Path

from loadstone.lab.keystone.settings import FederationProvider, LabSettings, Option

PROTOCOL = "openid"  # of federated users
# Keystone's default. A token holds the methods as places in this list.
METHODS = ("external", "password", "token", "oauth1", "mapped", "application_credential")


def options(folder: Path, settings: LabSettings) -> tuple[Option, ...]:
    """Return the options that the lab sets, with every path that defaults to /etc."""
    chosen = [
        ("DEFAULT", "log_file", str(folder / "logs" / "keystone.log")),
        ("fernet_tokens", "key_repository", str(folder / "keys" / "fernet")),
        # fernet_setup creates these too, and would write to /etc/keystone.
        ("fernet_receipts", "key_repository", str(folder / "keys" / "receipts")),
        ("credential", "key_repository", str(folder / "keys" / "credential")),
        ("token", "provider", str(settings.token)),
        ("jwt_tokens", "jws_public_key_repository", str(folder / "keys" / "jws-public")),
        ("jwt_tokens", "jws_private_key_repository", str(folder / "keys" / "jws-private")),
        ("oslo_policy", "policy_file", str(folder / "policy.yaml")),
        ("oslo_policy", "policy_dirs", str(folder / "policy.d")),
        ("oslo_middleware", "enable_proxy_headers_parsing", "true"),
    ]
    if settings.hash_rounds is not None:
        chosen.append(("identity", "password_hash_rounds", str(settings.hash_rounds)))
    if settings.federation is not FederationProvider.NONE:  # Keystone's own methods are not enough
        chosen.append(("auth", "methods", ",".join((*METHODS, PROTOCOL))))
    return tuple(chosen)


def fernet_keys(folder: Path, settings: LabSettings) -> Path:
    """Return the folder of the Fernet keys: the lab's own, unless an option names another."""
    chosen = {(s, o): value for s, o, value in (*options(folder, settings), *settings.conf)}
    return Path(chosen["fernet_tokens", "key_repository"])


def render(chosen: tuple[Option, ...]) -> str:
    """Format options as keystone.conf; of duplicates the last one counts."""
    sections: dict[str, dict[str, str]] = {}
    for section, option, value in chosen:
        sections.setdefault(section, {})[option] = value
    return "\n".join(
        f"[{section}]\n" + "".join(f"{option} = {value}\n" for option, value in lines.items())
        for section, lines in sections.items()
    )
