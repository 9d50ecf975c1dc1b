"""The newest event of each kind, for readers of whom none is waited for."""

import json
import time
from collections.abc import Iterator, Mapping
from threading import Condition

Event = Mapping[str, str]
ALIVE_S = 5.0  # without an event, a reader gets a comment so often, which shows that it is there
END = "end"


class Board:
    """Holds one event of each kind. A slow reader misses older ones, and nothing grows."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._events: dict[str, tuple[int, bytes]] = {}  # kind -> its version, and the text
        self._version = 0
        self._readers = 0

    @property
    def readers(self) -> int:
        """The number of connected readers."""
        return self._readers

    def post(self, kind: str, event: Event) -> None:
        """Replace the event of a kind."""
        text = f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode()
        with self._changed:
            self._version += 1
            self._events[kind] = (self._version, text)
            self._changed.notify_all()

    def events(self) -> Iterator[bytes]:
        """Yield the present events and then each new one as server-sent events, to the END."""
        seen = 0
        with self._changed:
            self._readers += 1
        try:
            yield b"retry: 3000\n\n"
            while True:
                with self._changed:
                    if self._version == seen:
                        self._changed.wait(ALIVE_S)
                    fresh = sorted(one for one in self._events.values() if one[0] > seen)
                    is_over = END in self._events
                    seen = self._version
                yield b"".join(text for _, text in fresh) or b": alive\n\n"
                if is_over:
                    return
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def wait_for_readers(self, most_s: float) -> None:
        """Wait until nobody reads any more, so many seconds at most."""
        until_s = time.monotonic() + most_s
        with self._changed:
            self._changed.wait_for(lambda: not self._readers, max(0.0, until_s - time.monotonic()))
