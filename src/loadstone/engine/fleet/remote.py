"""Objects on other hosts (Dask's actors), as they are seen from here."""

from collections.abc import Callable
from typing import Any, Protocol


class RemoteAnswer(Protocol):
    """The future result of a call of a remote object."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the value; raise what the method raised."""


class RemoteMember(Protocol):
    """An object on another host: each method returns a `RemoteAnswer`."""

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]: ...
