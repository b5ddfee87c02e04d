"""The set-up of queue pairs, for a part of the adapter that needs some of its fields."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .layout import QP_BITS
from .send_layout import QUEUE_PAIR_LAYOUT

__all__ = ["QueuePairTable"]


class QueuePairTable(wiring.Component):
    """The `fields` of `QUEUE_PAIR_LAYOUT` of `queue_pairs` queue pairs, and which of them are open.

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened with these fields, or closed.
    - `qp` (in, 8): a queue pair.
    - `open` (out): whether it is open, in the same cycle.
    - `row` (out), only with `fields`: those. A closed one keeps them.

    Latency: none to read, 1 cycle from `setup`. Throughput: a set-up and a look a cycle. Reset: no queue pair is open.
    """

    def __init__(self, queue_pairs: int, *, fields: tuple[str, ...]) -> None:
        self._queue_pairs = queue_pairs
        self._layout = data.StructLayout({name: QUEUE_PAIR_LAYOUT[name].shape for name in fields})
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "qp": In(QP_BITS),
                "open": Out(1),
            }
            | ({"row": Out(self._layout)} if fields else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        is_open = Signal(self._queue_pairs)
        exists = Signal()
        m.d.comb += [
            exists.eq(self.setup_valid & (self.setup.qp < self._queue_pairs)),
            self.open.eq((self.qp < self._queue_pairs) & is_open.bit_select(self.qp, 1)),
        ]
        if self._layout.size:
            m.submodules.rows = rows = memory.Memory(shape=self._layout, depth=self._queue_pairs, init=[])
            write, read = rows.write_port(), rows.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(self.setup.qp),
                write.en.eq(exists & self.setup.open),
                *(write.data[name].eq(self.setup[name]) for name, _ in self._layout),
                read.addr.eq(self.qp),
                self.row.eq(read.data),
            ]
        with m.If(exists):
            m.d.sync += is_open.bit_select(self.setup.qp, 1).eq(self.setup.open)
        return m
