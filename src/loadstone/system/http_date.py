"""The time at which an answer was made, by its server's clock."""

from collections.abc import Mapping


def own_date(headers: Mapping[str, str]) -> str:
    """Return the Date of an answer; empty without one, or if a cache has kept the answer.

    A cache adds Age to what it has stored, whose Date is of another time (RFC 9111, section 5.1).
    """
    return "" if "Age" in headers else headers.get("Date", "")
