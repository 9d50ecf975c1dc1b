"""keystone.conf of a deployment."""

from pathlib import Path
from typing import assert_never

from loadstone.keystone.deploy.settings import Cache, Option, Settings


def options(folder: Path, settings: Settings) -> tuple[Option, ...]:
    """Give the options that the lab sets; everything that Keystone would seek in /etc is named."""
    return (
        ("DEFAULT", "log_file", _path(folder / "logs" / "keystone.log")),
        ("fernet_tokens", "key_repository", _path(folder / "keys" / "fernet")),
        # fernet_setup makes these too, and would write to /etc/keystone.
        ("fernet_receipts", "key_repository", _path(folder / "keys" / "receipts")),
        ("credential", "key_repository", _path(folder / "keys" / "credential")),
        ("oslo_policy", "policy_file", _path(folder / "policy.yaml")),
        ("oslo_policy", "policy_dirs", _path(folder / "policy.d")),
        ("oslo_middleware", "enable_proxy_headers_parsing", "true"),
        *_cache(settings.cache),
        *_hashing(settings.hash_rounds),
        *settings.conf,
    )


def render(chosen: tuple[Option, ...]) -> str:
    """Write options as keystone.conf; where one is named twice the last counts."""
    sections: dict[str, dict[str, str]] = {}
    for section, option, value in chosen:
        sections.setdefault(section, {})[option] = value
    return "\n".join(
        f"[{section}]\n" + "".join(f"{option} = {value}\n" for option, value in lines.items())
        for section, lines in sections.items()
    )


def _cache(level: Cache) -> tuple[Option, ...]:
    match level:
        case Cache.LOCAL:
            return (("cache", "enabled", "true"),)
        case Cache.OFF:
            return (("cache", "enabled", "false"),)
        case Cache.MEMORY:
            return (("cache", "enabled", "true"), ("cache", "backend", "dogpile.cache.memory"))
        case _:
            assert_never(level)


def _hashing(rounds: int | None) -> tuple[Option, ...]:
    return () if rounds is None else (("identity", "password_hash_rounds", str(rounds)),)


def _path(path: Path) -> str:
    # oslo.config takes $name in a value for another option.
    return str(path).replace("$", "$$")
