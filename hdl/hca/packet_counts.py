"""The packets of each queue pair that are begun and not on the link."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from .layout import QP_BITS

__all__ = ["PacketCounts"]


class PacketCounts(wiring.Component):
    """Counts the packets of each queue pair in the buffers towards the link.

    Members:

    - `begin` (in), `begin_qp` (in, 8): a packet of this queue pair is begun.
    - `gone` (in), `gone_qp` (in, 8): the tail of a packet of this queue pair was on the link.
    - `look` (in, 8): a queue pair. `some` (out): it has packets that are begun and not gone, in the same cycle.

    Latency: from `begin` and `gone` to `some` 1 cycle. Throughput: one of each a cycle. Reset: there are none; for
    `queue_pairs` cycles no packet may be begun.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "begin": In(1),
                "begin_qp": In(QP_BITS),
                "gone": In(1),
                "gone_qp": In(QP_BITS),
                "look": In(QP_BITS),
                "some": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        pairs = config.queue_pairs
        # Two counts that only grow: they differ by the packets in between, which are fewer than 2^bits.
        bits = (config.link.vls * config.vl_packets).bit_length()
        swept = Signal(range(pairs + 1))
        sweeps = swept != pairs
        with m.If(sweeps):
            m.d.sync += swept.eq(swept + 1)
        seen = []
        for name, steps, qp in (("begun", self.begin, self.begin_qp), ("gone", self.gone, self.gone_qp)):
            m.submodules[f"rows_{name}"] = rows = memory.Memory(shape=bits, depth=pairs, init=[])
            write, here, shown = (
                rows.write_port(),
                rows.read_port(domain="comb"),
                rows.read_port(domain="comb"),
            )
            m.d.comb += [
                here.addr.eq(qp),
                shown.addr.eq(self.look),
                write.addr.eq(Mux(sweeps, swept, qp)),
                write.data.eq(Mux(sweeps, 0, here.data + 1)),
                write.en.eq(sweeps | steps),
            ]
            seen.append(shown.data)
        m.d.comb += self.some.eq(seen[0] != seen[1])
        return m
