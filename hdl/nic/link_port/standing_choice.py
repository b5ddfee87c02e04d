"""Turns of virtual lanes whose choice stands in a register."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...vl_arbiter.base import CONTROL_VL, lowest_bit

__all__ = ["StandingChoice"]


class StandingChoice(wiring.Component):
    """Chooses a VL in turn; VL 15 of 16 goes first. The choice stands until it is `done`.

    The turns are those of `RoundRobinVlArbiter`, in three steps with registers between them: who asks, who of them is
    left for this turn, and the lowest of those. The next turn follows from the choice that stands.

    Members:

    - `requests` (in, `vls`): VLs that may be chosen. Those of the cycle of `done` and of the next one are not looked
      at, so that the user has time to say what is left.
    - `chosen` (out, `vls`): one-hot, the VL, or 0; a register.
    - `done` (in): the choice is used up. Only while there is one.

    A choice is about the requests of 3 cycles before it shows; later ones do not change it.

    Latency: 3 cycles from a request to `chosen`, 5 from `done` to the next choice. Throughput: a choice in 5 cycles and
    the time that it stands. Reset: none is chosen, and VL 0 is the first.
    """

    def __init__(self, *, vls: int) -> None:
        self._vls = vls
        super().__init__({"requests": In(vls), "chosen": Out(vls), "done": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls = self._vls
        data_vls = CONTROL_VL if vls > CONTROL_VL else vls
        asks, pool, above = Signal(vls), Signal(vls), Signal(data_vls)
        stands, pauses, picks, shows = Signal(), Signal(2), Signal(), Signal()
        free, later = Signal(), Signal(data_vls)
        data = asks[:data_vls]
        control: Value = asks[data_vls:]
        m.d.comb += [free.eq(~stands & ~pauses.any()), later.eq(data & above)]
        # The VLs that are left for this turn. Where the control VL asks, it alone.
        left = data & ~(Mux(later.any(), ~above, 0) | control.any().replicate(data_vls))
        m.d.sync += [asks.eq(self.requests), pauses.eq(Mux(self.done, 0b11, pauses >> 1)), picks.eq(0)]
        with m.If(free):
            m.d.sync += [pool.eq(Cat(left, control)), stands.eq(asks.any()), picks.eq(asks.any())]
        m.d.sync += shows.eq(picks)
        with m.If(picks):
            m.d.sync += self.chosen.eq(lowest_bit(pool))
        with m.If(self.done):
            m.d.sync += [stands.eq(0), self.chosen.eq(0)]
        served = self.chosen[:data_vls]
        with m.If(shows & served.any()):
            # -(2 * served) has all bits above the one that is served; after the last number, none.
            m.d.sync += above.eq(~(served << 1) + 1)
        return m
