"""Control packets of admission: what is in their payload, and the packets on the wire.

A packet has kind PROBE, ACK, NACK or RELEASE, and 10 flits on links of 128 bits. On narrower links it has as many as
its fields need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from amaranth import unsigned
from amaranth.lib import data
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.hca.layout import TRAILER_LAYOUT
from lanikai.hdl.hca.trailer_crc import trailer_crc
from lanikai.hdl.packet import Header, Kind, crc32, packet_words

from .config import MAX_UNITS
from .ledger import Reason

__all__ = [
    "CONTROL_FLITS",
    "CONTROL_LAYOUT",
    "NO_ROUTER",
    "Connection",
    "Control",
    "payload_size",
    "unpack_control",
    "unpack_payload",
]

CONTROL_FLITS = 10
"""Flits of a control packet on a link of 128 bits (yum-2006 6.1)."""
NO_ROUTER = (1 << 12) - 1
"""The `router` that means: none."""

CONTROL_LAYOUT = data.StructLayout(
    {
        "kind": unsigned(4),
        "source": unsigned(10),
        "destination": unsigned(10),
        "flow": unsigned(12),
        "incarnation": unsigned(48),
        "attempt": unsigned(16),
        "units": unsigned(16),
        "peak": unsigned(16),
        "vl": unsigned(4),
        "in_port": unsigned(6),
        "router": unsigned(12),
        "about": unsigned(4),
        "reason": unsigned(3),
        "ask_host": unsigned(1),
    }
)
"""The payload; field docs are in `Control`."""
BYTES = -(-CONTROL_LAYOUT.size // 8)
_PLACES = {name: (CONTROL_LAYOUT[name].offset, CONTROL_LAYOUT[name].width) for name in CONTROL_LAYOUT.members}


class Connection(NamedTuple):
    """A connection's name: the nodes at its ends, and its flow in the headers of its data packets."""

    source: int
    destination: int
    flow: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """A control packet as plain numbers.

    - `kind`: PROBE, ACK, NACK or RELEASE.
    - `source`, `destination`, `flow`: the connection's name (`Connection`).
    - `incarnation`: cycle of the request, 48 bits. Of two uses of a name the later one has the larger number, also if
      the source has begun anew in between.
    - `attempt`: number of the probe or release among those of its incarnation, modulo 2^16. An answer has that of what
      it answers.
    - `units`: mean rate. `peak`: peak rate, in units.
    - `vl`: VL on which the connection's packets come in at the next router.
    - `in_port`: port by which this packet comes in there.
    - `router`: the router that refused, or `NO_ROUTER`.
    - `about`: the kind that is answered.
    - `reason`: why it is refused.
    - `ask_host`: a probe that the destination itself is to answer, not its router: a refresh.
    """

    kind: Kind
    source: int
    destination: int
    flow: int
    incarnation: int
    attempt: int = 0
    units: int = 0
    peak: int = 0
    vl: int = 0
    in_port: int = 0
    router: int = NO_ROUTER
    about: Kind = Kind.DATA
    reason: Reason = Reason.NONE
    ask_host: bool = False

    @property
    def connection(self) -> Connection:
        """The connection's name."""
        return Connection(self.source, self.destination, self.flow)

    def answer(self, kind: Kind, *, router: int = NO_ROUTER, reason: Reason = Reason.NONE) -> Control:
        """The ACK or NACK to this packet."""
        return replace(self, kind=kind, about=self.kind, router=router, reason=reason)

    def payload(self, size: int) -> bytes:
        """The payload, of `size` bytes. Raises ValueError, naming it, for a field that does not fit."""
        bits = 0
        for name, (offset, width) in _PLACES.items():
            value = int(getattr(self, name))
            if not 0 <= value < 1 << width:
                raise ValueError(f"control field {name} = {value}: 0 to {(1 << width) - 1}")
            bits |= value << offset
        return bits.to_bytes(size, "little")

    def flits(self, route: int, link: LinkConfig) -> list[int]:
        """The packet's flits: a message of one packet, to queue pair 0. Raises ValueError as `payload`."""
        size = payload_size(link)
        answers = self.kind in (Kind.ACK, Kind.NACK)
        header = Header(
            kind=self.kind,
            route=route,
            bandwidth=min(self.units, MAX_UNITS),
            destination=self.source if answers else self.destination,
            source=self.destination if answers else self.source,
            length=size,
        )
        words = packet_words(header, self.payload(size), link)
        if link.flit_bits == TRAILER_LAYOUT.size:
            trailer = sum(
                value << TRAILER_LAYOUT[name].offset
                for name, value in (("total_bytes", size), ("first", 1), ("last", 1))
            )
            words[-1] = trailer | _crc(header.pack(), self.payload(size), trailer, link)
        return words


def payload_size(link: LinkConfig) -> int:
    """Bytes of a control packet's payload: what 10 flits hold, or what the fields need if that is more."""
    return max((CONTROL_FLITS - link.header_flits - 1) * link.flit_bytes, BYTES)


def unpack_payload(payload: bytes) -> Control | None:
    """The control packet with this payload; None if it is short, or a field has a value that does not exist."""
    if len(payload) < BYTES:
        return None
    bits = int.from_bytes(payload[:BYTES], "little")
    values = {name: bits >> offset & (1 << width) - 1 for name, (offset, width) in _PLACES.items()}
    try:
        return Control(
            kind=Kind(values.pop("kind")),
            about=Kind(values.pop("about")),
            reason=Reason(values.pop("reason")),
            ask_host=bool(values.pop("ask_host")),
            **values,
        )
    except ValueError:
        return None


def unpack_control(flits: Sequence[int], link: LinkConfig) -> Control | None:
    """The control packet in these flits; None if it is cut, has a bad CRC, or is of another kind."""
    size = payload_size(link)
    if len(flits) != link.header_flits + -(-size // link.flit_bytes) + 1:
        return None
    width = link.flit_bits
    head = sum(flit << width * i for i, flit in enumerate(flits[: link.header_flits]))
    body = b"".join(flit.to_bytes(link.flit_bytes, "little") for flit in flits[link.header_flits : -1])
    if flits[-1] & 0xFFFFFFFF != _crc(head, body[:size], flits[-1], link):
        return None
    return unpack_payload(body)


def _crc(header: int, payload: bytes, last_flit: int, link: LinkConfig) -> int:
    """The CRC of a packet: on links of adapters it covers the trailer's other bits, too."""
    if link.flit_bits == TRAILER_LAYOUT.size:
        return trailer_crc(header, payload, last_flit, link)
    return crc32(header, payload, link)


assert {field.name for field in fields(Control)} == set(CONTROL_LAYOUT.members)
