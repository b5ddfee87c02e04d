"""Dimension order on a 2-D torus, with datelines (Dally and Seitz 1987)."""

from __future__ import annotations

from typing import Any

import numpy as np
from amaranth import Cat, Module, Mux, Signal, Value

from ...config import ConfigError, RouterConfig
from .function import Arrival
from .grid import COORDINATE_BITS, GridRouting
from .topology import Topology

__all__ = ["TorusRouting"]


class TorusRouting(GridRouting):
    """The packet goes the shorter way round along x, then along y; where both ways are as long, upwards.

    Ports and route are those of `GridRouting`. A destination outside the torus has no port.

    VLs are pairs, 2c and 2c + 1, for the packets of class c. A packet enters a ring on VL 2c. From the link on that
    closes the ring (the dateline, between the last coordinate and 0) it is on VL 2c + 1. It is delivered on VL 2c. A
    node may send on either VL of the pair.

    Packets cannot deadlock:

    - No packet goes round a ring far enough to cross the dateline twice, so VL 2c + 1 has no cycle.
    - The links of VL 2c end at the dateline, so VL 2c has no cycle.
    - No packet turns from y to x.

    The number of VLs must be even, and less than 16: the control VL has no second one.
    """

    changes_vl = True
    wraps = True
    shape = "torus"

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no pairs, or too few ports."""
        super().check_config(config)
        if config.link.vls % 2 or config.control_vl is not None:
            raise ConfigError(
                f"LinkConfig.vls = {config.link.vls}: {config.routing} routing needs an even number, 2 to 14: "
                "two for each class"
            )

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The shorter way round, x before y; the upper VL of the pair from the dateline on."""
        here, base = arrival.position, cls.first_port(config)
        first, upper = arrival.vl & ~1, arrival.vl & 1
        rings = (
            (arrival.route % (1 << COORDINATE_BITS), here["x"], here["last_x"]),
            (arrival.route >> COORDINATE_BITS, here["y"], here["last_y"]),
        )
        if any(to > last for to, _, last in rings):
            return None, first
        for axis, (to, at, last) in enumerate(rings):
            if to != at:
                up = 2 * ((to - at) % (last + 1)) <= last + 1
                crosses = at == (last if up else 0)
                ports = (base + 1 + 2 * axis, base + 2 + 2 * axis)
                crossed = upper and arrival.in_port in ports
                return ports[0 if up else 1], first | (1 if crosses or crossed else 0)
        return base, first

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        here, to = cls.coordinates_of(network, routers, destinations)
        base, first, upper = cls.first_port(network.router), vls & ~1, vls & 1
        port, vl = np.full_like(vls, base), first
        # y before x, as the later one counts.
        for axis in (1, 0):
            last = network.last[axis]
            up = 2 * ((to[axis] - here[axis]) % (last + 1)) <= last + 1
            crosses = here[axis] == np.where(up, last, 0)
            ports = (base + 1 + 2 * axis, base + 2 + 2 * axis)
            crossed = (upper == 1) & ((in_ports == ports[0]) | (in_ports == ports[1]))
            apart = to[axis] != here[axis]
            port = np.where(apart, np.where(up, *ports), port)
            vl = np.where(apart, first | (crosses | crossed), vl)
        return port, vl

    def elaborate(self, platform: object) -> Module:
        m = Module()
        here, base = self.position, self.first_port(self.config)
        ports: list[Value] = []
        over: list[Value] = []
        there: list[Value] = []
        for axis, name in enumerate("xy"):
            to = self.route[axis * COORDINATE_BITS : (axis + 1) * COORDINATE_BITS]
            at, last = here[name], here[f"last_{name}"]
            up, distance = Signal(name=f"up_{name}"), Signal(COORDINATE_BITS + 1, name=f"distance_{name}")
            m.d.comb += [
                distance.eq(to - at + Mux(to < at, last + 1, 0)),
                up.eq(distance <= (last + 1) >> 1),
            ]
            same = to == at
            # On this ring already, whichever way: a constant of the input port.
            on_ring = self.in_port - base - 1 in (2 * axis, 2 * axis + 1)
            crosses = Mux(up, at == last, at == 0)
            ports += [~same & up, ~same & ~up]
            over.append(crosses | self.vl[0] if on_ring else crosses)
            there.append(same)
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        with m.If((x <= here.last_x) & (y <= here.last_y)):
            m.d.comb += self.port[base : base + 5].eq(
                Cat(there[0] & there[1], ports[0], ports[1], there[0] & ports[2], there[0] & ports[3])
            )
        upper = Mux(there[0], ~there[1] & over[1], over[0])
        m.d.comb += self.out_vl.eq(Cat(upper, self.vl[1:]))
        return m
