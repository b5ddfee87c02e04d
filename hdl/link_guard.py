"""The watch on a link whose wires can fail: what tells an end that the link no longer keeps its rules.

With `LinkConfig.guard_cycles` both ends look at the link, and begin it anew by the handshake of `link_restart.py`. The
handshake ends every packet that was cut, empties the buffer and brings all credits home. An end that does not answer is
left alone, and its traffic is thrown away, until it does.

The transmitter begins the link anew if a VL has waited for a credit too long: credits were lost, or the other end is
gone. The receiver does in each of these cases:

- A flit comes for which there is no room, or whose VL does not exist: it was sent without a credit.
- A packet is longer than `guard_packet_flits`.
- A packet has begun, and nothing more of it comes though there is room: its tail was lost, or the other end is gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .config import LinkConfig

__all__ = ["GUARD_BITS", "ReceiveGuard", "add_up", "outlasts"]

GUARD_BITS = 16
"""Width of the counters of links begun anew and of flits refused."""


def outlasts(m: Module, levels: Value, cycles: int, name: str) -> Value:
    """Whether one of `levels` has been high for `cycles` to twice as many cycles in a row; high for one cycle.

    One counter serves all levels. At its end each level has a mark, which it loses in its first low cycle. Adds
    registers called `name` to `m`.
    """
    count, marks = (
        Signal(range(max(cycles, 2)), name=f"{name}_count"),
        Signal(len(levels), name=f"{name}_marks"),
    )
    ends = count == cycles - 1
    m.d.sync += [count.eq(Mux(ends, 0, count + 1)), marks.eq(Mux(ends, levels, marks & levels))]
    return ends & (marks & levels).any()


def add_up(m: Module, total: Signal, counts: Sequence[Value]) -> None:
    """Let `total` follow the sum of `counts`, which are narrower and go round: their steps are added."""
    steps = []
    for i, count in enumerate(counts):
        last = Signal(len(count), name=f"{total.name}_{i}")
        m.d.sync += last.eq(count)
        steps.append((count - last)[: len(count)])
    m.d.sync += total.eq(total + sum(steps))


class ReceiveGuard(wiring.Component):
    """Stands between the register on a link and the buffer behind it.

    Members:

    - `valid`, `vl`, `tail` (in): a flit stands in the register.
    - `full`, `non_empty` (in, a bit a VL): those of the buffer.
    - `take` (out): the flit goes into the buffer. Without this it does not: the flit is refused.
    - `breach` (out): the link does not keep its rules; high for a cycle or more.
    - `refused` (out, `GUARD_BITS`): flits refused since reset, modulo 2^16.

    Latency: none. Throughput: a flit a cycle. Reset: outside of any packet.
    """

    def __init__(self, config: LinkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "valid": In(1),
                "vl": In(config.vl_bits),
                "tail": In(1),
                "full": In(config.vls),
                "non_empty": In(config.vls),
                "take": Out(1),
                "breach": Out(1),
                "refused": Out(GUARD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, vls = self.config, self.config.vls
        room, refuses, here = Signal(), Signal(), Signal(vls)
        # A VL that does not exist has no bit, and so no room.
        m.d.comb += [
            here.eq(Mux(self.valid, 1 << self.vl, 0)),
            room.eq((here & ~self.full).any()),
            self.take.eq(room),
            refuses.eq(self.valid & ~room),
        ]
        with m.If(refuses):
            m.d.sync += self.refused.eq(self.refused + 1)

        # Flits of each VL's packet so far. The memory has no reset: `inside` says whose row counts.
        inside = Signal(vls)
        m.submodules.lengths = lengths = memory.Memory(
            shape=config.guard_packet_flits.bit_length(), depth=vls, init=[]
        )
        read, write = lengths.read_port(domain="comb"), lengths.write_port()
        before, over = Signal(read.data.shape()), Signal()
        m.d.comb += [
            read.addr.eq(self.vl),
            before.eq(Mux((inside & here).any(), read.data, 0)),
            over.eq(room & (before == config.guard_packet_flits)),
            write.addr.eq(self.vl),
            write.data.eq(Mux(over, before, before + 1)),
            write.en.eq(room),
        ]
        with m.If(room):
            m.d.sync += inside.eq(Mux(self.tail, inside & ~here, inside | here))
        stands = outlasts(m, inside & ~self.non_empty & ~here, config.guard_cycles, "stands")
        m.d.comb += self.breach.eq(Cat(refuses, over, stands).any())
        return m
