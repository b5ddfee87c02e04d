"""Fetches work queue elements from the rings in host memory, ahead of their turn."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from .layout import QP_BITS, SEND_WQE_BYTES, SEND_WQE_LAYOUT
from .queue_pair_table import QueuePairTable
from .send_layout import END_LAYOUT, QUEUE_PAIR_LAYOUT, QUEUED_LAYOUT

__all__ = ["AHEAD", "WORK_LAYOUT", "WorkFetch"]

AHEAD = 2
"""Elements of a class that are fetched ahead of their turn, those on their way included."""

WORK_LAYOUT = data.StructLayout({"element": SEND_WQE_LAYOUT, "qp": QP_BITS, "failed": 1})
"""A work queue element of queue pair `qp`, or that the bus could not read it (`failed`)."""


class WorkFetch(wiring.Component):
    """Takes messages from the class queues and holds their work queue elements, `AHEAD` of each class.

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `waiting` (in), `select` (out), `head` (in, `QUEUED_LAYOUT`), `take` (out): as in `ClassQueues`.
    - `held` (out, a bit a class): classes with an element.
    - `look` (in): a class. `work` (out, `WORK_LAYOUT`): its oldest element, in the same cycle. `done` (in): takes it.
    - `end` (out, stream of `END_LAYOUT`): a message that is dropped, as its queue pair was closed before the fetch.
    - `axi` (out, `Axi4Signature` of 128 bits): reads of two beats, ID 0, a class has at most `AHEAD` under way.
    - `quiet` (out): nothing is fetched or waits to be, and no register changes but by an input. Elements may be held.

    The class with the lowest number that has a message and room goes first.

    Latency: from `waiting` to the address on the bus 3 cycles; from the second beat to `held` 1. Throughput: an element
    every 3 cycles, as far as the bus gives them. Reset: nothing is held.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        select = range(max(2, config.classes))
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "waiting": In(config.classes),
                "select": Out(select),
                "head": In(QUEUED_LAYOUT),
                "take": Out(1),
                "held": Out(config.classes),
                "look": In(select),
                "work": Out(WORK_LAYOUT),
                "done": In(1),
                "end": Out(stream.Signature(END_LAYOUT)),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        classes, axi, head = self.config.classes, self.axi, self.head
        class_bits = max(1, (classes - 1).bit_length())
        m.submodules.table = table = QueuePairTable(
            self.config.queue_pairs, fields=("send_base", "send_log2")
        )
        m.d.comb += [
            table.setup_valid.eq(self.setup_valid),
            table.setup.eq(self.setup),
            table.qp.eq(head.qp),
        ]
        # Places of a class: those taken by elements on their way or held, and those held.
        places = range(AHEAD + 1)
        taken = Array(Signal(places, name=f"taken_{i}") for i in range(classes))
        held = Array(Signal(places, name=f"held_{i}") for i in range(classes))
        chosen, wants = Signal(class_bits), Signal(classes)
        m.d.comb += [
            wants.eq(self.waiting & Cat(count != AHEAD for count in taken)),
            self.held.eq(Cat(count != 0 for count in held)),
            self.select.eq(chosen),
        ]
        # What is on its way, in order.
        way = data.StructLayout({"traffic_class": class_bits, "qp": QP_BITS})
        m.submodules.under_way = under_way = fifo.SyncFIFO(width=way.size, depth=max(2, AHEAD * classes))
        asked, comes = Signal(way), Signal(way)
        m.d.comb += [
            asked.traffic_class.eq(chosen),
            asked.qp.eq(head.qp),
            under_way.w_data.eq(asked),
            comes.eq(under_way.r_data),
        ]
        starts = Signal()
        place, mask = Signal(16), Signal(16)
        m.d.comb += [
            mask.eq((1 << table.row.send_log2) - 1),
            place.eq(head.index & mask),
            axi.arlen.eq(1),
            axi.arsize.eq((BUS_BITS // 8).bit_length() - 1),
            axi.arburst.eq(1),  # INCR
            axi.rready.eq(1),
            axi.bready.eq(1),
            self.end.payload.qp.eq(head.qp),
        ]
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)
        with m.FSM() as fsm:
            with m.State("idle"):
                for i in reversed(range(classes)):
                    with m.If(wants[i]):
                        m.d.sync += chosen.eq(i)
                with m.If(wants.any() & ~axi.arvalid):
                    m.next = "select"
            with m.State("select"):
                m.next = "fetch"
            with m.State("fetch"):
                with m.If(table.open):
                    m.d.comb += [self.take.eq(1), starts.eq(1)]
                    m.d.sync += [
                        axi.arvalid.eq(1),
                        axi.araddr.eq((table.row.send_base << 5) + (place << 5)),
                    ]
                    m.next = "idle"
                with m.Else():
                    m.d.comb += self.end.valid.eq(1)
                    with m.If(self.end.ready):
                        m.d.comb += self.take.eq(1)
                        m.next = "idle"

        # Two beats an element; its memories have AHEAD rows a class, which go round.
        second, error, got = Signal(), Signal(), Signal()
        m.d.comb += [
            under_way.w_en.eq(starts),
            got.eq(axi.rvalid & second),
            under_way.r_en.eq(got),
        ]
        with m.If(axi.rvalid):
            m.d.sync += [second.eq(~second), error.eq(axi.rresp[1])]
        ins, outs = (
            Array(Signal(name=f"{name}_{i}") for i in range(classes)) for name in ("row_in", "row_out")
        )
        halves = []
        last = data.StructLayout({"half": BUS_BITS, "qp": QP_BITS, "failed": 1})
        for i, shape in enumerate((BUS_BITS, last)):
            m.submodules[f"half_{i}"] = rows = memory.Memory(shape=shape, depth=AHEAD << class_bits, init=[])
            write, read = rows.write_port(), rows.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(Cat(ins[comes.traffic_class], comes.traffic_class)),
                write.en.eq(axi.rvalid & (second == i)),
                read.addr.eq(Cat(outs[self.look], self.look)),
            ]
            halves.append((write, read))
        (low_write, low_read), (high_write, high_read) = halves
        m.d.comb += [
            low_write.data.eq(axi.rdata),
            high_write.data.half.eq(axi.rdata),
            high_write.data.qp.eq(comes.qp),
            high_write.data.failed.eq(error | axi.rresp[1]),
            self.work.element.eq(Cat(low_read.data, high_read.data.half)),
            self.work.qp.eq(high_read.data.qp),
            self.work.failed.eq(high_read.data.failed),
        ]
        for i in range(classes):
            begins, ends = starts & (chosen == i), self.done & (self.look == i)
            arrives = got & (comes.traffic_class == i)
            m.d.sync += [
                taken[i].eq(taken[i] + begins - ends),
                held[i].eq(held[i] + arrives - ends),
            ]
            with m.If(arrives):
                m.d.sync += ins[i].eq(~ins[i])
            with m.If(ends):
                m.d.sync += outs[i].eq(~outs[i])
        m.d.comb += self.quiet.eq(fsm.ongoing("idle") & ~wants.any() & ~under_way.r_rdy & ~axi.arvalid)
        return m


assert SEND_WQE_BYTES == 2 * BUS_BITS // 8 == 1 << 5
assert AHEAD == 2  # `ins` and `outs` are one bit
