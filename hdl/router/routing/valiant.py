"""Valiant's routing on a 2-D mesh (Valiant 1982): by way of a router that is chosen at random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from amaranth import Cat, Module, Mux, Signal, Value

from ...config import RouterConfig
from .function import NODE_BITS, RANDOM_BITS, Arrival, Ways
from .grid import COORDINATE_BITS, GridRouting
from .pairs import check_pairs
from .topology import Topology

__all__ = ["ValiantRouting"]

_HALF = RANDOM_BITS // 2
_MASK = (1 << COORDINATE_BITS) - 1


class ValiantRouting(GridRouting):
    """The packet goes in dimension order to a router chosen at random, and from there in dimension order on.

    Ports are those of `GridRouting`. The route has the destination's coordinates in its low 10 bits. The router where a
    packet enters writes those of the router on the way into the next 10 bits. Each router of the mesh is as likely, the
    first and the last one too.

    VLs are pairs, 2c and 2c + 1, for the packets of class c. A packet is on VL 2c until it has come to the router on
    its way, and on VL 2c + 1 from there. It is delivered on VL 2c. A node may send on either.

    Packets cannot deadlock, as each VL has dimension order, and no packet goes from VL 2c + 1 back to 2c. Ways have
    at most twice the links of the longest minimal one. `Network.path` gives the direct way, on VL 2c + 1.

    The number of VLs must be even, and less than 16.
    """

    changes_vl = True
    in_order = False

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no pairs, or too few ports."""
        super().check_config(config)
        check_pairs(config)

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """The destination, and the router on the way."""
        return 2 * NODE_BITS

    @classmethod
    def rewrites_at(cls, config: RouterConfig) -> Sequence[int]:
        """The node's port, where packets enter."""
        return (cls.first_port(config),)

    @classmethod
    def chosen(cls, config: RouterConfig, arrival: Arrival) -> int | None:
        """The coordinates of the router on the way of a packet that enters, as in the route; None for none."""
        x = (arrival.random % (1 << _HALF)) * (arrival.position["last_x"] + 1) >> _HALF
        y = (arrival.random >> _HALF) * (arrival.position["last_y"] + 1) >> _HALF
        return x | y << COORDINATE_BITS

    @classmethod
    def step(cls, config: RouterConfig, arrival: Arrival, via: int | None) -> tuple[int | None, int]:
        """Port and VL of a packet that is to come to `via` first; None if it has been there."""
        here, base = arrival.position, cls.first_port(config)
        to, first = arrival.route % (1 << NODE_BITS), arrival.vl & ~1
        if to & _MASK > here["last_x"] or to >> COORDINATE_BITS > here["last_y"]:
            return None, first
        detour = via is not None and via != (here["x"] | here["y"] << COORDINATE_BITS)
        port = base + cls.direction(via if via is not None and detour else to, arrival)
        return port, first if detour or port == base else first | 1

    @staticmethod
    def direction(to: int, arrival: Arrival) -> int:
        """The port towards coordinates in dimension order, from the node's on."""
        (x, y), here = (to & _MASK, to >> COORDINATE_BITS), arrival.position
        if x != here["x"]:
            return 1 if x > here["x"] else 2
        return 0 if y == here["y"] else 3 if y > here["y"] else 4

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """Towards the router on the way, on the lower VL, and then on the upper one."""
        if arrival.in_port == cls.first_port(config):
            return cls.step(config, arrival, cls.chosen(config, arrival))
        return cls.step(config, arrival, None if arrival.vl & 1 else arrival.route >> NODE_BITS)

    @classmethod
    def decide_route(cls, config: RouterConfig, arrival: Arrival) -> int:
        """The destination as it is, and the router on the way; where there is none, the destination again."""
        to, via = arrival.route % (1 << NODE_BITS), cls.chosen(config, arrival)
        return to | (to if via is None else via) << NODE_BITS

    @classmethod
    def next_port(
        cls, network: Topology, router: int, in_port: int, vl: int, destination: int
    ) -> tuple[int | None, int]:
        """The direct way."""
        route = cls.route_field(network, router, in_port, destination)
        return cls.step(network.router, Arrival(in_port, vl, route, cls.position_of(network, router)), None)

    @classmethod
    def ways(cls, network: Topology, router: int, in_port: int, vl: int, goal: int) -> Ways:
        """By way of all routers. A goal beyond the nodes is a router on the way, of packets to whatever node."""
        nodes, config = len(network.nodes), network.router
        position = cls.position_of(network, router)

        @cache
        def field(number: int) -> int:
            x, y = network.coordinates[number]
            return x | y << COORDINATE_BITS

        def go(node: int, via: int | None) -> tuple[int, int, int]:
            route = cls.route_field(network, router, in_port, node)
            port, out_vl = cls.step(
                config, Arrival(in_port, vl, route, position), None if via is None else field(via)
            )
            assert port is not None, "a node of the network"
            return port, out_vl, node if via is None or via == router else nodes + via

        if goal >= nodes:
            via = goal - nodes
            return Ways(tuple(go(node, via) for node in range(nodes if via == router else 1)), ())
        if in_port != cls.first_port(config):
            return Ways((go(goal, None),), ())
        return Ways((go(goal, None), *(go(goal, via) for via in range(network.routers))), ())

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """One pair: packets keep to theirs, and the ports do not depend on it."""
        return (0, 1)

    def choose(self, m: Module, random: Value) -> tuple[Value, Value]:
        """The hardware of `chosen`: the coordinates, and whether there are any."""
        here = self.position
        x = (random[:_HALF] * (here.last_x + 1))[_HALF : _HALF + COORDINATE_BITS]
        y = (random[_HALF:] * (here.last_y + 1))[_HALF : _HALF + COORDINATE_BITS]
        return Cat(x, y), Value.cast(1)

    def towards(self, to: Value) -> Value:
        """The hardware of `direction`, one-hot."""
        x, y, here = to[:COORDINATE_BITS], to[COORDINATE_BITS:NODE_BITS], self.position
        same = x == here.x
        return Cat(same & (y == here.y), x > here.x, x < here.x, same & (y > here.y), same & (y < here.y))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        here, base = self.position, self.first_port(self.config)
        to, via, wanted = self.route[:NODE_BITS], Signal(NODE_BITS), Signal()
        if self.in_port == base:
            chosen, any_chosen = self.choose(m, self.random)
            m.d.comb += [
                via.eq(chosen),
                wanted.eq(any_chosen),
                self.new_route.eq(Cat(to, Mux(wanted, via, to))),
            ]
        else:
            m.d.comb += [via.eq(self.route[NODE_BITS:]), wanted.eq(~self.vl[0])]
        detour, port = Signal(), Signal(5)
        m.d.comb += [
            detour.eq(wanted & (via != Cat(here.x, here.y))),
            port.eq(self.towards(Mux(detour, via, to))),
            self.out_vl.eq(Cat(~detour & ~port[0], self.vl[1:])),
        ]
        with m.If((to[:COORDINATE_BITS] <= here.last_x) & (to[COORDINATE_BITS:] <= here.last_y)):
            m.d.comb += self.port[base : base + 5].eq(port)
        return m
