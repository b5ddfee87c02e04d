"""Places on the way of packets, and ports that lead nearer, in each topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from ..dimension_order import DimensionOrderRouting
from ..dragonfly import FIELDS, GROUP_BITS, ROUTER_BITS, DragonflyRouting
from ..flattened_butterfly import DIGIT_BITS, DIMENSIONS, FlattenedButterflyRouting
from ..function import NODE_BITS, RANDOM_BITS, Arrival
from ..grid import COORDINATE_BITS
from ..hypercube import HypercubeRouting
from ..topology import Topology
from ..torus import TorusRouting
from .detour import DetourRouting

__all__ = ["ButterflyDetour", "CubeDetour", "DragonflyDetour", "MeshDetour", "TorusDetour"]

_HALF = RANDOM_BITS // 2
_THIRD = RANDOM_BITS // len(DIMENSIONS)
_GATEWAY = sum(FIELDS.values()) - FIELDS["gateway"]
"""The lowest bit of a dragonfly's gateway in a route."""


class MeshDetour(DetourRouting, DimensionOrderRouting):
    """By way of any router of a mesh; its place is its coordinates."""

    direct = DimensionOrderRouting
    via_bits = NODE_BITS

    @classmethod
    def own(cls, position: Mapping[str, int]) -> int:
        """Its coordinates, as in a route."""
        return position["x"] | position["y"] << COORDINATE_BITS

    @classmethod
    def drawn(cls, arrival: Arrival) -> int:
        """Each router is as likely."""
        x = (arrival.random % (1 << _HALF)) * (arrival.position["last_x"] + 1) >> _HALF
        y = (arrival.random >> _HALF) * (arrival.position["last_y"] + 1) >> _HALF
        return x | y << COORDINATE_BITS

    @classmethod
    def places(cls, network: Topology) -> Sequence[int]:
        """Those of all routers."""
        return _coordinates(*network.last)

    @classmethod
    def links(cls, arrival: Arrival, one: int, other: int) -> int:
        """The links along x and along y."""
        mask, total = (1 << COORDINATE_BITS) - 1, 0
        for at, name in ((0, "last_x"), (COORDINATE_BITS, "last_y")):
            apart = abs((one >> at & mask) - (other >> at & mask))
            total += min(apart, (arrival.position[name] + 1 - apart) & mask) if cls.wraps else apart
        return total

    def own_value(self) -> Value:
        return Cat(self.position.x, self.position.y)

    def draw(self, m: Module, random: Value) -> Value:
        here = self.position
        x = (random[:_HALF] * (here.last_x + 1))[_HALF : _HALF + COORDINATE_BITS]
        y = (random[_HALF:] * (here.last_y + 1))[_HALF : _HALF + COORDINATE_BITS]
        return Cat(x, y)

    def links_value(self, one: Value, other: Value) -> Value:
        total: Value = Value.cast(0)
        for at, last in ((0, self.position.last_x), (COORDINATE_BITS, self.position.last_y)):
            a, b = one[at : at + COORDINATE_BITS], other[at : at + COORDINATE_BITS]
            apart = Mux(a > b, a - b, b - a)[:COORDINATE_BITS]
            round_it = (last + 1 - apart)[:COORDINATE_BITS]
            total = total + (Mux(round_it < apart, round_it, apart) if self.wraps else apart)
        return total


class TorusDetour(MeshDetour, TorusRouting):
    """By way of any router of a torus."""

    direct = TorusRouting


