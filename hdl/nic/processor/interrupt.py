"""Interrupt status: event bits that hardware sets and software clears, and the line they raise."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["InterruptStatus"]


class InterruptStatus(wiring.Component):
    """A status register of `width` event bits with its mask.

    Source: nagar-thesis-2001 3.2.4.3, the LANai's interrupt status register.

    Members:

    - `set` (in, `width`): events of this cycle.
    - `clear` (in, `width`): bits to clear, where a one is written to the register. An event of the same cycle wins, so
      none is lost.
    - `mask` (in, `width`): enabled bits.
    - `status` (out, `width`): the register; a bit is up from the cycle after its event.
    - `event` (out): an enabled bit is up: `status & mask`, in the same cycle.

    Bits of `levels` are not stored: they follow `set` in the same cycle, and `clear` does nothing to them. Latency:
    1 cycle from `set` to `status`, none for `levels`. Throughput: every event of a cycle. Reset: no bit is up.
    """

    def __init__(self, *, width: int, levels: int = 0) -> None:
        self._levels = levels
        super().__init__(
            {"set": In(width), "clear": In(width), "mask": In(width), "status": Out(width), "event": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stored = Signal.like(self.status)
        m.d.sync += stored.eq(((stored & ~self.clear) | self.set) & ~self._levels)
        m.d.comb += [
            self.status.eq(stored | (self.set & self._levels)),
            self.event.eq((self.status & self.mask).any()),
        ]
        return m
