"""The search for a simulation in which nothing moves any more, and the report of what is stuck where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import native_api

__all__ = ["WATCHDOG_BITS", "Probe", "Watchdog", "report", "summary"]

WATCHDOG_BITS = 40
"""Width of the limit, cycles: nine hours of a 33 MHz clock."""


class Watchdog(wiring.Component):
    """Counts the cycles in which nothing moved.

    Members:

    - `activity` (in).
    - `limit` (in, cycles; 0: off).
    - `fired` (out): `limit` cycles in a row were without activity. It rises in the cycle after the last of them, and
      stays set.
    - `skipped` (in): so many cycles more without activity are over with this one; not more than `left`.
    - `left` (out): cycles that may pass until `fired` rises (all ones if off).

    Reset: the count is 0. While it is off it counts nothing. So the count never wraps, as it ends at `limit`.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "activity": In(1),
                "limit": In(WATCHDOG_BITS),
                "fired": Out(1),
                "skipped": In(WATCHDOG_BITS),
                "left": Out(WATCHDOG_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        quiet, over = Signal(WATCHDOG_BITS), Signal()
        with m.If(self.activity | (self.limit == 0)):
            m.d.sync += quiet.eq(0)
        with m.Elif(~self.fired):
            m.d.sync += quiet.eq(quiet + 1 + self.skipped)
            with m.If(over):
                m.d.sync += self.fired.eq(1)
        m.d.comb += [
            # At least, as a limit may come down below what has been counted.
            over.eq(quiet + 1 + self.skipped >= self.limit),
            self.left.eq(
                Mux((self.limit == 0) | self.fired, ~0, Mux(quiet >= self.limit, 0, self.limit - quiet - 1))
            ),
        ]
        return m


@dataclass(frozen=True)
class Probe:
    """A variable that the watchdog shows.

    - `instance`: names joined by dots, below the top module.
    - `variable`: its name.
    - `bits`: a name for each bit from bit 0 on, or none for a number.
    """

    instance: str
    variable: str
    bits: tuple[str, ...] = ()

    def read(self, top: str) -> int | None:
        """Its value, or None if the build does not show it."""
        try:
            return native_api.signal(self.variable, f"{top}.{self.instance}").get()
        except KeyError:
            return None

    def text(self, value: int) -> str:
        """The value in words."""
        if not self.bits:
            return f"{value} ({value:#x})" if value > 9 else str(value)
        names = [name for bit, name in enumerate(self.bits) if value >> bit & 1]
        return ", ".join(names) or "none"


def report(top: str, probes: Iterable[Probe]) -> list[str]:
    """A line for each probe, grouped by instance."""
    lines: list[str] = []
    instance = None
    for probe in probes:
        value = probe.read(top)
        if value is None:
            continue
        if probe.instance != instance:
            instance = probe.instance
            lines.append(f"{instance}:")
        lines.append(f"  {probe.variable}: {probe.text(value)}")
    return lines


def summary(top: str, probes: Sequence[Probe], *, most: int = 4) -> str:
    """The probes that are not at rest, in a few words: those whose bits have names and are set."""
    stuck = []
    for probe in probes:
        value = probe.read(top) if probe.bits else None
        if value:
            stuck.append(f"{probe.instance} {probe.variable}: {probe.text(value)}")
    more = f" and {len(stuck) - most} more" if len(stuck) > most else ""
    return "; ".join(stuck[:most]) + more