class CubeDetour(DetourRouting, HypercubeRouting):
    """By way of any router of a hypercube; its place is its number."""

    direct = HypercubeRouting
    via_bits = NODE_BITS

    @classmethod
    def own(cls, position: Mapping[str, int]) -> int:
        """Its number."""
        return position["at"]

    @classmethod
    def drawn(cls, arrival: Arrival) -> int:
        """Each router is as likely."""
        return arrival.random >> RANDOM_BITS - NODE_BITS & arrival.position["last"]

    @classmethod
    def places(cls, network: Topology) -> Sequence[int]:
        """Those of all routers."""
        return range(network.routers)

    @classmethod
    def links(cls, arrival: Arrival, one: int, other: int) -> int:
        """Bits that differ."""
        return (one ^ other).bit_count()

    def own_value(self) -> Value:
        return self.position.at

    def draw(self, m: Module, random: Value) -> Value:
        return random[RANDOM_BITS - NODE_BITS :] & self.position.last

    def links_value(self, one: Value, other: Value) -> Value:
        return _ones(one ^ other)


class ButterflyDetour(DetourRouting, FlattenedButterflyRouting):
    """By way of any router of a flattened butterfly; its place is its coordinates.

    A coordinate is drawn from 8 bits. So coordinates are as likely but for a part in 256 divided by their number.
    """

    direct = FlattenedButterflyRouting
    via_bits = DIGIT_BITS * len(DIMENSIONS)

    @classmethod
    def own(cls, position: Mapping[str, int]) -> int:
        """Its coordinates, as in a route."""
        return sum(position[f"at_{d}"] << DIGIT_BITS * d for d in DIMENSIONS)

    @classmethod
    def drawn(cls, arrival: Arrival) -> int:
        """A coordinate for each dimension."""
        found, here = 0, arrival.position
        for d in DIMENSIONS:
            random = arrival.random >> _THIRD * d & (1 << _THIRD) - 1
            size = (here[f"first_{d + 1}"] - here[f"first_{d}"]) % (1 << DIGIT_BITS) + 1
            found |= (random * size >> _THIRD) % (1 << DIGIT_BITS) << DIGIT_BITS * d
        return found

    @classmethod
    def places(cls, network: Topology) -> Sequence[int]:
        """Those of all routers."""
        return _digits(cls.shape_of(network))

    @classmethod
    def links(cls, arrival: Arrival, one: int, other: int) -> int:
        """Coordinates that differ."""
        return sum((one ^ other) >> DIGIT_BITS * d & (1 << DIGIT_BITS) - 1 != 0 for d in DIMENSIONS)

    def own_value(self) -> Value:
        return Cat(self.position[f"at_{d}"] for d in DIMENSIONS)

    def draw(self, m: Module, random: Value) -> Value:
        here, digits = self.position, []
        for d in DIMENSIONS:
            size = (here[f"first_{d + 1}"] - here[f"first_{d}"])[:DIGIT_BITS] + 1
            digits.append((random.word_select(d, _THIRD) * size)[_THIRD : _THIRD + DIGIT_BITS])
        return Cat(*digits)

    def links_value(self, one: Value, other: Value) -> Value:
        return _ones(Cat((one ^ other).word_select(d, DIGIT_BITS).any() for d in DIMENSIONS))


RECIPROCAL_BITS = 14
"""1 / h in so many bits: enough for numbers of up to `GROUP_BITS` and h of up to 31."""


