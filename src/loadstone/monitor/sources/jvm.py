"""A Java virtual machine, by the metrics of Micrometer that Quarkus publishes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.sockets import StatusPage

HEAP = ("area", "heap")


@dataclass(frozen=True, slots=True)
class _Value:
    """One of our metrics: the sum of a published one's series, times a factor."""

    published: str
    metric: str
    unit: str = "1"
    factor: float = 1.0
    label: tuple[str, str] | None = None  # of the series that count; None: all


# Names of docs.micrometer.io/micrometer/reference, and of Agroal (quarkus.io/guides/datasource).
VALUES = (
    _Value("jvm_memory_used_bytes", "heap_used_bytes", "B", label=HEAP),
    _Value("jvm_memory_max_bytes", "heap_limit_bytes", "B", label=HEAP),
    _Value("jvm_gc_live_data_size_bytes", "heap_live_bytes", "B"),
    _Value("jvm_gc_pause_seconds_sum", "gc_pause_seconds_total", "s"),
    _Value("jvm_gc_pause_seconds_count", "gc_pauses_total"),
    _Value("jvm_gc_memory_allocated_bytes_total", "allocated_bytes_total", "B"),
    _Value("jvm_gc_overhead", "gc_cpu_share"),
    _Value("jvm_threads_live_threads", "threads"),
    _Value("process_cpu_time_ns_total", "cpu_seconds_total", "s", 1e-9),
    _Value("system_cpu_count", "cores_seen"),
    _Value("agroal_active_count", "pool_active"),
    _Value("agroal_available_count", "pool_idle"),
    _Value("agroal_awaiting_count", "pool_waiting"),
    _Value("agroal_acquire_count_total", "pool_acquired_total"),
    _Value("agroal_blocking_time_total_milliseconds", "pool_wait_seconds_total", "s", 1e-3),
)
_PUBLISHED = tuple(one.published for one in VALUES)


@dataclass(slots=True)
class JvmSource(StatusPage):
    """One virtual machine."""

    # A machine in a long collection of garbage answers late.
    is_remote: ClassVar[bool] = True
    default_path: ClassVar[str] = "/metrics"
    _has_answered: bool = field(default=False, init=False)

    def read(self) -> Iterator[Reading]:
        """Read heap, garbage collection, threads, CPU, and the pool of database connections."""
        try:
            found = tuple(readings(self.name, self.text()))
        except TimeoutError:
            self.close()
            if not self._has_answered:
                raise
            return  # it stands still; later readings tell for how long
        if not found:
            raise Unreadable("it publishes no metrics of a Java virtual machine")
        self._has_answered = True
        yield from found


def readings(source: str, text: str) -> Iterator[Reading]:
    """Return the readings of a page in Prometheus' format."""
    from prometheus_client.parser import text_string_to_metric_families

    # A page has more than a thousand series of which these are some twenty.
    wanted = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(_PUBLISHED))
    try:
        samples = [one for f in text_string_to_metric_families(wanted) for one in f.samples]
    except ValueError:
        raise Unreadable("its metrics are not in Prometheus' format") from None
    for value in VALUES:
        # A limit that does not exist is -1.
        counted = [
            one.value
            for one in samples
            if one.name == value.published
            and one.value >= 0
            and (value.label is None or one.labels.get(value.label[0]) == value.label[1])
        ]
        if counted:
            yield Reading(source, value.metric, value.factor * sum(counted), value.unit)
