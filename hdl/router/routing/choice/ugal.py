"""The choice at the source between the direct way and Valiant's, by the queues there (UGAL, Singh 2005)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value

from ....config import RouterConfig
from ..function import LOAD_BITS, Arrival
from .detour import DetourRouting
from .places import ButterflyDetour, CubeDetour, DragonflyDetour, MeshDetour, TorusDetour

__all__ = [
    "DragonflyUgalRouting",
    "FlattenedButterflyUgalRouting",
    "HypercubeUgalRouting",
    "LighterWay",
    "TorusUgalRouting",
    "UgalRouting",
]


class LighterWay(DetourRouting):
    """The direct way, or the one by a place that is drawn.

    The router where a packet enters chooses once. It compares the load of the output port (`PortLoads`) times the links
    of the way, for both ways. The direct way is taken if its product is not the larger one. It knows nothing of loads
    farther on. A direct packet goes on the half of its VLs that the lowest random bit says, 1 for the upper one.
    """

    uses_loads = True

    @classmethod
    def chosen(cls, config: RouterConfig, arrival: Arrival) -> int | None:
        """The place on the way; where the direct way has the lower product, None or the destination's place."""
        here, goal, base = cls.own(arrival.position), cls.goal(arrival), cls.first_port(config)
        if goal == here:
            return None
        via = cls.drawn(arrival)

        def load(route: int) -> int:
            start = arrival._replace(in_port=base, vl=0, route=route)
            port = cls.direct.decide(config, start)[0]
            return 0 if port is None else arrival.loads[port]

        longer = cls.links(arrival, here, via) + cls.links(arrival, via, goal)
        direct = load(cls.onward(arrival)) * cls.links(arrival, here, goal)
        if via != here and direct > load(cls.leading(arrival, via)) * longer:
            return via
        return None if arrival.random & 1 else goal

    def choose(
        self, m: Module, drawn: Value, home: Value, straight: Value, leg: Value
    ) -> tuple[Value, Value]:
        own, goal = self.own_value(), self.route[: self.via_bits]
        direct, other, detours = Signal(16), Signal(16), Signal()
        m.d.comb += [
            direct.eq(self._load(straight) * self.links_value(own, goal)),
            other.eq(self._load(leg) * (self.links_value(own, drawn) + self.links_value(drawn, goal))),
            detours.eq((direct > other) & (drawn != own)),
        ]
        return Mux(detours, drawn, goal), home | ~detours & self.random[0]

    def _load(self, ports: Value) -> Value:
        """The load of a port, one-hot."""
        load: Value = Signal(LOAD_BITS)
        for number, mine in enumerate(self.loads):
            load = load | Mux(ports[number], mine, 0)
        return load


class UgalRouting(LighterWay, MeshDetour):
    """On a mesh straight or by a router chosen at random, whichever has the lower product."""


class TorusUgalRouting(LighterWay, TorusDetour):
    """On a torus straight or by a router chosen at random, whichever has the lower product."""


class HypercubeUgalRouting(LighterWay, CubeDetour):
    """On a hypercube straight or by a router chosen at random, whichever has the lower product."""


class FlattenedButterflyUgalRouting(LighterWay, ButterflyDetour):
    """On a flattened butterfly straight or by a router chosen at random, whichever has the lower product."""


class DragonflyUgalRouting(LighterWay, DragonflyDetour):
    """On a dragonfly straight or by another group chosen at random, whichever has the lower product."""
