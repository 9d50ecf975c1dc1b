"""Reads settings of a deployment from YAML: the same keys as `--with`, with `conf` as sections."""

from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.system import yaml_file

Pairs = tuple[tuple[str, str], ...]


def read_file(path: Path) -> Pairs:
    """Return KEY, VALUE pairs, to be followed by those of the command line."""
    tree = yaml_file.read(path)
    if not isinstance(tree, dict):
        raise InvalidInput(f"{path}: must be a mapping of settings, as `workers: 2`")
    conf = tree.pop("conf", None) or {}
    if not isinstance(conf, dict) or not all(isinstance(o, dict) for o in conf.values()):
        raise InvalidInput(
            f"{path}: conf must be sections of options, as `token: {{expiration: 60}}`"
        )
    plain = tuple((str(key), _word(path, str(key), value)) for key, value in tree.items())
    options = tuple(
        (f"conf.{section}.{option}", _word(path, f"conf.{section}.{option}", value))
        for section, chosen in conf.items()
        for option, value in chosen.items()
    )
    return plain + options


def _word(path: Path, key: str, value: object) -> str:
    match value:
        case bool():  # before int, because bool is a subclass
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            raise InvalidInput(f"{path}: {key} must be one value, not {value!r}")
