"""What a stretch of load cost the machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU over one trial; shares are of all cores together, 0..1."""

    wall_s: float
    cores: int
    machine_busy: float
    machine_steal: float  # taken by the hypervisor for others
    # User + system seconds of the service's processes; None where they are not on this machine.
    service_cpu_s: float | None
    generator_cpu_s: float

    @property
    def service_busy(self) -> float | None:
        """Share of all cores that the service used."""
        if self.service_cpu_s is None or self.wall_s <= 0:
            return None
        return self.service_cpu_s / (self.wall_s * self.cores)
