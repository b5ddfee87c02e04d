"""Packets of mappers, behind the header of a PROBE: little endian, 16 bytes, and routes in some.

| bytes | field |
|---|---|
| 0 | kind (`Kind`) |
| 1 | number of routes; in a REPLY 1 if the routes were refused |
| 2, 3 | node of the sender |
| 4 to 7 | number of the question, its answer has the same |
| 8 to 13 | way back (ASK, ROUTES); what was left of the question's route (ANSWER) |
| 14, 15 | tag of a map: all of its routes are there (ROUTES without routes); whose routes the sender has (answers) |
| 16 to ... | routes of 8 bytes: node, route of 48 bits; all ones for none (ROUTES) |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["MOST_ROUTES", "NO_ROUTE", "NO_TAG", "SOME_TAG", "Kind", "MapPacket"]

MOST_ROUTES = 3
"""Routes of a packet: so it has at most 40 bytes, and `config.MAP_PACKET_FLITS`."""
NO_ROUTE = (1 << 48) - 1
"""The route that says that there is none."""


NO_TAG, SOME_TAG = 0, 0xFFFF
"""Tags of a host without routes, and of one with routes of a map that was not given out to the end."""


class Kind(IntEnum):
    """The kind of a mapper's packet."""

    ASK = 1
    """A probe: the host at the end answers."""
    ANSWER = 2
    ROUTES = 3
    """Routes that the host takes over, answered with REPLY."""
    RESET = 4
    """The host gives up all routes, answered with REPLY."""
    REPLY = 5


@dataclass(frozen=True, kw_only=True)
class MapPacket:
    """A packet of a mapper; the fields are those of the module's table."""

    kind: Kind
    node: int
    number: int
    route: int = 0
    tag: int = 0
    refused: bool = False
    routes: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """The bytes behind the header."""
        head = bytes([self.kind, len(self.routes) or self.refused])
        head += self.node.to_bytes(2, "little") + self.number.to_bytes(4, "little")
        head += self.route.to_bytes(6, "little") + self.tag.to_bytes(2, "little")
        return head + b"".join(
            node.to_bytes(2, "little") + route.to_bytes(6, "little") for node, route in self.routes
        )

    @classmethod
    def unpack(cls, data: bytes) -> MapPacket:
        """The packet in its bytes. Raises ValueError for what no `pack` gives."""
        if len(data) < 16:
            raise ValueError(f"a mapper's packet of {len(data)} bytes: at least 16")
        kind, count = Kind(data[0]), data[1]
        routes = count if kind is Kind.ROUTES else 0
        if routes > MOST_ROUTES or len(data) < 16 + 8 * routes:
            raise ValueError(f"a mapper's packet of {len(data)} bytes with {routes} routes")
        numbers = [int.from_bytes(data[a:b], "little") for a, b in ((2, 4), (4, 8), (8, 14), (14, 16))]
        pairs = tuple(
            (int.from_bytes(data[at : at + 2], "little"), int.from_bytes(data[at + 2 : at + 8], "little"))
            for at in range(16, 16 + 8 * routes, 8)
        )
        node, number, route, tag = numbers
        refused = kind is Kind.REPLY and count == 1
        return cls(kind=kind, node=node, number=number, route=route, tag=tag, refused=refused, routes=pairs)
