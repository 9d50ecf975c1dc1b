"""Types of remote objects (Dask actors)."""

from collections.abc import Callable
from typing import Any, Protocol


class RemoteAnswer(Protocol):
    """The future result of a remote call."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the value; raise what the method raised."""


class RemoteMember(Protocol):
    """An object on another host: each method returns a `RemoteAnswer`."""

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]: ...
