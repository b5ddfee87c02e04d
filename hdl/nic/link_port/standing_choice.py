"""Turns of virtual lanes whose choice stands in a register."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...vl_arbiter.round_robin import RoundRobinVlArbiter

__all__ = ["StandingChoice"]


class StandingChoice(wiring.Component):
    """Chooses a VL in turn; VL 15 of 16 goes first. The choice stands until it is `done`.

    Members:

    - `requests` (in, `vls`): VLs that may be chosen. Those of the cycle of `done` and of the next one are not looked
      at, so that the user has time to say what is left.
    - `chosen` (out, `vls`): one-hot, the VL, or 0; a register.
    - `done` (in): the choice is used up.

    A VL that is chosen need not ask any more in the cycle in which it is shown.

    Latency: 2 cycles from a request to `chosen`, 4 from `done` to the next choice. Throughput: a choice in 4 cycles and
    the time that it stands. No path leads from `requests` through the arbiter. Reset: none is chosen.
    """

    def __init__(self, *, vls: int) -> None:
        self._vls = vls
        super().__init__({"requests": In(vls), "chosen": Out(vls), "done": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = RoundRobinVlArbiter(vls=self._vls)
        asks, stands, pauses = Signal(self._vls), Signal(), Signal(2)
        free = Signal()
        m.d.comb += [
            free.eq(~stands & ~pauses.any()),
            arbiter.requests.eq(asks),
            arbiter.advance.eq(free),
        ]
        m.d.sync += [asks.eq(self.requests), pauses.eq(Mux(self.done, 0b11, pauses >> 1))]
        with m.If(self.done):
            m.d.sync += [stands.eq(0), self.chosen.eq(0)]
        with m.Elif(free):
            m.d.sync += [stands.eq(asks.any()), self.chosen.eq(arbiter.grant)]
        return m
