"""The base of minimal adaptive routing on meshes by turn models: a packet takes any port that leads nearer, but for
some turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Signal, Value

from ....config import RouterConfig
from ..function import Arrival
from ..grid import COORDINATE_BITS, GridRouting

__all__ = ["TurnRouting"]


class TurnRouting(GridRouting):
    """The packet goes nearer along x or y, where the derived class allows it. It keeps its VL.

    Ports and route are those of `GridRouting`. A destination outside the mesh has no port. The escape is the port along
    x where that is allowed, else along y. It is one of the options.

    A derived class gives `allowed_axes`, the twin, and `allow`, the hardware. Both must allow one way at least, if
    there is a way to go.

    Packets on a VL wait for channels of that VL alone, by turns of which no cycle can be made (Glass and Ni 1992). So
    every option may be waited for. Ways are minimal, so no packet goes round for ever.
    """

    adaptive = True
    changes_vl = True
    in_order = False

    @classmethod
    def allowed_axes(cls, x: int, y: int, arrival: Arrival, came: int) -> tuple[bool, bool]:
        """Whether a packet to column `x` and row `y` may go along x, and along y.

        Where it is in the right column or row the answer does not count. `came`: its input port from the node's on, so
        that 2 is the one from x - 1.
        """
        raise NotImplementedError(f"{cls.__name__} has no allowed_axes()")

    def allow(self, m: Module, x: Value, y: Value) -> tuple[Value, Value]:
        """The same in hardware."""
        raise NotImplementedError(f"{type(self).__name__} has no allow()")

    @classmethod
    def _ports(cls, config: RouterConfig, arrival: Arrival) -> list[int] | None:
        """The ports that are allowed, x first; None for a destination outside of the mesh."""
        x, y = arrival.route % (1 << COORDINATE_BITS), arrival.route >> COORDINATE_BITS
        here, base = arrival.position, cls.first_port(config)
        if x > here["last_x"] or y > here["last_y"]:
            return None
        along_x, along_y = cls.allowed_axes(x, y, arrival, arrival.in_port - base)
        ports = [base + (1 if x > here["x"] else 2)] if x != here["x"] and along_x else []
        return ports + ([base + (3 if y > here["y"] else 4)] if y != here["y"] and along_y else [])

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The first port that is allowed, x before y, or the node's."""
        ports = cls._ports(config, arrival)
        if ports is None:
            return None, arrival.vl
        return (ports or [cls.first_port(config)])[0], arrival.vl

    @classmethod
    def decide_options(cls, config: RouterConfig, arrival: Arrival) -> tuple[tuple[int, ...], int]:
        """All ports that are allowed; none at the destination."""
        return tuple(cls._ports(config, arrival) or ()), arrival.vl

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """One VL: packets keep theirs, and the port does not depend on it."""
        return (0,)

    def elaborate(self, platform: object) -> Any:
        m = Module()
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        here, base = self.position, self.first_port(self.config)
        along_x, along_y = Signal(), Signal()
        m.d.comb += [Cat(along_x, along_y).eq(Cat(*self.allow(m, x, y))), self.out_vl.eq(self.vl)]
        m.d.comb += self.option_vl.eq(self.vl)
        east, west, up, down = (Signal(name=name) for name in ("east", "west", "up", "down"))
        m.d.comb += [
            east.eq((x > here.x) & along_x),
            west.eq((x < here.x) & along_x),
            up.eq((y > here.y) & along_y),
            down.eq((y < here.y) & along_y),
        ]
        with m.If((x <= here.last_x) & (y <= here.last_y)):
            other = ~(east | west)
            there = (x == here.x) & (y == here.y)
            m.d.comb += [
                self.port[base : base + 5].eq(Cat(there, east, west, up & other, down & other)),
                self.options[base + 1 : base + 5].eq(Cat(east, west, up, down)),
            ]
        return m