class DragonflyDetour(DetourRouting, DragonflyRouting):
    """By way of any other group of a dragonfly; its place is the group's number.

    Each router finds the gateway itself, of its own group to the one where a packet goes next: `reciprocal` is 1 / h
    in the router's position. The gateway in the route is not looked at. Packets within a group go straight. Two places
    are a link apart: only links between groups are counted.
    """

    direct = DragonflyRouting
    via_bits = GROUP_BITS
    position_layout = data.StructLayout(
        {name: field.shape for name, field in DragonflyRouting.position_layout}
        | {"h": unsigned(ROUTER_BITS), "reciprocal": unsigned(RECIPROCAL_BITS + 1)}
    )

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """As the direct function's, and h."""
        h = cls.shape_of(network).h
        return {**super().position_of(network, router), "h": h, "reciprocal": -(-(1 << RECIPROCAL_BITS) // h)}

    @classmethod
    def own(cls, position: Mapping[str, int]) -> int:
        """Its group."""
        return position["group"]

    @classmethod
    def drawn(cls, arrival: Arrival) -> int:
        """Each of the group's links to others is as likely."""
        here, low = arrival.position, arrival.random % (1 << _HALF)
        a = (here["first_global"] - here["first_local"]) % (1 << ROUTER_BITS) + 1
        way = (low * a >> _HALF) * here["h"] + ((arrival.random >> _HALF) * here["h"] >> _HALF)
        far = here["group"] + 1 + way
        return (far - here["groups"] if far >= here["groups"] else far) % (1 << GROUP_BITS)

    @classmethod
    def places(cls, network: Topology) -> Sequence[int]:
        """All groups."""
        return range(cls.shape_of(network).groups)

    @classmethod
    def links(cls, arrival: Arrival, one: int, other: int) -> int:
        """One between groups."""
        return int(one != other)

    @classmethod
    def _gateway(cls, position: Mapping[str, int], group: int) -> int:
        """The router that is linked to `group`."""
        far = group - position["group"] + (position["groups"] if group < position["group"] else 0)
        way = (far - 1) % (1 << GROUP_BITS)
        return (way * position["reciprocal"] >> RECIPROCAL_BITS) % (1 << ROUTER_BITS)

    @classmethod
    def leading(cls, arrival: Arrival, via: int) -> int:
        """To the group, by its gateway."""
        return via | cls._gateway(arrival.position, via) << _GATEWAY

    @classmethod
    def onward(cls, arrival: Arrival) -> int:
        """With the gateway of this router's group."""
        to = arrival.route % (1 << _GATEWAY)
        return to | cls._gateway(arrival.position, to % (1 << GROUP_BITS)) << _GATEWAY

    def own_value(self) -> Value:
        return self.position.group

    def draw(self, m: Module, random: Value) -> Value:
        here = self.position
        routers, far = Signal(ROUTER_BITS + 1), Signal(GROUP_BITS + 3)
        m.d.comb += [
            routers.eq((here.first_global - here.first_local)[:ROUTER_BITS] + 1),
            far.eq(
                here.group
                + 1
                + (random[:_HALF] * routers)[_HALF:] * here.h
                + (random[_HALF:] * here.h)[_HALF:]
            ),
        ]
        return Mux(far >= here.groups, far - here.groups, far)[:GROUP_BITS]

    def links_value(self, one: Value, other: Value) -> Value:
        return one != other

    def _gateway_value(self, m: Module, name: str, group: Value) -> Value:
        here, way = self.position, Signal(GROUP_BITS, name=f"way_{name}")
        m.d.comb += way.eq(group - here.group + Mux(group < here.group, here.groups, 0) - 1)
        return (way * here.reciprocal)[RECIPROCAL_BITS : RECIPROCAL_BITS + ROUTER_BITS]

    def leading_value(self, m: Module, via: Value) -> Value:
        rest = Const(0, _GATEWAY - GROUP_BITS)
        return Cat(via[:GROUP_BITS], rest, self._gateway_value(m, "leading", via))

    def onward_value(self, m: Module) -> Value:
        return Cat(self.route[:_GATEWAY], self._gateway_value(m, "onward", self.route[:GROUP_BITS]))


@lru_cache(maxsize=16)
def _coordinates(last_x: int, last_y: int) -> Sequence[int]:
    return tuple(x | y << COORDINATE_BITS for y in range(last_y + 1) for x in range(last_x + 1))


@lru_cache(maxsize=16)
def _digits(shape: Any) -> Sequence[int]:
    return tuple(
        sum(digit << DIGIT_BITS * d for d, digit in enumerate(shape.at(router)))
        for router in range(shape.router_count)
    )


def _ones(value: Value) -> Value:
    """How many bits are set."""
    total: Value = value[0]
    for bit in value[1:]:
        total = total + bit
    return total
