"""The base of minimal adaptive routing with an escape VL (Duato 1993)."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value

from ....config import RouterConfig
from ..function import Arrival
from .direct import DirectBased
from .groups import check_groups

__all__ = ["EscapeRouting"]


class EscapeRouting(DirectBased):
    """The packet takes any port that leads nearer, on an adaptive VL, or the direct function's on an escape VL.

    Ports and route are those of the direct function. VLs are groups for the packets of a class. Its lower half has the
    escapes: one VL, or the pair of a direct function that needs one. The upper half has as many adaptive VLs. Of a pair
    the one is taken that the parity of the route's bits says. A packet may go back and forth between escapes and
    adaptive VLs. It is delivered on the lowest VL of the group. A node may send on any.

    Packets cannot deadlock:

    - A packet that waits can take its escape as soon as that is free, since the choice is made anew in each cycle.
    - Escapes go by the direct function, which looks at the place alone and not at the VL that a packet came on. Ways
      are minimal, so that a packet in between goes back to no escape before the one that it came from.
    - The adaptive VL of an output is given to a packet only when it is empty (`options_empty`). So no header stands
      there behind one of another packet.

    A derived class gives `nearer`, all ports that lead nearer, and the hardware, `nearer_ports`: none for a destination
    that does not exist.
    """

    adaptive = True
    options_empty = True

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no groups, besides what the direct function needs."""
        check_groups(config, 2 * cls.lanes())
        super().check_config(config)

    @classmethod
    def nearer(cls, config: RouterConfig, arrival: Arrival) -> Sequence[int]:
        """The ports that lead nearer."""
        raise NotImplementedError(f"{cls.__name__} has no nearer()")

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The direct function's, on an escape VL."""
        lanes = cls.lanes()
        port, vl = cls.direct.decide(config, arrival._replace(vl=0))
        return port, arrival.vl - arrival.vl % (2 * lanes) + vl % lanes

    @classmethod
    def decide_options(cls, config: RouterConfig, arrival: Arrival) -> tuple[tuple[int, ...], int]:
        """All ports that lead nearer, on an adaptive VL."""
        lanes = cls.lanes()
        vl = arrival.vl - arrival.vl % (2 * lanes) + lanes
        return tuple(cls.nearer(config, arrival)), vl + arrival.route.bit_count() % lanes

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """One group: packets keep to theirs, and the ports do not depend on it."""
        return range(2 * cls.lanes())

    def nearer_ports(self, m: Module) -> Value:
        """The hardware of `nearer`, a bit a port."""
        raise NotImplementedError(f"{type(self).__name__} has no nearer_ports()")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.lanes()
        group = lanes.bit_length()
        port, lane = self.inside(m, "direct", in_port=self.in_port, route=self.route, lane=Value.cast(0))
        # The low bits of the two VLs, up to the one that parts escapes and adaptive VLs.
        escape, option = Signal(group), Signal(group)
        m.d.comb += [
            self.port.eq(port),
            self.options.eq(self.nearer_ports(m)),
            escape.eq(lane),
            option.eq(Cat(self.route.xor(), 1) if lanes == 2 else 1),
            self.out_vl.eq(Cat(escape, self.vl[group:])),
            self.option_vl.eq(Cat(option, self.vl[group:])),
        ]
        return m
