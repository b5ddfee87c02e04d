"""The base of routing by way of a router that is chosen where a packet enters (Valiant 1982)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from amaranth import Cat, Module, Mux, Signal, Value

from ....config import ConfigError, RouterConfig
from ..function import Arrival, Ways
from ..topology import Topology
from .direct import DirectBased
from .groups import check_groups

__all__ = ["DetourRouting"]

_WORD_BITS = 24
"""Bits of the route that the first flit of a 32-bit link holds."""


class DetourRouting(DirectBased):
    """The packet goes to a place on its way by the direct function, and from there by the direct function on.

    Ports are those of the direct function. Its route is the low bits of the route. The router where a packet enters
    writes the place above them.

    VLs are groups for the packets of a class: one VL for each half of the way, or a pair for each where the direct
    function needs pairs. A packet is on the lower half of the group until it has come to the place. It is delivered on
    the lowest VL of the group. A node may send on any.

    A packet that goes straight has no place on its way, and the upper half of the group. Or its place is the
    destination's, and it has the lower half. Its random number says which, so that both are used.

    Packets cannot deadlock: each half of the group has ways of the direct function alone, and no packet goes from the
    upper one back. `Network.path` gives the direct way, on the upper half.

    A derived class gives these, twin and hardware:

    - `via_bits`: width of a place.
    - `own`, `own_value`: the place of this router.
    - `drawn`, `draw`: a place, by a random number.
    - `places`: all places of a network, for the check.
    - `leading`, `leading_value`: the direct function's route to a place, or `onward` to the destination. Here a place
      is the low bits of that route.
    - `links`, `links_value`: links between two places, for functions that compare ways.

    `chosen` and `choose` say which place a packet goes by. Here it is the one that was drawn. Packets for the place
    where they enter go straight.
    """

    via_bits: ClassVar[int]

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no groups, and for narrow links that do not hold the place."""
        check_groups(config, 2 * cls.lanes())
        if config.link.flit_bits == 32 and cls.route_bits(config) > _WORD_BITS:
            raise ConfigError(
                f"LinkConfig.flit_bits = 32: {config.routing} routing needs 64 or 128: its route has "
                f"{cls.route_bits(config)} bits, all in the first flit"
            )
        super().check_config(config)

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """The destination, and the place on the way."""
        return cls.to_bits() + cls.via_bits

    @classmethod
    def rewrites_at(cls, config: RouterConfig) -> Sequence[int]:
        """The ports of nodes, where packets enter."""
        base = cls.first_port(config)
        return range(base, base + config.node_ports)

    @classmethod
    def own(cls, position: Mapping[str, int]) -> int:
        """The place of a router."""
        raise NotImplementedError(f"{cls.__name__} has no own()")

    @classmethod
    def drawn(cls, arrival: Arrival) -> int:
        """The place that a random number stands for."""
        raise NotImplementedError(f"{cls.__name__} has no drawn()")

    @classmethod
    def places(cls, network: Topology) -> Sequence[int]:
        """All places."""
        raise NotImplementedError(f"{cls.__name__} has no places()")

    @classmethod
    def links(cls, arrival: Arrival, one: int, other: int) -> int:
        """Links from place to place."""
        raise NotImplementedError(f"{cls.__name__} has no links()")

    @classmethod
    def leading(cls, arrival: Arrival, via: int) -> int:
        """The direct function's route to a place."""
        return via

    @classmethod
    def onward(cls, arrival: Arrival) -> int:
        """The direct function's route to the destination."""
        return arrival.route % (1 << cls.to_bits())

    @classmethod
    def goal(cls, arrival: Arrival) -> int:
        """The place of the destination."""
        return arrival.route % (1 << cls.via_bits)

    @classmethod
    def chosen(cls, config: RouterConfig, arrival: Arrival) -> int | None:
        """The place on the way of a packet that enters, or None if it goes straight."""
        if cls.goal(arrival) == cls.own(arrival.position):
            return None
        return cls.drawn(arrival)

    @classmethod
    def step(cls, config: RouterConfig, arrival: Arrival, via: int | None) -> tuple[int | None, int]:
        """Port and VL of a packet that is to come to place `via` first; None if it has been there or goes straight."""
        lanes, base = cls.lanes(), cls.first_port(config)
        entering = arrival.in_port in cls.rewrites_at(config)
        first = arrival.vl - arrival.vl % (2 * lanes)
        detour = via is not None and via != cls.own(arrival.position)
        route = cls.leading(arrival, via) if via is not None and detour else cls.onward(arrival)
        if not detour and (entering or via is not None):
            # The direct function begins anew.
            arrival = arrival._replace(in_port=base)
        lane = 0 if entering or arrival.in_port == base else arrival.vl % lanes
        port, vl = cls.direct.decide(config, arrival._replace(route=route, vl=lane))
        if port is None or base <= port < base + config.node_ports:
            return port, first
        return port, first + (0 if detour else lanes) + vl % lanes

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """To the place on the way, and then on."""
        if arrival.in_port in cls.rewrites_at(config):
            return cls.step(config, arrival, cls.chosen(config, arrival))
        upper = arrival.vl // cls.lanes() % 2
        return cls.step(config, arrival, None if upper else arrival.route >> cls.to_bits())

    @classmethod
    def decide_route(cls, config: RouterConfig, arrival: Arrival) -> int:
        """The destination as it is, and the place on the way; where there is none, the destination's."""
        via = cls.chosen(config, arrival)
        place = cls.goal(arrival) if via is None else via
        return arrival.route % (1 << cls.to_bits()) | place << cls.to_bits()

    @classmethod
    def next_port(
        cls, network: Topology, router: int, in_port: int, vl: int, destination: int
    ) -> tuple[int | None, int]:
        """The direct way."""
        route = cls.route_field(network, router, in_port, destination)
        return cls.step(network.router, Arrival(in_port, vl, route, cls.position_of(network, router)), None)

    @classmethod
    def ways(cls, network: Topology, router: int, in_port: int, vl: int, goal: int) -> Ways:
        """By way of all places. A goal beyond the nodes is a place on the way, of packets to whatever node.

        Ways by a place do not depend on the node. So they are those of packets to node 0 alone, where packets enter.
        """
        nodes, config = len(network.nodes), network.router
        position = cls.position_of(network, router)
        places = cls.places(network)

        def go(node: int, number: int | None) -> tuple[int, int, int]:
            via = None if number is None else places[number]
            route = cls.route_field(network, router, in_port, node)
            port, out_vl = cls.step(config, Arrival(in_port, vl, route, position), via)
            assert port is not None, "a node of the network"
            straight = number is None or via == cls.own(position)
            return port, out_vl, node if straight or number is None else nodes + number

        if goal >= nodes:
            there = places[goal - nodes] == cls.own(position)
            return Ways(tuple(go(node, goal - nodes) for node in range(nodes if there else 1)), ())
        if goal or in_port not in cls.rewrites_at(config):
            return Ways((go(goal, None),), ())
        return Ways((go(goal, None), *(go(goal, number) for number in range(len(places)))), ())

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """One group: packets keep to theirs, and the ports do not depend on it."""
        return range(2 * cls.lanes())

    def own_value(self) -> Value:
        """The hardware of `own`."""
        raise NotImplementedError(f"{type(self).__name__} has no own_value()")

    def draw(self, m: Module, random: Value) -> Value:
        """The hardware of `drawn`."""
        raise NotImplementedError(f"{type(self).__name__} has no draw()")

    def links_value(self, one: Value, other: Value) -> Value:
        """The hardware of `links`."""
        raise NotImplementedError(f"{type(self).__name__} has no links_value()")

    def leading_value(self, m: Module, via: Value) -> Value:
        """The hardware of `leading`."""
        return via

    def onward_value(self, m: Module) -> Value:
        """The hardware of `onward`."""
        return self.route[: self.to_bits()]

    def choose(
        self, m: Module, drawn: Value, home: Value, straight: Value, leg: Value
    ) -> tuple[Value, Value]:
        """The hardware of `chosen`: the place, and whether the packet goes straight on the upper half.

        `drawn` is the place that was drawn, and `home` says that the destination has the place of this router.
        `straight` and `leg` are the ports of the direct function to the destination, and to `drawn`.
        """
        return drawn, home

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, base = self.lanes(), self.first_port(self.config)
        to, own = self.route[: self.to_bits()], self.own_value()
        entering = self.in_port in self.rewrites_at(self.config)
        via, upper, detour = Signal(self.via_bits), Signal(), Signal()
        onward = Signal(self.to_bits())
        m.d.comb += [onward.eq(self.onward_value(m)), detour.eq(~upper & (via != own))]
        fresh = self.inside(m, "fresh", in_port=base, route=onward, lane=Value.cast(0))
        if entering:
            drawn, home_place = Signal(self.via_bits), to[: self.via_bits] == own
            m.d.comb += drawn.eq(self.draw(m, self.random))
            target = self.leading_value(m, drawn)
            leg = self.inside(m, "leg", in_port=self.in_port, route=target, lane=Value.cast(0))
            place, straight = self.choose(m, drawn, home_place, fresh[0], leg[0])
            m.d.comb += [via.eq(place), upper.eq(straight)]
            m.d.comb += self.new_route.eq(Cat(to, Mux(upper, to[: self.via_bits], via)))
            # The place of the destination lies on the direct way.
            by_leg: Value = detour & (via == drawn)
        else:
            m.d.comb += [via.eq(self.route[self.to_bits() :]), upper.eq(self.vl[lanes - 1])]
            target = Mux(upper, onward, self.leading_value(m, via))
            leg = self.inside(m, "leg", in_port=self.in_port, route=target, lane=self.vl[0])
            by_leg = upper | detour
        port = Signal(self.config.ports)
        m.d.comb += [port.eq(Mux(by_leg, leg[0], fresh[0])), self.port.eq(port)]
        halves = Cat(Mux(by_leg, leg[1], fresh[1]), ~detour) if lanes == 2 else ~detour
        home = port[base : base + self.config.node_ports].any()
        group = lanes.bit_length()
        m.d.comb += self.out_vl.eq(Cat(Mux(home, 0, halves)[:group], self.vl[group:]))
        return m
