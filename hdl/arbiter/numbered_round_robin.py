"""Round robin among very many, by number: a tree instead of a chain."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ROW", "NumberedRoundRobin"]

ROW = 16
"""Requesters in a row: the square root of 256, so that both steps of a choice are among 16."""


class NumberedRoundRobin(wiring.Component):
    """The turns of `RoundRobinArbiter`, told as a number.

    Algorithm: the lowest requester with a number above that of the last used turn; if there is none, the lowest of all.
    It is looked for in the row of the last one, behind it, then in the rows behind that, then from row 0 on. Memory:
    the number of the last one.

    Members:

    - `requests` (in, `size`): who asks in this cycle.
    - `any` (out): somebody asks.
    - `number` (out, `range(size)`): whose turn it is, in the same cycle; it means nothing if nobody asks.
    - `advance` (in): the turn of this cycle is used, if somebody asks.

    Longest wait: as with `RoundRobinArbiter`, at most `size` - 1 used turns of others.

    Latency: none from `requests` to `number`: three choices among 16 and two ORs of 16, where the subtractions of
    `RoundRobinArbiter` are chains of `size` bits. Throughput: a turn a cycle. Reset: number 0 is the first.
    """

    def __init__(self, *, size: int) -> None:
        self.size = size
        super().__init__(
            {
                "requests": In(size),
                "any": Out(1),
                "number": Out(range(max(2, size))),
                "advance": In(1),
            }
        )
        # The last one served; from the start on the highest of all.
        rows = -(-size // ROW)
        self._row_bits = (rows - 1).bit_length()
        self._served = Signal(4 + self._row_bits, init=(ROW << self._row_bits) - 1, name="served")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, served = self._row_bits, self._served
        requests = Signal(ROW << bits)
        place, row = served[:4], served[4:]
        mine, behind = Signal(ROW), Signal(ROW)
        filled, later = Signal(1 << bits), Signal(1 << bits)
        m.d.comb += [
            requests.eq(self.requests),
            mine.eq(requests.word_select(row, ROW)),
            behind.eq(mine & (~0 << 1 << place)),
            filled.eq(Cat(requests.word_select(i, ROW).any() for i in range(1 << bits))),
            later.eq(filled & (~0 << 1 << row)),
            self.any.eq(filled.any()),
        ]
        other = Signal(max(1, bits))
        among, number = Signal(ROW), Signal(4 + bits)
        m.d.comb += [
            other.eq(Mux(later.any(), _lowest(later), _lowest(filled))),
            among.eq(requests.word_select(other[:bits], ROW)),
            number.eq(Mux(behind.any(), Cat(_lowest(behind), row), Cat(_lowest(among), other[:bits]))),
            self.number.eq(number),
        ]
        with m.If(self.advance & self.any):
            m.d.sync += served.eq(number)
        return m


def _lowest(bits: Value) -> Value:
    """The number of the lowest bit that is set, of a power of two of them; it means nothing if none is."""
    half = len(bits) // 2
    if not half:
        return Value.cast(bits)[:0]
    low, high = bits[:half], bits[half:]
    return Cat(Mux(low.any(), _lowest(low), _lowest(high)), ~low.any())
