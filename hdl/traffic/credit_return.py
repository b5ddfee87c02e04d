"""A sink's credits: back at once, or held, or late at random."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..link import LinkSignature
from .config import TrafficConfig

__all__ = ["CreditReturn"]


class CreditReturn(wiring.Component):
    """Gives a credit for every flit of a link, in their order, at most one a cycle.

    Flits are taken at any time; only their credits wait. The sender cannot tell this from a buffer of `sink_flits` a VL
    that is not emptied.

    Members:

    - `rx` (in, `LinkSignature`): the link, which is watched and answered with credits.
    - `hold` (in): give no credit.
    - `stall` (in, 8): give no credit in so many of 256 cycles, at random.
    - `load` (in), `word` (in, 32): state of these random numbers.
    - `idle` (out): no credit is owed or on the link, and the random numbers stand still.

    Latency: the credit of a flit in cycle t is on the link in t + 2. Throughput: one a cycle. Reset: no credit is owed.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        super().__init__(
            {
                "rx": In(LinkSignature(config.link)),
                "hold": In(1),
                "stall": In(8),
                "load": In(1),
                "word": In(32),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self._config.link
        depth = 1 << (link.vls * self._config.sink_flits - 1).bit_length()
        m.submodules.owed = owed = memory.Memory(shape=link.vl_bits, depth=depth, init=[])
        write, read = owed.write_port(), owed.read_port(domain="comb")
        # One bit more than a row's number, so that a full ring differs from an empty one.
        first, last = Signal(range(2 * depth)), Signal(range(2 * depth))

        # xorshift32 (Marsaglia, J. Stat. Soft. 8(14), 2003).
        state = Signal(32, init=1)
        one, two = Signal(32), Signal(32)
        m.d.comb += [
            one.eq(state ^ (state << 13)[:32]),
            two.eq(one ^ one >> 17),
        ]
        stalled, give = Signal(), Signal()
        with m.If(self.load):
            m.d.sync += state.eq(Cat(self.word[:31] | Mux(self.word[:31] == 0, 1, 0), 0))
        with m.Elif(self.stall != 0):
            m.d.sync += state.eq(two ^ (two << 5)[:32])
        m.d.comb += [
            stalled.eq(self.hold | (state[24:] < self.stall)),
            write.en.eq(self.rx.valid),
            write.addr.eq(last),
            write.data.eq(self.rx.payload.vl),
            read.addr.eq(first),
            give.eq((first != last) & ~stalled),
        ]
        m.d.comb += self.idle.eq((first == last) & ~self.rx.credit_valid & (self.stall == 0))
        m.d.sync += self.rx.credit_valid.eq(give)
        with m.If(self.rx.valid):
            m.d.sync += last.eq(last + 1)
        with m.If(give):
            m.d.sync += [first.eq(first + 1), self.rx.credit_vl.eq(read.data)]
        return m
