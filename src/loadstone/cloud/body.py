"""Limits on the bodies of answers, which a hostile or wrong server may send without end."""

from collections.abc import Iterator
from typing import Any

MOST_BYTES = 64 * 2**20  # of one answer: 150,000 users in one list of Keystone's


class BodyTooLong(Exception):
    """An answer's body is longer than the limit."""


class CappedBody:
    """The raw response of urllib3; reading more than `most` decoded bytes raises BodyTooLong."""

    def __init__(self, raw: Any, most: int = MOST_BYTES) -> None:
        self._raw = raw
        self._most = most

    def stream(self, amt: int = 65_536, decode_content: bool | None = None) -> Iterator[bytes]:
        """Yield the body in chunks."""
        count = 0
        for chunk in self._raw.stream(amt, decode_content=decode_content):
            count += len(chunk)
            if count > self._most:
                self._raw.close()
                raise BodyTooLong(f"its answer is longer than {self._most // 2**20} MiB")
            yield chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)
