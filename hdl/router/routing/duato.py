"""Minimal adaptive routing on a 2-D mesh with an escape VL (Duato 1993)."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module

from ...config import RouterConfig
from .dimension_order import DimensionOrderRouting
from .function import Arrival
from .grid import COORDINATE_BITS
from .pairs import check_pairs

__all__ = ["DuatoRouting"]


class DuatoRouting(DimensionOrderRouting):
    """The packet takes any port that leads nearer, on the adaptive VL, or the port of dimension order on the escape VL.

    VLs are pairs, 2c and 2c + 1, for the packets of class c: 2c is the escape, 2c + 1 adaptive. A packet may go back
    and forth between the two. It is delivered on VL 2c. A node may send on either.

    Packets cannot deadlock:

    - A packet that waits can take its escape as soon as that is free, since the choice is made anew in each cycle.
    - Escapes go x before y. Ways are minimal, so that a packet in between goes back to no escape before the one that
      it came from.
    - The adaptive VL of an output is given to a packet only when it is empty (`options_empty`). So no header stands
      there behind one of another packet.

    The number of VLs must be even, and less than 16.
    """

    changes_vl = True
    in_order = False
    adaptive = True
    options_empty = True

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no pairs, or too few ports."""
        super().check_config(config)
        check_pairs(config)

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """As dimension order, on the lower VL of the pair."""
        return super().decide(config, arrival)[0], arrival.vl & ~1

    @classmethod
    def decide_options(cls, config: RouterConfig, arrival: Arrival) -> tuple[tuple[int, ...], int]:
        """All ports that lead nearer, on the upper VL."""
        x, y = arrival.route % (1 << COORDINATE_BITS), arrival.route >> COORDINATE_BITS
        here, base = arrival.position, cls.first_port(config)
        if x > here["last_x"] or y > here["last_y"]:
            return (), arrival.vl | 1
        nearer = (x > here["x"], x < here["x"], y > here["y"], y < here["y"])
        return tuple(base + 1 + i for i, leads in enumerate(nearer) if leads), arrival.vl | 1

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """One pair: packets keep to theirs, and the ports do not depend on it."""
        return (0, 1)

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        here, base = self.position, self.first_port(self.config)
        with m.If((x <= here.last_x) & (y <= here.last_y)):
            m.d.comb += self.options[base + 1 : base + 5].eq(
                Cat(x > here.x, x < here.x, y > here.y, y < here.y)
            )
        m.d.comb += [self.out_vl[1:].eq(self.vl[1:]), self.option_vl.eq(self.vl | 1)]
        return m
