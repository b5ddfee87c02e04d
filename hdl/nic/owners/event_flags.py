"""A flag for each of many sources, and the next one of those that are up to serve."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError

__all__ = ["EventFlags"]


class EventFlags(wiring.Component):
    """`size` flags, acknowledged one at a time, in turn.

    Members:

    - `set` (in, `size`): flags to set; they are up from the next cycle on.
    - `clear` (in, `size`): flags to drop, whatever else happens.
    - `any` (out): a flag is up.
    - `index` (out): the first one that is up after the last acknowledged, in the order of numbers and around; 0 if none
      is up.
    - `acknowledge` (in): drop flag `index`, unless it is set in this cycle; nothing happens if none is up.

    A source that is set again and again is served once a turn and keeps no other from its turn. Latency: 1 cycle
    from `set` to `any` and `index`. Throughput: every event of a cycle, an acknowledgement a cycle. Reset: all are
    down.

    Raises ConfigError for a size below 1.
    """

    def __init__(self, *, size: int) -> None:
        if size < 1:
            raise ConfigError(f"EventFlags: size = {size}: at least 1")
        self.size = size
        super().__init__(
            {
                "set": In(size),
                "clear": In(size),
                "any": Out(1),
                "index": Out(range(size)),
                "acknowledge": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flags, last = Signal(self.size), Signal(range(self.size))
        later, first, first_later = Signal(self.size), Signal.like(last), Signal.like(last)
        m.d.comb += [
            self.any.eq(flags.any()),
            later.eq(flags & (~1 << last)),
            self.index.eq(Mux(later.any(), first_later, first)),
        ]
        for i in reversed(range(self.size)):
            with m.If(flags[i]):
                m.d.comb += first.eq(i)
            with m.If(later[i]):
                m.d.comb += first_later.eq(i)
        taken = Signal(self.size)
        with m.If(self.acknowledge & self.any):
            m.d.comb += taken.eq(1 << self.index)
            m.d.sync += last.eq(self.index)
        m.d.sync += flags.eq(((flags & ~taken) | self.set) & ~self.clear)
        return m
