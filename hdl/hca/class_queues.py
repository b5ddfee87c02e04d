"""The queues of the traffic classes: the messages that wait at an adapter, each class in its order."""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from .layout import INDEX_BITS, QP_BITS
from .queue_pair_table import QueuePairTable
from .send_layout import QUEUE_PAIR_LAYOUT, QUEUED_LAYOUT, SEND_DOORBELL_LAYOUT

__all__ = ["BATCH", "ClassQueues"]

BATCH = 16
"""Most messages of a doorbell that enter their class queue at once. So a doorbell keeps the window for few cycles."""
LATE_BITS = 16
"""Queue pairs in a row of the memory of late ones."""


class ClassQueues(wiring.Component):
    """A queue of messages for each traffic class, in order of arrival, and the doorbells that fill them.

    Source: yum-2006 3.2, "there is a queue for each traffic class".

    Members:

    - `setup` (in, stream of `QUEUE_PAIR_LAYOUT`): a queue pair is opened, its ring at index 0, or closed. One may be
      opened if it is not `busy`.
    - `ring` (in, stream of `SEND_DOORBELL_LAYOUT`): send doorbells.
    - `waiting` (out, a bit a class): classes with a message in the queue.
    - `select` (in): a class. `head` (out, `QUEUED_LAYOUT`): the oldest message of the class that was selected in the
      cycle before. `take` (in): takes the oldest message of the selected class, which must have one.
    - `entered` (out): a message enters a queue, in this cycle.
    - `ended` (in, stream of 8 bits): a message of this queue pair has ended, or was dropped.
    - `stores` (out), `store` (out, `QUEUED_LAYOUT`), only with `wqe` posted: the doorbell that was taken in the cycle
      before posts this message of its queue pair.
    - `look` (in, 8): a queue pair. `posted`, `ends` (out, 16): running indices: of its last doorbell, and messages
      that have ended.
    - `busy` (out): messages of that queue pair are in a queue or under way. It means nothing while set-ups are taken.
    - `refusals` (out, 32): doorbells refused since reset, modulo 2^32.
    - `late_dropped` (out, 32): messages that were late when their queue pair was closed, since reset, modulo 2^32.
    - `quiet` (out): no register changes but by an input.

    A doorbell gives the ring's new running index. It is refused, counted, and changes nothing in these cases:

    - there is no such queue pair, it is not open, or it is not that of the page's owner;
    - the ring would hold more messages than it has entries. A message is in the ring until it has ended.
    - the index goes back.
    - with `wqe` posted: it gives more than one message, as the page has one element.

    A doorbell brings up to `BATCH` messages into the queue of its class. In these cases the rest is late:

    - the queue is full;
    - other queue pairs of the class are late, and must not be overtaken;
    - the doorbell brings more than `BATCH`.

    As room comes, late queue pairs get an entry each in turn. So a late queue pair has its next entry after at most
    `queue_pairs` messages have left the queue of its class, whatever others post. No doorbell is lost.

    Longest wait of a doorbell: `BATCH` + 3 cycles for each doorbell before it. Between two of them one late entry may
    come, which takes 3 + `queue_pairs` / 16 cycles at most. A full queue holds up no doorbell.

    Latency: from `ring` to `waiting` 3 cycles. Throughput: a doorbell of one message every 3 cycles. Reset: no queue
    pair is open or `busy`, the queues are empty. For a cycle a queue pair nothing is taken; where
    there are fewer than 16 queue pairs, for 16 cycles at most.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "setup": In(stream.Signature(QUEUE_PAIR_LAYOUT)),
                "ring": In(stream.Signature(SEND_DOORBELL_LAYOUT)),
                "waiting": Out(config.classes),
                "select": In(range(max(2, config.classes))),
                "head": Out(QUEUED_LAYOUT),
                "take": In(1),
                "entered": Out(1),
                "ended": In(stream.Signature(QP_BITS)),
                "look": In(QP_BITS),
                "posted": Out(INDEX_BITS),
                "ends": Out(INDEX_BITS),
                "busy": Out(1),
                "refusals": Out(32),
                "late_dropped": Out(32),
                "quiet": Out(1),
            }
            | ({"stores": Out(1), "store": Out(QUEUED_LAYOUT)} if config.wqe == "posted" else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        classes = config.classes
        self._indices(m)
        self._queue(m)
        known, queued, setup, ring = self._known, self._queued, self.setup, self.ring

        # Late queue pairs: a bit each, in rows of its class.
        rows = -(-config.queue_pairs // LATE_BITS)
        row_bits = max(1, (rows - 1).bit_length())
        m.submodules.late = late = memory.Memory(shape=LATE_BITS, depth=classes << row_bits, init=[])
        look, put = late.read_port(domain="comb"), late.write_port()
        any_late, mine_late = Signal(classes), Signal()
        counts = Array(Signal(range(config.queue_pairs + 1), name=f"late_{i}") for i in range(classes))
        m.d.comb += any_late.eq(Cat(count != 0 for count in counts))

        qp, page, index, opens = self._qp, Signal(10), Signal(INDEX_BITS), Signal(QUEUE_PAIR_LAYOUT)
        traffic_class, left = self._class, Signal(range(BATCH + 1))
        # The place from which on each class looks for the next late queue pair.
        places = Array(Signal(QP_BITS, name=f"place_{i}") for i in range(classes))
        place, rover_class, swept = (
            Signal(QP_BITS),
            Signal(range(max(2, classes))),
            Signal(range(max(classes << row_bits, config.queue_pairs))),
        )
        rover_turn = Signal()
        rovable, after = Signal(classes), Signal(classes)
        ahead = Signal(classes)  # classes after the one that had the last late entry
        m.d.comb += [
            rovable.eq(any_late & ~self._full),
            after.eq(Mux((rovable & ahead).any(), rovable & ahead, rovable)),
        ]
        row = Signal(row_bits)
        bit, masked, lowest = (Signal(LATE_BITS, name=name) for name in ("bit", "masked", "lowest"))
        m.d.comb += [
            row.eq(qp[4:]),
            bit.eq(1 << qp[:4]),
            look.addr.eq(Cat(row, traffic_class)),
            put.addr.eq(look.addr),
            mine_late.eq((look.data & bit).any()),
            masked.eq(look.data & ~((1 << place[:4]) - 1)),
            lowest.eq(masked & (~masked + 1)),
        ]
        count = counts[traffic_class]

        def set_late() -> None:
            m.d.comb += [put.en.eq(1), put.data.eq(look.data | bit)]
            with m.If(~mine_late):
                m.d.sync += count.eq(count + 1)

        def clear_late() -> None:
            m.d.comb += [put.en.eq(1), put.data.eq(look.data & ~bit)]
            with m.If(mine_late):
                m.d.sync += count.eq(count - 1)

        # Messages that the doorbell brings, that the ring would hold, and that it holds. The index goes back if the
        # ring would hold fewer: in a ring of 2^15 entries the number that comes does not tell.
        more, would_hold, holds = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal(INDEX_BITS)
        accepted = Signal()
        m.d.comb += [
            more.eq(index - known),
            would_hold.eq(index - self._ends_here),
            holds.eq(known - self._ends_here),
            accepted.eq(
                self._table.open
                & (self._table.row.owner == page)
                & (would_hold <= self._entries)
                & (would_hold >= holds)
                & ((more <= 1) if config.wqe == "posted" else 1)
            ),
        ]
        with m.FSM(init="sweep") as fsm:
            with m.State("sweep"):
                m.d.comb += [look.addr.eq(swept), put.en.eq(1), put.data.eq(0), self._open.eq(1)]
                m.d.sync += [swept.eq(swept + 1), qp.eq(qp + 1)]
                with m.If(swept == max(classes << row_bits, config.queue_pairs) - 1):
                    m.next = "idle"
            with m.State("idle"):
                m.d.comb += setup.ready.eq(1)
                with m.If(setup.valid):
                    m.d.sync += [qp.eq(setup.payload.qp), opens.eq(setup.payload)]
                    m.next = "set up"
                with m.Elif(rovable.any() & (rover_turn | ~ring.valid)):
                    m.d.sync += rover_turn.eq(0)
                    for i in reversed(range(classes)):
                        with m.If(after[i]):
                            m.d.sync += [rover_class.eq(i), place.eq(places[i])]
                            m.d.sync += ahead.eq((1 << classes) - (2 << i))
                    m.next = "rove"
                with m.Else():
                    m.d.comb += ring.ready.eq(1)
                    with m.If(ring.valid):
                        m.d.sync += [
                            qp.eq(ring.payload.qp),
                            page.eq(ring.payload.page),
                            index.eq(ring.payload.index),
                            rover_turn.eq(1),
                            left.eq(BATCH),
                        ]
                        m.next = "ring"
            with m.State("ring"):
                m.next = "idle"
                with m.If(~accepted):
                    m.d.sync += self.refusals.eq(self.refusals + 1)
                with m.Elif(more != 0):
                    m.d.comb += [self._known_put.en.eq(1), self._known_put.data.eq(index)]
                    if config.wqe == "posted":
                        m.d.comb += [self.stores.eq(1), self.store.qp.eq(qp), self.store.index.eq(known)]
                    m.next = "push"
            with m.State("push"):
                with m.If(queued == known):
                    m.next = "idle"
                with m.Elif(any_late.bit_select(traffic_class, 1) | self._full.bit_select(traffic_class, 1)):
                    set_late()
                    m.next = "idle"
                with m.Elif(left == 0):
                    set_late()
                    m.next = "idle"
                with m.Else():
                    m.d.comb += self._push.eq(1)
                    m.d.sync += left.eq(left - 1)
            with m.State("rove"):
                # The row of `place`, in the class that has the turn.
                m.d.comb += look.addr.eq(Cat(place[4:][:row_bits], rover_class))
                with m.If(masked.any()):
                    for i in range(LATE_BITS):
                        with m.If(lowest[i]):
                            m.d.sync += qp.eq(Cat(Const(i, 4), place[4:]))
                    m.next = "give"
                with m.Else():
                    m.d.sync += place.eq(Mux(place[4:] == rows - 1, 0, (place[4:] + 1) << 4))
            with m.State("give"):
                m.d.comb += self._push.eq(1)
                m.d.sync += places[traffic_class].eq(Mux(qp == config.queue_pairs - 1, 0, qp + 1))
                with m.If((queued + 1)[:INDEX_BITS] == known):
                    clear_late()
                m.next = "idle"
            with m.State("set up"):
                # The table has the old class until the end of this cycle.
                m.d.comb += [
                    self._table.setup_valid.eq(1),
                    self._table.setup.eq(opens),
                    self._known_put.en.eq(1),
                    self._known_put.data.eq(Mux(opens.open, 0, queued)),
                ]
                with m.If(opens.open):
                    m.d.comb += self._open.eq(1)
                with m.Elif(self._table.open):
                    clear_late()
                    m.d.sync += self.late_dropped.eq(self.late_dropped + (known - queued)[:INDEX_BITS])
                m.next = "idle"
        m.d.comb += self.quiet.eq(
            fsm.ongoing("idle") & ~rovable.any() & ~(ring.valid | setup.valid | self.ended.valid)
        )
        return m

    def _indices(self, m: Module) -> None:
        """Running indices of each queue pair: rung, in the queue, ended."""
        config = self.config
        self._qp, self._class = Signal(QP_BITS), Signal(range(max(2, config.classes)))
        self._entries = Signal(INDEX_BITS)
        m.submodules.table = self._table = table = QueuePairTable(
            config.queue_pairs, fields=("owner", "traffic_class", "send_log2")
        )
        m.d.comb += [
            table.qp.eq(self._qp),
            self._class.eq(table.row.traffic_class),
            self._entries.eq(1 << table.row.send_log2),
        ]
        self._open, self._push = Signal(), Signal()
        reads, writes = {}, {}
        for name in ("rung", "in_queue", "ended_indices"):
            m.submodules[name] = rows = memory.Memory(shape=INDEX_BITS, depth=config.queue_pairs, init=[])
            setattr(self, name, rows)  # for tests that take indices over their wrap
            reads[name] = [rows.read_port(domain="comb") for _ in range(3 if name == "ended_indices" else 2)]
            writes[name] = rows.write_port()
            m.d.comb += [reads[name][0].addr.eq(self._qp), reads[name][1].addr.eq(self.look)]
        self._known, self._queued = reads["rung"][0].data, reads["in_queue"][0].data
        self._ends_here = reads["ended_indices"][0].data
        self._known_put = writes["rung"]
        ends, counting = writes["ended_indices"], reads["ended_indices"][2]
        m.d.comb += [
            writes["rung"].addr.eq(self._qp),
            writes["in_queue"].addr.eq(self._qp),
            writes["in_queue"].en.eq(self._push | self._open),
            writes["in_queue"].data.eq(Mux(self._open, 0, self._queued + 1)),
            counting.addr.eq(self.ended.payload),
            self.ended.ready.eq(~self._open),
            ends.addr.eq(Mux(self._open, self._qp, self.ended.payload)),
            ends.data.eq(Mux(self._open, 0, counting.data + 1)),
            ends.en.eq(self._open | self.ended.valid),
            self.entered.eq(self._push),
            self.posted.eq(reads["rung"][1].data),
            self.ends.eq(reads["ended_indices"][1].data),
            self.busy.eq(reads["in_queue"][1].data != self.ends),
        ]

    def _queue(self, m: Module) -> None:
        """The memory of all queues, `_push` into that of `_class`, and `_full` ones."""
        config = self.config
        entries = config.class_queue_entries
        bits = (entries - 1).bit_length()
        m.submodules.messages = messages = memory.Memory(
            shape=QUEUED_LAYOUT, depth=config.classes << bits, init=[]
        )
        write, read = messages.write_port(), messages.read_port()
        tails, heads = (
            Array(Signal(bits, name=f"{name}_{i}") for i in range(config.classes))
            for name in ("tail", "head")
        )
        levels = Array(Signal(range(entries + 1), name=f"level_{i}") for i in range(config.classes))
        self._full = Signal(config.classes)
        tail, head = tails[self._class], heads[self.select]
        m.d.comb += [
            write.addr.eq(Cat(tail, self._class)),
            write.data.qp.eq(self._qp),
            write.data.index.eq(self._queued),
            write.en.eq(self._push),
            read.addr.eq(Cat(head, self.select)),
            read.en.eq(1),
            self.head.eq(read.data),
            self.waiting.eq(Cat(level != 0 for level in levels)),
            self._full.eq(Cat(level == entries for level in levels)),
        ]
        with m.If(self._push):
            m.d.sync += tail.eq(Mux(tail == entries - 1, 0, tail + 1))
        with m.If(self.take):
            m.d.sync += head.eq(Mux(head == entries - 1, 0, head + 1))
        for i, level in enumerate(levels):
            comes, goes = self._push & (self._class == i), self.take & (self.select == i)
            with m.If(comes & ~goes):
                m.d.sync += level.eq(level + 1)
            with m.Elif(goes & ~comes):
                m.d.sync += level.eq(level - 1)
