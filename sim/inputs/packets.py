"""Packets of a trace as arrays, and the part of a trace that a run plays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CLASSES",
    "LONGEST_CYCLES",
    "MOST_FLITS",
    "MOST_NODES",
    "MOST_PACKETS",
    "Numbers",
    "Packets",
    "excerpt",
]

Numbers: TypeAlias = NDArray[np.int64]
MOST_NODES = 1024
"""Nodes that a packet can name."""
MOST_FLITS = 1023
"""Longest packet, header included, flits."""
CLASSES = 4
"""Classes that a trace can have."""
LONGEST_CYCLES = 1 << 30
"""Cycles that a run can play: command times are told apart within 2^31 cycles."""

MOST_PACKETS = 10_000_000
"""Packets that a run can play; a message's tag, of 27 bits, tells them apart."""


@dataclass(frozen=True, kw_only=True)
class Packets:
    """The packets of a trace, in the order of their cycles. All arrays have an entry a packet.

    - `cycle`: the cycle in which it is to be sent.
    - `source`, `destination`: nodes.
    - `flits`: its length, header included.
    - `traffic_class`: its class.
    - `waits_for`: for each packet the positions of those that must have been delivered before; empty: no packet waits.
    - `unknown_dependencies`: dependencies on packets that are not among these.
    """

    cycle: Numbers
    source: Numbers
    destination: Numbers
    flits: Numbers
    traffic_class: Numbers
    waits_for: tuple[tuple[int, ...], ...] = ()
    unknown_dependencies: int = 0

    def __len__(self) -> int:
        return len(self.cycle)

    @property
    def nodes(self) -> int:
        """Nodes that a network needs for it."""
        return int(max(self.source.max(initial=0), self.destination.max(initial=0))) + 1

    @property
    def classes(self) -> int:
        """Classes, from 0 to the largest that there is."""
        return int(self.traffic_class.max(initial=0)) + 1

    @property
    def cycles(self) -> int:
        """Cycles from the beginning to the last packet's, both included."""
        return int(self.cycle[-1]) + 1 if len(self) else 0


def excerpt(packets: Packets, *, first_cycle: int = 0, cycles: int = 0, most: int = 0) -> Packets:
    """The packets from `first_cycle` on, of so many `cycles` (0: all), and at most so many (0: all), with cycles
    counted from `first_cycle`.

    Dependencies on packets that are left out are counted as unknown.
    """
    begin = int(np.searchsorted(packets.cycle, first_cycle))
    end = int(np.searchsorted(packets.cycle, first_cycle + cycles)) if cycles else len(packets)
    if most:
        end = min(end, begin + most)
    part = slice(begin, end)
    waits, lost = [], packets.unknown_dependencies
    for sooner in packets.waits_for[part]:
        kept = tuple(one - begin for one in sooner if one >= begin)
        lost += len(sooner) - len(kept)
        waits.append(kept)
    return replace(
        packets,
        cycle=packets.cycle[part] - first_cycle,
        source=packets.source[part],
        destination=packets.destination[part],
        flits=packets.flits[part],
        traffic_class=packets.traffic_class[part],
        waits_for=tuple(waits),
        unknown_dependencies=lost,
    )
