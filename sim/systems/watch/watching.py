"""The choice of things to look at while a traffic network is measured (`traffic_watch.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.config import ConfigError

__all__ = ["MOST_LOGGED_PACKETS", "MOST_WINDOWS", "PACKET_COLUMNS", "Watching"]

MOST_LOGGED_PACKETS = 1_000_000
"""Most packets in the list of one measurement."""
MOST_WINDOWS = 10_000
"""Most windows of a time series, warm-up included."""
PACKET_COLUMNS = (
    *("source", "destination", "class", "flits", "vl", "born_cycle", "arrived_cycle", "latency_cycles"),
    "in_window",
)
"""Columns of the list of packets. Cycles count from the window's first; `vl` is that of the source."""


@dataclass(frozen=True, kw_only=True)
class Watching:
    """The things that are looked at.

    - `links`: flits of every router's links, and the routers' activity, in the window. The routers have
      `activity_counters`.
    - `series_cycles`: length of a window of the time series, cycles; 0: none. The system is `watched`.
    - `packets`: every packet that arrives, in a list. The system is `watched`.
    """

    links: bool = False
    series_cycles: int = 0
    packets: bool = False

    def check(self, *, warmup_cycles: int, window_cycles: int) -> None:
        """Raise ConfigError for windows of a time series that a measurement does not have."""
        cycles = self.series_cycles
        if cycles < 0:
            raise ConfigError(f"series_cycles = {cycles}: 0 for no time series, or the cycles of its windows")
        if cycles > window_cycles:
            raise ConfigError(
                f"series_cycles = {cycles}: at most the {window_cycles} cycles that are measured"
            )
        whole = warmup_cycles + window_cycles
        if cycles and whole > cycles * MOST_WINDOWS:
            raise ConfigError(
                f"series_cycles = {cycles}: at least {-(-whole // MOST_WINDOWS)}, as a time series has at most "
                f"{MOST_WINDOWS} windows"
            )
