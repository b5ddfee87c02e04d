"""The machines that hosts can be, and the price of everything in processor cycles, each number with its source.

A price that no document gives is marked as assumed. None is fitted to a result of an experiment on scheduling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

__all__ = ["ASSUMED", "MACHINES", "Machine", "Price"]

ASSUMED = "assumed"
"""Beginning of the source of a price that no document gives."""


@dataclass(frozen=True)
class Price:
    """A price of `cycles` of the processor, and its `source`: a document and place, or "assumed" and the reason."""

    cycles: int
    source: str

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ValueError."""
        if self.cycles < 0 or not self.source:
            raise ValueError(
                f"a price of {self.cycles} cycles with source {self.source!r}: at least 0, and a source"
            )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A host: its clock in Hz, what that is from, and the price of everything.

    - `cache_word`, `memory_word`: a word of four bytes that a copy finds in the cache, or in memory.
    - `card_read`, `card_write`: a word of the card, over the I/O bus, where no simulated bus stands behind it.
    - `system_call`: into the kernel and back.
    - `context_switch`: from one process to another.
    - `interrupt`: into a handler and back, without its work.
    - `timer`: a periodic function of the kernel, without its work.
    - `poll`: one look of a process that spins.
    """

    hz: int
    source: str
    cache_word: Price
    memory_word: Price
    card_read: Price
    card_write: Price
    system_call: Price
    context_switch: Price
    interrupt: Price
    timer: Price
    poll: Price

    def cycles(self, nanoseconds: int) -> int:
        """Processor cycles of a time, rounded up; 0 stays 0."""
        exact = Fraction(nanoseconds * self.hz, 1_000_000_000)
        return -(-exact.numerator // exact.denominator)

    def prices(self) -> Mapping[str, Price]:
        """Every price, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Price)}


MACHINES: Mapping[str, Machine] = {
    "snow": Machine(
        hz=100_000_000,
        source="nagar-thesis-2001 2.1: the 100 MHz host of the simulated cluster",
        cache_word=Price(1, "nagar-thesis-2001 table 2.1"),
        memory_word=Price(6, "nagar-thesis-2001 table 2.1"),
        card_read=Price(12, "nagar-thesis-2001 table 2.1, NI access"),
        card_write=Price(12, "nagar-thesis-2001 table 2.1, NI access"),
        system_call=Price(1_000, "assumed: 10 us"),
        context_switch=Price(2_000, "assumed: 20 us"),
        interrupt=Price(1_500, "assumed: 15 us"),
        timer=Price(500, "assumed: 5 us"),
        poll=Price(24, "assumed: a word of the card and ten instructions of a loop"),
    ),
    "ultra1": Machine(
        hz=167_000_000,
        source="nagar-thesis-2001 6.2.1: a 167 MHz UltraSPARC, SBUS of 32 bits at 25 MHz, Solaris 2.5.1",
        cache_word=Price(1, "assumed: as the machine of nagar-thesis-2001 table 2.1"),
        memory_word=Price(10, "assumed: 60 ns, as 6 cycles of nagar-thesis-2001 table 2.1"),
        card_read=Price(100, "assumed: 0.6 us, 15 cycles of the SBUS"),
        card_write=Price(40, "assumed: 0.24 us, 6 cycles of the SBUS"),
        system_call=Price(1_670, "assumed: 10 us, an ioctl of a driver"),
        context_switch=Price(3_340, "assumed: 20 us"),
        interrupt=Price(2_505, "assumed: 15 us"),
        timer=Price(835, "assumed: 5 us"),
        poll=Price(84, "assumed: 0.5 us, a look of the MPI layer at its queue"),
    ),
}
"""Every machine, by name."""
