"""A queue in block RAM whose head stands in a register."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from ...config import ConfigError

__all__ = ["RegisteredFifo"]


class RegisteredFifo(wiring.Component):
    """A first-in first-out queue of `depth` (2 or more) items of `width` bits.

    Members, named as in `amaranth.lib.fifo`:

    - `w_data` (in, `width`), `w_en` (in), `w_rdy` (out): an item in, if both `w_en` and `w_rdy` are up.
    - `r_data` (out, `width`), `r_rdy` (out), `r_en` (in): the oldest item. It is taken at the end of a cycle in which
      both `r_rdy` and `r_en` are up.
    - `level` (out, `range(depth + 1)`): items.

    The data of a block RAM comes late in the cycle (5.7 ns on an ECP5), so the head is copied out of it. `w_rdy` may be
    low for a cycle before `depth` items are there, while one moves to the head.

    Latency: 3 cycles from an item in to `r_rdy`. Throughput: an item in and out a cycle from a `depth` of 4 on. Reset:
    empty.

    Raises ConfigError for a depth below 2.
    """

    def __init__(self, *, width: int, depth: int) -> None:
        if depth < 2:
            raise ConfigError(f"RegisteredFifo: depth = {depth}: at least 2")
        self._width, self._depth = width, depth
        super().__init__(
            {
                "w_data": In(width),
                "w_en": In(1),
                "w_rdy": Out(1),
                "r_data": Out(width),
                "r_rdy": Out(1),
                "r_en": In(1),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFOBuffered(width=self._width, depth=self._depth - 1)
        moves = Signal()
        m.d.comb += [
            queue.w_data.eq(self.w_data),
            queue.w_en.eq(self.w_en),
            self.w_rdy.eq(queue.w_rdy),
            moves.eq(~self.r_rdy | self.r_en),
            queue.r_en.eq(moves),
            self.level.eq(queue.level + self.r_rdy),
        ]
        with m.If(moves):
            m.d.sync += [self.r_rdy.eq(queue.r_rdy), self.r_data.eq(queue.r_data)]
        return m
