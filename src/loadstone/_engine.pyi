from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EngineUnusable",
    "InvalidPlan",
    "__version__",
    "count_samples",
    "read_samples",
    "run",
    "serve",
    "spill",
    "write_samples",
]
__version__: Final[str]

class InvalidPlan(ValueError): ...
class EngineUnusable(OSError): ...

class _Columns(TypedDict):
    due_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]
    done_ns: NDArray[np.int64]
    first_byte_us: NDArray[np.uint32]
    iteration: NDArray[np.uint32]
    connection: NDArray[np.uint16]
    status: NDArray[np.uint16]
    outcome: NDArray[np.uint8]
    action: NDArray[np.uint8]

class _Health(TypedDict):
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    cpu_s: float
    wall_s: float
    runqueue_wait_s: float
    threads: int
    retries: int
    connections: int
    interrupted: bool

def run(
    plan: str, watch: Callable[[dict[str, int]], bool] | None, tick_s: float
) -> tuple[_Columns, _Health]: ...
def serve(
    settings: str, ready: Callable[[int], object], goes_on: Callable[[], bool], tick_s: float
) -> str: ...
def spill(
    plan: str, path: Path, watch: Callable[..., bool] | None, tick_s: float, shown: bool
) -> tuple[int, _Health]: ...
def write_samples(path: Path, lent: Mapping[str, NDArray[Any]]) -> None: ...
def read_samples(path: Path, group: int | None = None) -> _Columns: ...
def count_samples(path: Path) -> list[int]: ...
