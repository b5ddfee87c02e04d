"""The shorter way round a ring, with a dateline (Dally and Seitz 1987)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data

from ...config import RouterConfig
from ...topologies.ring import Ring
from .function import NODE_BITS, Arrival
from .shaped import ShapedRouting
from .topology import Topology

__all__ = ["RingRouting"]


class RingRouting(ShapedRouting):
    """The packet goes the shorter way round; where both ways are as long, upwards.

    The route holds the destination's router, which has the node's number. A number beyond the ring has no port.

    VLs are pairs, 2c and 2c + 1. A packet enters on VL 2c. From the link on that closes the ring (the dateline, between
    the last router and 0) it is on VL 2c + 1. It is delivered on VL 2c. A node may send on either VL of the pair.

    Packets cannot deadlock: the links of VL 2c end at the dateline, and nobody goes round far enough to cross it twice.
    """

    shape = Ring
    pairs = True
    changes_vl = True
    position_layout = data.StructLayout({"at": unsigned(NODE_BITS), "last": unsigned(NODE_BITS)})

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """The router's number, and the largest one."""
        return {"at": router, "last": network.routers - 1}

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The shorter way round; the upper VL of the pair from the dateline on."""
        at, last, base = arrival.position["at"], arrival.position["last"], cls.first_port(config)
        first, to = arrival.vl & ~1, arrival.route
        if to > last:
            return None, first
        if to == at:
            return base, first
        up = 2 * ((to - at) % (last + 1)) <= last + 1
        crosses = at == (last if up else 0)
        crossed = arrival.vl & 1 and arrival.in_port in (base + 1, base + 2)
        return base + (1 if up else 2), first | (1 if crosses or crossed else 0)

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        base, count = cls.first_port(network.router), network.routers
        to = cls.homes_of(network)[0][destinations]
        up = 2 * ((to - routers) % count) <= count
        crosses = routers == np.where(up, count - 1, 0)
        crossed = (vls & 1 == 1) & ((in_ports == base + 1) | (in_ports == base + 2))
        away = to != routers
        port = base + np.where(away, np.where(up, 1, 2), 0)
        return port, (vls & ~1) | (away & (crosses | crossed))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at, last, base = self.position.at, self.position.last, self.first_port(self.config)
        to, up, distance = self.route, Signal(), Signal(NODE_BITS + 1)
        m.d.comb += [
            distance.eq(to - at + Mux(to < at, last + 1, 0)),
            up.eq(distance <= (last + 1) >> 1),
        ]
        same = to == at
        with m.If(to <= last):
            m.d.comb += self.port[base : base + 3].eq(Cat(same, ~same & up, ~same & ~up))
        upper = Mux(up, at == last, at == 0)
        # On the ring already: a constant of the input port.
        if self.in_port in (base + 1, base + 2):
            upper = upper | self.vl[0]
        m.d.comb += self.out_vl.eq(Cat(~same & (to <= last) & upper, self.vl[1:]))
        return m
