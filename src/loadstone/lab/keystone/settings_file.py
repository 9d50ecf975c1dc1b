"""Reads settings of a deployment from YAML: the same keys as `--with`, with `conf` as sections."""

from collections.abc import Hashable, Sequence
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.lab.keystone import settings
from loadstone.system import yaml_file
from loadstone.system.redaction import MASK, is_secret_option
from loadstone.system.yaml_file import YamlFile

Pairs = tuple[tuple[str, str], ...]

_OF_A_HOST = ("release", "storage")  # folders and files, perhaps of another machine


def read_file(path: Path) -> Pairs:
    """Return KEY, VALUE pairs, to be followed by those of the command line.

    Raises InvalidInput with the line of a setting that the lab does not have.
    """
    file = yaml_file.read(path)
    tree = file.content
    if not isinstance(tree, dict):
        raise InvalidInput(f"{file.place()}: must be a mapping of settings, as `workers: 2`")
    conf = tree.pop("conf", None) or {}
    if not isinstance(conf, dict) or not all(isinstance(o, dict) for o in conf.values()):
        raise InvalidInput(
            f"{file.place('conf')}: conf must be sections of options, as "
            "`token: {expiration: 60}`"
        )
    plain = [((key,), value) for key, value in tree.items()]
    options = [
        (("conf", section, option), value)
        for section, chosen in conf.items()
        for option, value in chosen.items()
    ]
    return tuple(_pair(file, keys, value) for keys, value in (*plain, *options))


def _pair(file: YamlFile, keys: Sequence[Hashable], value: object) -> tuple[str, str]:
    place, key = file.place(*keys), ".".join(map(str, keys))
    text = file.text(*keys)
    if value is None or text is None:
        shown = MASK if is_secret_option(key.rpartition(".")[2]) else repr(value)
        raise InvalidInput(f"{place}: {key} must be one value, not {shown}")
    word = text
    if isinstance(value, bool):
        word = "true" if value else "false"
    try:
        if key not in _OF_A_HOST:
            settings.values([(key, word)])
    except InvalidInput as wrong:
        raise InvalidInput(f"{place}: {wrong}") from None
    return key, word
