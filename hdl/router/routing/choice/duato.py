"""Minimal adaptive routing with an escape VL (Duato 1993), in topologies with several shortest ways."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value

from ....config import RouterConfig
from ..dimension_order import DimensionOrderRouting
from ..flattened_butterfly import DIGIT_BITS, DIMENSIONS, FlattenedButterflyRouting
from ..function import NODE_BITS, Arrival
from ..grid import COORDINATE_BITS
from ..hypercube import HypercubeRouting
from ..torus import TorusRouting
from .escape import EscapeRouting

__all__ = [
    "DatelineAhead",
    "DuatoRouting",
    "FlattenedButterflyDuatoRouting",
    "HypercubeDuatoRouting",
    "TorusDuatoRouting",
]

_MASK = (1 << COORDINATE_BITS) - 1


class DuatoRouting(EscapeRouting, DimensionOrderRouting):
    """On a mesh along x or y, the escape along x before y."""

    direct = DimensionOrderRouting

    @classmethod
    def nearer(cls, config: RouterConfig, arrival: Arrival) -> Sequence[int]:
        """The ports along x and y."""
        x, y = arrival.route & _MASK, arrival.route >> COORDINATE_BITS
        here, base = arrival.position, cls.first_port(config)
        if x > here["last_x"] or y > here["last_y"]:
            return ()
        leads = (x > here["x"], x < here["x"], y > here["y"], y < here["y"])
        return [base + 1 + number for number, one in enumerate(leads) if one]

    def nearer_ports(self, m: Module) -> Value:
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        here, ports = self.position, Cat(x > self.position.x, x < self.position.x)
        ports = Cat(ports, y > here.y, y < here.y)
        known = (x <= here.last_x) & (y <= here.last_y)
        return Mux(known, ports, 0) << self.first_port(self.config) + 1


class DatelineAhead(TorusRouting):
    """As `TorusRouting`, but the VL goes by the place alone: the lower one while the dateline is ahead.

    A packet that has no dateline ahead in its ring is on the upper VL. So the upper VL has no link that closes a ring,
    and the lower one has none that begins behind it. Neither has a cycle.
    """

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The upper VL of the pair where the way goes on without the dateline."""
        port, vl = super().decide(config, arrival)
        base, here, first = cls.first_port(config), arrival.position, vl & ~1
        if port is None or port == base:
            return port, first
        axis, down = divmod(port - base - 1, 2)
        to, at = arrival.route >> COORDINATE_BITS * axis & _MASK, here["xy"[axis]]
        return port, first | (to < at if down else to > at)

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        x, y, here = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:], self.position
        clear = Cat(x > here.x, x < here.x, y > here.y, y < here.y)
        base = self.first_port(self.config)
        m.d.comb += self.out_vl[0].eq((self.port[base + 1 : base + 5] & clear).any())
        return m


class TorusDuatoRouting(EscapeRouting, TorusRouting):
    """On a torus the shorter way round along x or y, either way where both are as long; the escape as `DatelineAhead`.

    A packet that went up in a ring, where both ways were as long, goes up there from then on, and so do its escapes.
    """

    direct = DatelineAhead

    @classmethod
    def nearer(cls, config: RouterConfig, arrival: Arrival) -> Sequence[int]:
        """The shorter way round, x before y."""
        here, base, found = arrival.position, cls.first_port(config), []
        for axis, name in enumerate("xy"):
            to, at, last = arrival.route >> COORDINATE_BITS * axis & _MASK, here[name], here[f"last_{name}"]
            if to > last:
                return ()
            up = (to - at) % (last + 1)
            if up:
                found += [base + 1 + 2 * axis] if 2 * up <= last + 1 else []
                found += [base + 2 + 2 * axis] if 2 * up >= last + 1 else []
        return found

    def nearer_ports(self, m: Module) -> Value:
        here, ports, known = self.position, [], []
        for axis, name in enumerate("xy"):
            to, at, last = self.route.word_select(axis, COORDINATE_BITS), here[name], here[f"last_{name}"]
            up = Signal(COORDINATE_BITS + 1, name=f"nearer_{name}")
            m.d.comb += up.eq(to - at + Mux(to < at, last + 1, 0))
            ports += [(up << 1 <= last + 1) & (up != 0), (up << 1 >= last + 1) & (up != 0)]
            known.append(to <= last)
        return Mux(known[0] & known[1], Cat(*ports), 0) << self.first_port(self.config) + 1


class HypercubeDuatoRouting(EscapeRouting, HypercubeRouting):
    """On a hypercube along any dimension that differs, the escape along the lowest."""

    direct = HypercubeRouting

    @classmethod
    def nearer(cls, config: RouterConfig, arrival: Arrival) -> Sequence[int]:
        """The ports of bits that differ."""
        if arrival.route > arrival.position["last"]:
            return ()
        differs, base = arrival.route ^ arrival.position["at"], cls.first_port(config)
        ports = range(base + 1, min(config.ports, base + 1 + NODE_BITS))
        return [port for port in ports if differs >> port - base - 1 & 1]

    def nearer_ports(self, m: Module) -> Value:
        differs = Mux(self.route <= self.position.last, self.route ^ self.position.at, 0)
        return differs[:NODE_BITS] << self.first_port(self.config) + 1


class FlattenedButterflyDuatoRouting(EscapeRouting, FlattenedButterflyRouting):
    """On a flattened butterfly along any dimension that differs, one link each; the escape along the first one."""

    direct = FlattenedButterflyRouting

    @classmethod
    def nearer(cls, config: RouterConfig, arrival: Arrival) -> Sequence[int]:
        """The port of each dimension in which the packet is not there yet."""
        here, found = arrival.position, []
        for d in DIMENSIONS:
            to, at = arrival.route >> DIGIT_BITS * d & (1 << DIGIT_BITS) - 1, here[f"at_{d}"]
            port = here[f"first_{d}"] + to - (to > at)
            if to != at and port < min(here[f"first_{d + 1}"], config.ports):
                found.append(port)
        return found

    def nearer_ports(self, m: Module) -> Value:
        here, found = self.position, Value.cast(0)
        for d in DIMENSIONS:
            to, at = self.route.word_select(d, DIGIT_BITS), here[f"at_{d}"]
            port = Signal(len(here[f"first_{d}"]) + 1, name=f"nearer_{d}")
            m.d.comb += port.eq(here[f"first_{d}"] + to - (to > at))
            known = (to != at) & (port < here[f"first_{d + 1}"])
            found = found | Cat(known & (port == number) for number in range(self.config.ports))
        return found
