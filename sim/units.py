"""Units: the one place where cycles become seconds and bytes become rates.

Time is counted in cycles of the NIC clock and reported in cycles and in seconds of the profile's clock. MB is
10^6 bytes, KB of a message size is 1024 bytes, as in the documents that this project reproduces. A throughput
is payload bytes delivered over the measured window.
"""

from __future__ import annotations

__all__ = ["KB", "MB", "mb_per_s", "microseconds", "seconds"]

MB = 10**6
"""Bytes of a MB in a bandwidth."""
KB = 1024
"""Bytes of a KB in a message size."""


def seconds(cycles: float, clock_hz: int) -> float:
    """Seconds that `cycles` of a clock of `clock_hz` take."""
    return cycles / clock_hz


def microseconds(cycles: float, clock_hz: int) -> float:
    """Microseconds that `cycles` of a clock of `clock_hz` take."""
    return cycles * 1e6 / clock_hz


def mb_per_s(payload_bytes: float, cycles: int, clock_hz: int) -> float:
    """MB/s of `payload_bytes` delivered in `cycles`. Raises ValueError unless `cycles` is positive."""
    if cycles <= 0:
        raise ValueError(f"cycles = {cycles}: a bandwidth is measured over at least one cycle")
    return payload_bytes * clock_hz / cycles / MB
