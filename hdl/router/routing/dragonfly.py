"""The shortest way through a dragonfly, with another VL from the link between groups on (Kim, Dally, Scott, Abts)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data

from ...config import RouterConfig
from ...topologies.dragonfly import Dragonfly
from .function import Arrival
from .shaped import ShapedRouting
from .topology import Topology

__all__ = ["DragonflyRouting"]

GROUP_BITS = 8
ROUTER_BITS = 5
PORT_BITS = 7
FIELDS = {"group": GROUP_BITS, "router": ROUTER_BITS, "node": ROUTER_BITS, "gateway": ROUTER_BITS}
"""The fields of a route, the lowest first, and their widths."""


class DragonflyRouting(ShapedRouting):
    """The packet goes to the router of its group that is linked to the destination's, to that group, to its router.

    The route has the destination's group (8 bits), its router there (5), and the node at that (5). Then comes the
    gateway (5): the router of the source's group that is linked to the destination's. What is not there has no port.
    Neither has a second link of a group, nor a second one between groups, which no right route has.

    VLs are pairs, 2c and 2c + 1. A packet is on VL 2c in the source's group. From the link between groups on it is on
    VL 2c + 1. It is delivered on VL 2c. A node may send on either VL of the pair.

    Packets cannot deadlock, as no packet goes two links of a kind. Links of a group on VL 2c come first, then those
    between groups, then links of a group on VL 2c + 1.
    """

    shape = Dragonfly
    pairs = True
    by_source = True
    changes_vl = True
    position_layout = data.StructLayout(
        {
            "group": unsigned(GROUP_BITS),
            "groups": unsigned(GROUP_BITS),
            "router": unsigned(ROUTER_BITS),
            "offset": unsigned(GROUP_BITS),
            "first_local": unsigned(PORT_BITS),
            "first_global": unsigned(PORT_BITS),
        }
    )

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """Those of all fields."""
        return sum(FIELDS.values())

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """Group and router, how many groups there are and how far the first of its links between groups leads, and the
        first ports of both kinds of links."""
        shape: Dragonfly = cls.shape_of(network)
        group, here = divmod(router, shape.a)
        base = cls.first_port(network.router)
        return {
            "group": group,
            "groups": shape.groups,
            "router": here,
            "offset": here * shape.h,
            "first_local": base + shape.p,
            "first_global": base + shape.first_global,
        }

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """The destination, and the way out of the group of `router`."""
        shape: Dragonfly = cls.shape_of(network)
        home, port = network.nodes[destination]
        group, there = divmod(home, shape.a)
        way = (group - router // shape.a - 1) % shape.groups
        values = {
            "group": group,
            "router": there,
            "node": port - cls.first_port(network.router),
            "gateway": way // shape.h if way < shape.groups - 1 else 0,
        }
        route = 0
        for name in reversed(FIELDS):
            route = route << FIELDS[name] | values[name]
        return route

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """To the node, within the group, or out of it."""
        here, route, to = arrival.position, arrival.route, {}
        for name, bits in FIELDS.items():
            to[name], route = route & (1 << bits) - 1, route >> bits
        lower, base = arrival.vl & ~1, cls.first_port(config)
        first_local, first_global = here["first_local"], here["first_global"]
        from_outside = arrival.in_port >= first_global
        from_inside = first_local <= arrival.in_port < first_global
        home = to["group"] == here["group"]
        next_router = to["router"] if home else to["gateway"]
        port: int | None
        if next_router != here["router"]:
            port = first_local + next_router - (next_router > here["router"])
            if port >= first_global or from_inside or (from_outside and not home):
                port = None
            vl = lower | from_outside
        elif home:
            port, vl = base + to["node"], lower
            if port >= first_local:
                port = None
        else:
            way = (to["group"] - here["group"] - 1) % here["groups"] - here["offset"]
            port, vl = first_global + way, lower | 1
            if way < 0 or from_outside or to["group"] >= here["groups"]:
                port = None
        return (port if port is not None and port < config.ports else None), vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        shape: Dragonfly = cls.shape_of(network)
        homes, ports = cls.homes_of(network)
        base, to = cls.first_port(network.router), homes[destinations]
        first_local, first_global = base + shape.p, base + shape.first_global
        group, here = routers // shape.a, routers % shape.a
        home = to // shape.a == group
        way = (to // shape.a - group - 1) % shape.groups
        following = np.where(home, to % shape.a, way // shape.h)
        moves = following != here
        outside = in_ports >= first_global
        inside = (in_ports >= first_local) & ~outside
        local = first_local + following - (following > here)
        port = np.where(home, ports[destinations], first_global + way - here * shape.h)
        wrong = np.where(moves, inside | (outside & ~home), ~home & outside)
        port = np.where(wrong, -1, np.where(moves, local, port))
        return port, (vls & ~1) | np.where(moves, outside, ~home)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        here, base = self.position, self.first_port(self.config)
        to, start = {}, 0
        for name, bits in FIELDS.items():
            to[name] = self.route[start : start + bits]
            start += bits
        home, outside, inside = Signal(), Signal(), Signal()
        following, far, way = Signal(ROUTER_BITS), Signal(GROUP_BITS + 1), Signal(GROUP_BITS + 1)
        port, valid, upper = Signal(GROUP_BITS + 2), Signal(), Signal()
        m.d.comb += [
            home.eq(to["group"] == here.group),
            # Constants, as the input port and the position are.
            outside.eq(here.first_global <= self.in_port),
            inside.eq((here.first_local <= self.in_port) & ~outside),
            following.eq(Mux(home, to["router"], to["gateway"])),
            # Groups from here on, counted round: 1 is the next one.
            far.eq(to["group"] - here.group + Mux(to["group"] < here.group, here.groups, 0)),
            way.eq(far - 1 - here.offset),
        ]
        with m.If(following != here.router):
            m.d.comb += [
                port.eq(here.first_local + following - (following > here.router)),
                valid.eq((port < here.first_global) & ~inside & ~(outside & ~home)),
                upper.eq(outside),
            ]
        with m.Elif(home):
            m.d.comb += [port.eq(base + to["node"]), valid.eq(port < here.first_local)]
        with m.Else():
            m.d.comb += [
                port.eq(here.first_global + way),
                valid.eq((far > here.offset) & ~outside & (to["group"] < here.groups)),
                upper.eq(1),
            ]
        with m.If(valid):
            m.d.comb += self.port.eq(Cat(port == number for number in range(self.config.ports)))
        m.d.comb += self.out_vl.eq(Cat(upper, self.vl[1:]))
        return m
