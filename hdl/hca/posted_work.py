"""Work queue elements that processes post: words of their pages, rings on the card, and what the scheduler looks at."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from .layout import OWNER_BITS, QP_BITS, SEND_WQE_BYTES
from .queue_pair_table import QueuePairTable
from .send_layout import END_LAYOUT, QUEUE_PAIR_LAYOUT, QUEUED_LAYOUT
from .work_fetch import AHEAD, WORK_LAYOUT

__all__ = ["ELEMENT_WORDS", "ELEMENT_WORD_LAYOUT", "PostedWork"]

WORD_BITS = 32
ELEMENT_WORDS = SEND_WQE_BYTES * 8 // WORD_BITS
"""Words of the window that make an element."""

ELEMENT_WORD_LAYOUT = data.StructLayout(
    {"page": OWNER_BITS, "word": (ELEMENT_WORDS - 1).bit_length(), "data": WORD_BITS}
)
"""A write of word `word` of the element in page `page`."""


class PostedWork(wiring.Component):
    """Elements that are written into pages, and posted by doorbells: one DMA a message (yum-2006 3.2).

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `writes` (in), `write` (in, `ELEMENT_WORD_LAYOUT`): a process writes a word of the element in its page.
    - `rings` (in), `ring_page` (in): a doorbell is taken by this page in this cycle.
    - `stores` (in), `store` (in, `QUEUED_LAYOUT`): the doorbell of the cycle before is good. The page's element goes to
      the place of running index `index` in the ring of `qp`.
    - `waiting` (in), `select` (out), `head` (in, `QUEUED_LAYOUT`), `take` (out): as in `ClassQueues`.
    - `held`, `look`, `work`, `done`: as in `WorkFetch`. No element has `failed`.
    - `end` (out, stream of `END_LAYOUT`): a message that is dropped, as its queue pair was closed before its turn.
    - `quiet` (out): nothing waits to be held, and no register changes but by an input. Elements may be held.

    A page has one element, whose words stay as they are until they are written again. So a process writes only those
    that differ from its last message. Each queue pair has a ring of `posted_entries` elements on the card, for which
    `ClassQueues` keeps the indices. So an element that waits in whatever queue has its place, and nobody's place can be
    taken by another process. Words of pages that do not exist are not written.

    Latency: from `waiting` to `held` 4 cycles. Throughput: an element every 3 cycles. Reset: nothing is held. The words
    of pages and rings stay; after power-up they are 0.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        select = range(max(2, config.classes))
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "writes": In(1),
                "write": In(ELEMENT_WORD_LAYOUT),
                "rings": In(1),
                "ring_page": In(OWNER_BITS),
                "stores": In(1),
                "store": In(QUEUED_LAYOUT),
                "waiting": In(config.classes),
                "select": Out(select),
                "head": In(QUEUED_LAYOUT),
                "take": Out(1),
                "held": Out(config.classes),
                "look": In(select),
                "work": Out(WORK_LAYOUT),
                "done": In(1),
                "end": Out(stream.Signature(END_LAYOUT)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, head = self.config, self.head
        classes = config.classes
        class_bits = max(1, (classes - 1).bit_length())
        element_bits = ELEMENT_WORDS * WORD_BITS
        m.submodules.table = table = QueuePairTable(config.queue_pairs, fields=())
        m.d.comb += [
            table.setup_valid.eq(self.setup_valid),
            table.setup.eq(self.setup),
            table.qp.eq(head.qp),
        ]
        # The element of each page, and the ring of each queue pair.
        m.submodules.pages = self.pages = pages = memory.Memory(
            shape=element_bits, depth=config.owners, init=[]
        )
        words, page = pages.write_port(granularity=WORD_BITS), pages.read_port()
        log2 = (config.posted_entries - 1).bit_length()
        m.submodules.rings = rings = memory.Memory(
            shape=element_bits, depth=config.queue_pairs << log2, init=[]
        )
        put, got = rings.write_port(), rings.read_port()
        m.d.comb += [
            words.addr.eq(self.write.page),
            words.data.eq(self.write.data.replicate(ELEMENT_WORDS)),
            words.en.eq((self.writes & (self.write.page < config.owners)) << self.write.word),
            page.addr.eq(self.ring_page),
            page.en.eq(self.rings),
            put.addr.eq(Cat(self.store.index[:log2], self.store.qp)),
            put.data.eq(page.data),
            put.en.eq(self.stores),
            got.addr.eq(Cat(head.index[:log2], head.qp)),
        ]
        # Places of a class: those taken by elements on their way or held, and those held.
        places = range(AHEAD + 1)
        taken = Array(Signal(places, name=f"taken_{i}") for i in range(classes))
        held = Array(Signal(places, name=f"held_{i}") for i in range(classes))
        chosen, wants = Signal(class_bits), Signal(classes)
        starts, comes, comes_class, comes_qp = Signal(), Signal(), Signal(class_bits), Signal(QP_BITS)
        m.d.comb += [
            wants.eq(self.waiting & Cat(count != AHEAD for count in taken)),
            self.held.eq(Cat(count != 0 for count in held)),
            self.select.eq(chosen),
            self.end.payload.qp.eq(head.qp),
            got.en.eq(starts),
        ]
        m.d.sync += comes.eq(starts)
        with m.If(starts):
            m.d.sync += [comes_class.eq(chosen), comes_qp.eq(head.qp)]
        with m.FSM() as fsm:
            with m.State("idle"):
                for i in reversed(range(classes)):
                    with m.If(wants[i]):
                        m.d.sync += chosen.eq(i)
                with m.If(wants.any()):
                    m.next = "select"
            with m.State("select"):
                m.next = "read"
            with m.State("read"):
                with m.If(table.open):
                    m.d.comb += [self.take.eq(1), starts.eq(1)]
                    m.next = "idle"
                with m.Else():
                    m.d.comb += self.end.valid.eq(1)
                    with m.If(self.end.ready):
                        m.d.comb += self.take.eq(1)
                        m.next = "idle"

        # The held elements: AHEAD rows a class, which go round.
        row = data.StructLayout({"element": element_bits, "qp": QP_BITS})
        m.submodules.rows = rows = memory.Memory(shape=row, depth=AHEAD << class_bits, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        ins, outs = (
            Array(Signal(name=f"{name}_{i}") for i in range(classes)) for name in ("row_in", "row_out")
        )
        m.d.comb += [
            write.addr.eq(Cat(ins[comes_class], comes_class)),
            write.en.eq(comes),
            write.data.element.eq(got.data),
            write.data.qp.eq(comes_qp),
            read.addr.eq(Cat(outs[self.look], self.look)),
            self.work.element.eq(read.data.element),
            self.work.qp.eq(read.data.qp),
        ]
        for i in range(classes):
            begins, ends = starts & (chosen == i), self.done & (self.look == i)
            arrives = comes & (comes_class == i)
            m.d.sync += [
                taken[i].eq(taken[i] + begins - ends),
                held[i].eq(held[i] + arrives - ends),
            ]
            with m.If(arrives):
                m.d.sync += ins[i].eq(~ins[i])
            with m.If(ends):
                m.d.sync += outs[i].eq(~outs[i])
        m.d.comb += self.quiet.eq(fsm.ongoing("idle") & ~wants.any() & ~comes)
        return m


assert AHEAD == 2  # `ins` and `outs` are one bit
