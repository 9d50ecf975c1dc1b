"""Limits of what is imported: size, depth, characters, dates."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

from loadstone.errors import InvalidInput
from loadstone.store.schema import storable

MOST_JSON_BYTES = 256 << 20
MOST_DEPTH = 64  # nested lists and objects; Rally's results have about 15
# One load. Its timeline has two values a second, so a week takes 200 MB to import.
MOST_SPAN_S = 7 * 86_400.0
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def read_json(text: bytes, what: str) -> Any:
    """Parse JSON of limited size and depth; characters that cannot be stored are replaced.

    Raises InvalidInput for what is too large, and json.JSONDecodeError or UnicodeDecodeError.
    """
    if len(text) > MOST_JSON_BYTES:
        raise InvalidInput(f"{what} has {len(text):,} bytes; at most {MOST_JSON_BYTES:,} are read")
    try:
        return _clean(json.loads(text), MOST_DEPTH)
    except RecursionError:
        raise InvalidInput(f"{what} is nested more than {MOST_DEPTH} levels deep") from None


def _clean(value: Any, levels: int) -> Any:
    if levels < 0:
        raise RecursionError
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_clean(part, levels - 1) for part in value]
    if isinstance(value, dict):
        return {_clean(name, levels): _clean(part, levels - 1) for name, part in value.items()}
    return value


def require_date(text: str) -> datetime:
    """Return a date with a time zone, ISO 8601; ValueError if it is none or is absurd."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not FIRST <= moment <= LAST:
        raise ValueError(f"{text!r} is not a date with a time zone from 1970 to 2200")
    return moment


def moment_s(value: Any, name: str) -> float:
    """Return a Unix time in seconds; ValueError if it is none or is absurd."""
    found_s = float(value)
    if not 0.0 <= found_s <= LAST.timestamp():
        raise ValueError(f"{name} is {value!r:.40}, which is not a time from 1970 to 2200")
    return found_s


def duration_s(value: Any, name: str, most_s: float = MOST_SPAN_S) -> float:
    """Return a duration in seconds; ValueError if it is none or is absurd."""
    found_s = float(value)
    if not math.isfinite(found_s) or not 0.0 <= found_s <= most_s:
        most = timedelta(seconds=most_s)
        raise ValueError(
            f"{name} is {value!r:.40}, which is not a duration of up to {most.days} days"
        )
    return found_s
