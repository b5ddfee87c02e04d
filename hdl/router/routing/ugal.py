"""The choice at the source between the direct way and Valiant's, by the queues there (UGAL, Singh 2005)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value

from ...config import RouterConfig
from .function import NODE_BITS, Arrival
from .grid import COORDINATE_BITS
from .valiant import ValiantRouting

__all__ = ["UgalRouting"]

_MASK = (1 << COORDINATE_BITS) - 1


class UgalRouting(ValiantRouting):
    """As `ValiantRouting`, or straight on VL 2c + 1.

    The router where a packet enters chooses once. It compares the load of the output port (`PortLoads`) times the links
    of the way, for the direct way and for the one by a router chosen at random. The direct way is taken if its product
    is not the larger one. It knows nothing of loads farther on.
    """

    uses_loads = True

    @classmethod
    def chosen(cls, config: RouterConfig, arrival: Arrival) -> int | None:
        """The router on the way, or None where the direct way has the lower product."""
        via = super().chosen(config, arrival)
        assert via is not None
        to, base = arrival.route % (1 << NODE_BITS), cls.first_port(config)
        here = arrival.position["x"] | arrival.position["y"] << COORDINATE_BITS
        direct = arrival.loads[base + cls.direction(to, arrival)] * _links(here, to)
        longer = _links(here, via) + _links(via, to)
        return None if direct <= arrival.loads[base + cls.direction(via, arrival)] * longer else via

    def choose(self, m: Module, random: Value) -> tuple[Value, Value]:
        """The hardware of `chosen`."""
        via, _ = super().choose(m, random)
        to, place = self.route[:NODE_BITS], Value.cast(self.position)[:NODE_BITS]
        direct, other = Signal(16), Signal(16)
        m.d.comb += [
            direct.eq(self._load(to) * self._links(place, to)),
            other.eq(self._load(via) * (self._links(place, via) + self._links(via, to))),
        ]
        return via, direct > other

    def _load(self, to: Value) -> Value:
        """The load of the port towards coordinates."""
        base, ports = self.first_port(self.config), self.towards(to)
        load: Value = self.loads[base]
        for i in range(1, 5):
            load = Mux(ports[i], self.loads[base + i], load)
        return load

    @staticmethod
    def _links(one: Value, other: Value) -> Value:
        """The links of a minimal way."""
        total: Value = Value.cast(0)
        for at in (0, COORDINATE_BITS):
            a, b = one[at : at + COORDINATE_BITS], other[at : at + COORDINATE_BITS]
            total = total + Mux(a > b, a - b, b - a)[:COORDINATE_BITS]
        return total


def _links(one: int, other: int) -> int:
    return abs((one & _MASK) - (other & _MASK)) + abs((one >> COORDINATE_BITS) - (other >> COORDINATE_BITS))
