"""Declarations that the blocks of the traffic system share: set-up port, broadcast, address map, registers."""

from __future__ import annotations

from pathlib import Path

from amaranth import unsigned
from amaranth.lib import data, enum

from ..registers import load
from .config import TrafficConfig
from .packet import BORN_BITS

__all__ = [
    "ACCESS",
    "ALL_NODES",
    "CLASS",
    "CONTROL",
    "HISTOGRAM_BASE",
    "MEASUREMENT",
    "MEASUREMENT_NODE",
    "NODE",
    "READ_CYCLES",
    "REQUEST",
    "RESPONSE",
    "ROUTE_BASE",
    "SPACING_FRACTION",
    "STATISTICS",
    "TRACE_BASE",
    "Birth",
    "Choice",
    "Mode",
    "Phase",
    "Verdict",
    "VlChoice",
    "class_address",
    "histogram_address",
    "route_address",
    "statistics_address",
    "trace_address",
]

_HERE = Path(__file__).parent
CLASS = load(_HERE / "class.rdl")
STATISTICS = load(_HERE / "statistics.rdl")
NODE = load(_HERE / "node.rdl")
MEASUREMENT = load(_HERE / "measurement.rdl")

ADDRESS_BITS = 19
"""Width of an address in a node: a request is 64 bits wide, which a simulator handles as one number."""

REQUEST = data.StructLayout(
    {"valid": 1, "write": 1, "node": unsigned(11), "address": unsigned(ADDRESS_BITS), "data": 32}
)
"""An access of the set-up port, one a cycle, broadcast to all nodes and the measurement. It is always taken.

- `node`: a node's number, `MEASUREMENT_NODE`, or `ALL_NODES` to write to all nodes at once.
- `address`: in bytes, a multiple of 4.
"""
RESPONSE = data.StructLayout({"valid": 1, "data": 32})
"""The answer to a read, `READ_CYCLES` after it; zeros in every other cycle, so that answers can be ORed."""
READ_CYCLES = 3
MEASUREMENT_NODE = 1024
ALL_NODES = (1 << 11) - 1

ACCESS = data.StructLayout({"read": 1, "write": 1, "address": unsigned(ADDRESS_BITS), "data": 32})
"""A node's own access, one cycle after the request; its blocks' answers come in the cycle after that."""

CONTROL = data.StructLayout(
    {"now": 32, "window_start": 32, "window_cycles": 32, "run": 1, "clear": 1, "window": 1}
)
"""The measurement's signals to all nodes.

- `now`: cycles since reset.
- `run`: make packets.
- `clear`: clear the row (`now`'s low bits) of all statistics.
- `window`: this is a cycle of the window.
- `window_start`, `window_cycles`: a packet born in these cycles is tagged.
"""

CLASS_BASE, CLASS_BYTES = 0x01000, 0x100
STATISTICS_BASE = 0x02000
HISTOGRAM_BASE = 0x10000
ROUTE_BASE = 0x20000
TRACE_BASE = 0x40000

SPACING_FRACTION = 12
"""Fraction bits of SPACING and of a trace row's spacing."""


class Mode(enum.Enum, shape=3):  # type: ignore[call-arg]
    """The process by which a class makes packets (yum-2006 6.1).

    - OFF: it makes none.
    - RANDOM: with exponential gaps.
    - PERIODIC: at even gaps.
    - ON_OFF: at even gaps within exponential ON periods between exponential OFF periods.
    - TRACE: as the frames of a trace.
    """

    OFF = 0
    RANDOM = 1
    PERIODIC = 2
    ON_OFF = 3
    TRACE = 4


class Choice(enum.Enum, shape=2):  # type: ignore[call-arg]
    """Destination of a packet.

    - FIXED: the class's node.
    - UNIFORM: any other node.
    - HOT_SPOT: the class's node with the class's fraction, else any other.
    """

    FIXED = 0
    UNIFORM = 1
    HOT_SPOT = 2


class VlChoice(enum.Enum, shape=2):  # type: ignore[call-arg]
    """VL of a packet.

    - RANDOM: any VL of the class's.
    - IN_TURN: each VL of the class's in turn.
    - BY_DESTINATION: the VL in the destination's row of the route memory.
    """

    RANDOM = 0
    IN_TURN = 1
    BY_DESTINATION = 2


class Phase(enum.Enum, shape=3):  # type: ignore[call-arg]
    """Phase of the measurement."""

    IDLE = 0
    CLEAR = 1
    WARMUP = 2
    WINDOW = 3
    DRAIN = 4
    DONE = 5


class Verdict(enum.Enum, shape=2):  # type: ignore[call-arg]
    """Result of the measurement.

    - NONE: there is none yet.
    - COMPLETE: every tagged packet has arrived.
    - SATURATED: the limit came first.
    """

    NONE = 0
    COMPLETE = 1
    SATURATED = 2


class Birth(data.StructLayout):
    """A packet in its source's queue.

    Members: `born` (cycle, modulo 2^27), `destination`, `traffic_class`, `tagged`, `frame_end`, `flits`,
    `service_level`.
    """

    def __init__(self, config: TrafficConfig) -> None:
        super().__init__(
            {
                "born": unsigned(BORN_BITS),
                "destination": unsigned(config.node_bits),
                "traffic_class": unsigned(config.class_bits),
                "tagged": 1,
                "frame_end": 1,
                "flits": unsigned(config.length_bits),
                "service_level": unsigned(4),
            }
        )


def class_address(traffic_class: int, register: str) -> int:
    """Address of a register of a class (`class.rdl`)."""
    return CLASS_BASE + traffic_class * CLASS_BYTES + CLASS[register].offset


def statistics_address(traffic_class: int, register: str) -> int:
    """Address of a statistic of a class (`statistics.rdl`)."""
    return STATISTICS_BASE + traffic_class * CLASS_BYTES + STATISTICS[register].offset


def histogram_address(traffic_class: int, position: int, config: TrafficConfig) -> int:
    """Address of a bin's count (read only)."""
    return HISTOGRAM_BASE + 4 * (traffic_class << config.bin_bits | position)


def route_address(destination: int) -> int:
    """Address of a destination's row (write only): route bits 0-31.

    4 bytes on are route bits 32-47, with the VL of `VlChoice.BY_DESTINATION` in bits 16-19.
    """
    return ROUTE_BASE + 8 * destination


def trace_address(row: int) -> int:
    """Address of a frame (write only): its flits (24 bits).

    4 bytes on are the cycles between its packets, with 12 fraction bits: 0 for a burst, interval / packets for a
    regulated stream.
    """
    return TRACE_BASE + 8 * row
