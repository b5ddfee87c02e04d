"""The packet: header, payload, CRC. Each field is declared once, here.

On the wire a packet is `header_flits` of header, the payload in whole flits (zero-padded), and one last flit
whose low 32 bits are the CRC-32. First bytes travel in the low bits (little endian).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from enum import IntEnum

from amaranth import unsigned
from amaranth.lib import data

from .config import HEADER_BITS, ROUTE_BITS, LinkConfig

__all__ = ["HEADER_LAYOUT", "Header", "Kind", "crc32", "packet_flits", "packet_words"]


class Kind(IntEnum):
    """The purpose of a packet (4 bits)."""

    DATA = 0
    ACK = 1
    NACK = 2
    PROBE = 3
    REJECT = 4
    RELEASE = 5


HEADER_LAYOUT = data.StructLayout(
    {
        # The first 32 bits are what a router of a narrow link sees: everything it needs stands there.
        "kind": unsigned(4),
        "service_level": unsigned(4),
        # A source route has the next hop's output port in the low bits; each router shifts it out. A network that
        # routes by destination finds the destination's node number here instead.
        "route": unsigned(ROUTE_BITS),
        "bandwidth": unsigned(8),
        "destination": unsigned(10),
        "source": unsigned(10),
        # The flow or queue pair. GM packs sub-ports in it, in bits: source port 5, destination port 5, priority 1,
        # last 1. Work queues have the receiver's channel here.
        "flow": unsigned(12),
        "length": unsigned(16),
        # The order in a flow. Work queues have the sender's channel (10 bits) and the number of the descriptor in its
        # queue (6 bits) here.
        "sequence": unsigned(16),
    }
)
"""The 128-bit header; field docs are in `Header`."""
assert HEADER_LAYOUT.size == HEADER_BITS


@dataclass(frozen=True, kw_only=True)
class Header:
    """The header as plain numbers, for firmware and tests.

    - `kind`: a `Kind`.
    - `service_level`: 0 to 15.
    - `route`: 48 bits.
    - `bandwidth`: 8 bits, in units of the probe's sender.
    - `destination`, `source`: node numbers.
    - `flow`: 12 bits.
    - `length`: payload bytes.
    - `sequence`: 16 bits.
    """

    kind: Kind = Kind.DATA
    service_level: int = 0
    route: int = 0
    bandwidth: int = 0
    destination: int = 0
    source: int = 0
    flow: int = 0
    length: int = 0
    sequence: int = 0

    def pack(self) -> int:
        """The header as a 128-bit integer. Raises ValueError naming a field that does not fit."""
        bits = 0
        for field in fields(self):
            place = HEADER_LAYOUT[field.name]
            value = int(getattr(self, field.name))
            if not 0 <= value < 1 << place.width:
                raise ValueError(f"header field {field.name} = {value}: 0 to {(1 << place.width) - 1}")
            bits |= value << place.offset
        return bits

    @classmethod
    def unpack(cls, bits: int) -> Header:
        """The header in a 128-bit integer. Raises ValueError for an unknown kind."""
        values = {}
        for field in fields(cls):
            place = HEADER_LAYOUT[field.name]
            values[field.name] = bits >> place.offset & (1 << place.width) - 1
        return cls(kind=Kind(values.pop("kind")), **values)


def packet_flits(payload_bytes: int, config: LinkConfig) -> int:
    """Flits of a packet on the wire: header, payload in whole flits, CRC."""
    return config.header_flits + -(-payload_bytes // config.flit_bytes) + 1


def crc32(header: int, payload: bytes, config: LinkConfig) -> int:
    """CRC-32 (IEEE 802.3, as zlib's) of a packet.

    It covers the header, with its route taken as zero since routers consume it. Then it covers the payload, padded
    with zero bytes to whole flits.
    """
    route = HEADER_LAYOUT["route"]
    header &= ~((1 << route.width) - 1 << route.offset)
    padding = bytes(-len(payload) % config.flit_bytes)
    return zlib.crc32(header.to_bytes(HEADER_BITS // 8, "little") + payload + padding)


def packet_words(header: Header, payload: bytes, config: LinkConfig) -> list[int]:
    """The flits' data words of a whole packet, in order, CRC last.

    Raises ValueError if `header.length` is not the payload's.
    """
    if header.length != len(payload):
        raise ValueError(f"header.length = {header.length}: the payload has {len(payload)} bytes")
    head = header.pack()
    body = head.to_bytes(HEADER_BITS // 8, "little") + payload + bytes(-len(payload) % config.flit_bytes)
    step = config.flit_bytes
    words = [int.from_bytes(body[i : i + step], "little") for i in range(0, len(body), step)]
    return [*words, crc32(head, payload, config)]
