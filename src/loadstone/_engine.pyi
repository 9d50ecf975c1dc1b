from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EngineUnusable",
    "InvalidPlan",
    "Prepared",
    "__version__",
    "count_samples",
    "join_samples",
    "prepare",
    "prepare_pair",
    "read_metrics",
    "read_samples",
    "serve",
    "write_metrics",
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
    connection: NDArray[np.uint32]
    status: NDArray[np.uint16]
    outcome: NDArray[np.uint8]
    action: NDArray[np.uint8]
    retried: NDArray[np.uint8]
    generator: NDArray[np.uint16]

class _Metrics(TypedDict):
    time_us: NDArray[np.int64]
    series: NDArray[np.uint32]
    value: NDArray[np.float64]
    names: list[tuple[str, str, str]]

class _Health(TypedDict):
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    waited: int
    wait_p99_ms: float
    wait_max_ms: float
    cpu_s: float
    wall_s: float
    runqueue_wait_s: float
    threads: int
    retries: int
    connections: int
    throttled: int
    throttled_s: float
    is_cut_short: bool
    without_port: int
    without_file: int
    lag_buckets: list[tuple[int, int]]
    wait_buckets: list[tuple[int, int]]
    interrupted: bool

@final
class Prepared:
    def start(self, at_ns: int | None) -> None: ...
    def start_with(self, other: Prepared) -> None: ...
    def counts(self) -> dict[str, int]: ...
    def latencies(self) -> list[int]: ...
    def stop_at(self, due_ns: int) -> None: ...
    def abandon(self) -> None: ...
    def live_samples(self) -> tuple[_Columns, NDArray[np.uint32]] | None: ...
    def finish(
        self, watch: Callable[..., bool] | None, tick_s: float
    ) -> tuple[_Columns | int, _Health]: ...

def prepare(plan: str, path: Path | None, *, live: bool, connect: bool) -> Prepared: ...
def prepare_pair(
    plan: str, path: Path | None, other_plan: str, other_path: Path | None
) -> tuple[Prepared, Prepared]: ...
def serve(
    settings: str, ready: Callable[[int], object], goes_on: Callable[[], bool], tick_s: float
) -> str: ...
def write_samples(path: Path, columns: Mapping[str, NDArray[Any]]) -> None: ...
def join_samples(path: Path) -> int: ...
def read_samples(path: Path, group: int | None = None) -> _Columns: ...
def write_metrics(path: Path, metrics: Mapping[str, object]) -> None: ...
def read_metrics(path: Path) -> _Metrics: ...
def count_samples(path: Path) -> list[int]: ...
