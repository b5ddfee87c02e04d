"""Credits of each VL of an output, counted, with flags for choices that are made ahead."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError

__all__ = ["PLENTY_CREDITS", "CreditCounters"]

PLENTY_CREDITS = 4
"""Credits with which a VL may send although the last three cycles of it are not counted yet."""


class CreditCounters(wiring.Component):
    """Counts the flits that may be sent on each VL into a receiver's buffer of `depth` flits a VL.

    Members (`vls` wide):

    - `some`, `plenty` (out): VLs with a credit at least, and with `PLENTY_CREDITS`; registers.
    - `spend`, `refund` (in): one-hot or 0, the VL of a flit that goes, and of a credit that comes back.

    Raises ConfigError for a depth below 2. Reset: every VL has `depth` credits.

    Latency: a credit that comes back shows in the next cycle. Throughput: one spent and one returned a cycle.
    """

    def __init__(self, *, vls: int, depth: int) -> None:
        if depth < 2:
            raise ConfigError(f"CreditCounters: depth = {depth}: at least 2")
        self._vls, self._depth = vls, depth
        everyone = (1 << vls) - 1
        super().__init__(
            {
                "some": Out(vls, init=everyone),
                "plenty": Out(vls, init=everyone if depth >= PLENTY_CREDITS else 0),
                "spend": In(vls),
                "refund": In(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for v in range(self._vls):
            left = Signal(range(self._depth + 1), init=self._depth, name=f"left_{v}")
            more, less = Signal(name=f"more_{v}"), Signal(name=f"less_{v}")
            m.d.comb += [
                more.eq(self.refund[v] & ~self.spend[v]),
                less.eq(self.spend[v] & ~self.refund[v]),
            ]
            # One up or one down, bit by bit: a carry chain would cost more.
            flips = Cat(
                Mux(more, left[:k].all(), less & ~left[:k].any()) if k else more | less
                for k in range(len(left))
            )
            m.d.sync += [
                left.eq(left ^ flips),
                self.some[v].eq((self.some[v] & ~(less & (left == 1))) | more),
                self.plenty[v].eq(
                    (self.plenty[v] & ~(less & (left == PLENTY_CREDITS)))
                    | (more & (left == PLENTY_CREDITS - 1))
                ),
            ]
        return m
