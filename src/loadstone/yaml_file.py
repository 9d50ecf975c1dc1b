"""Reads YAML files that users write."""

from pathlib import Path
from typing import Any

from loadstone.errors import InvalidInput


def read(path: Path, option: str = "", *, is_secret: bool = False) -> Any:
    """Return the content of a YAML or JSON file: mappings, lists, strings, numbers, dates.

    Raises InvalidInput with `option`, the file and the line; the content of a file that `is_secret`
    is not quoted.
    """
    import yaml

    place = f"{option} {path}" if option else f"{path}"
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"{place}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{place}: not UTF-8") from None
    except yaml.MarkedYAMLError as wrong:
        line = "" if wrong.problem_mark is None else f":{wrong.problem_mark.line + 1}"
        what = "" if is_secret else f": {wrong.problem}"
        raise InvalidInput(f"{place}{line}: not YAML or JSON{what}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        what = "" if is_secret else f": {' '.join(str(wrong).split())}"
        raise InvalidInput(f"{place}: not YAML or JSON{what}") from None
