"""Doorbells: words that host processes write into their pages, and that the firmware reads."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig
from .queues.registered_fifo import RegisteredFifo

__all__ = [
    "CHANNEL_BITS",
    "OWNER_BITS",
    "PRIORITY_BITS",
    "Doorbell",
    "assign_layout",
    "queue_layout",
    "ring_layout",
]

CHANNEL_BITS = 10
"""Width of a channel number, whatever the channels: as in `nic.rdl`, and the pages of the host's window."""
OWNER_BITS = 10
"""Width of an owner's number: that of the page which its process has been given."""
PRIORITY_BITS = 3
"""Width of a priority."""
WORD_BITS = 31
"""Bits of the host's word that a polled doorbell keeps: DOORBELL_WORD of `nic.rdl` needs one for `valid`."""
QUEUE_WORD_BITS = 21
"""Bits of the host's word that the queue keeps: DOORBELL_QUEUE of `nic.rdl` holds the channel beside it."""


def ring_layout(config: NicConfig) -> data.StructLayout:
    """A doorbell write: channel and low bits of its word.

    With owners it has the owner of the page by which it came. With receive doorbells it says whether it is one.
    """
    fields = {"channel": unsigned(CHANNEL_BITS), "word": unsigned(WORD_BITS)}
    if config.receive_doorbells != "none":
        fields["receive"] = unsigned(1)
    if config.owners:
        fields["owner"] = unsigned(OWNER_BITS)
    return data.StructLayout(fields)


def queue_layout() -> data.StructLayout:
    """An entry of the hardware queue, as DOORBELL_QUEUE of `nic.rdl` shows it."""
    return data.StructLayout({"channel": unsigned(CHANNEL_BITS), "word": unsigned(QUEUE_WORD_BITS)})


def assign_layout() -> data.StructLayout:
    """The assignment of a channel: whether it is `open`, to the writes of which `owner`, and its `priority`."""
    return data.StructLayout(
        {"channel": CHANNEL_BITS, "owner": OWNER_BITS, "priority": PRIORITY_BITS, "open": 1}
    )


class Doorbell(wiring.Component):
    """Doorbells of `config.channels` channels, polled or queued (nagar-thesis-2001 4.2.4, 4.3.10, 5.2.1).

    Members:

    - `ring` (in, stream of `ring_layout`): a write. It is held off while its queue is full. The write then waits on the
      bus, so a doorbell is never lost, and the order is that of arrival.
    - `refused` (out): the channel of `ring` does not exist, or is not open to the owner of the page by which the write
      came. Such a write is taken at once, counted and forgotten.
    - `refusals` (out, 32): refused writes since reset, modulo 2^32.
    - `pending` (out): a doorbell waits to be seen.
    - `waiting` (out): entries of all queues; if doorbells are polled, 1 if any waits.
    - `head` (out, `queue_layout`), `head_valid` (out): the queue's oldest entry; never valid if doorbells are polled.
    - `pop` (in): takes that entry at the end of the cycle; nothing happens if there is none.
    - `select` (in, 10): a channel.
    - `word` (out, 31): the word that the selected channel's host wrote last.
    - `word_valid` (out): that word came since the last `take`; never valid if doorbells are queued.
    - `take` (in): takes the word. A write in the cycle of a `take` stays valid: the taker got the word before it.

    With `owners` or more than one of `doorbell_priorities`:

    - `assign` (in, `assign_layout`), `assigns` (in): from the next cycle on a channel is as `assign` says. After
      power-up no channel is open and all are of priority 0; a reset leaves this as it is.

    With `receive_doorbells` each channel has two doorbells:

    - "merged": both kinds are in one queue, and the top bit of the entry's word says that it is a receive doorbell. If
      doorbells are polled, each has a word of its own, and an eleventh bit of `select` chooses it.
    - "separate": they have queues of their own, for two processors that do not wait for each other. `receive_head`,
      `receive_head_valid`, `receive_pop` and `receive_pending` are those of the receive queue. `head`, `head_valid`,
      `pop` and `pending` are those of the send queue.

    Priorities (yum-2006 3.2, "a queue for each traffic class"): each priority has a queue of
    `doorbell_queue_entries`. The head is that of the highest priority that has one. Within a priority the order is
    that of arrival. A bus is in order too: a write that waits for its priority's queue holds those behind it.

    Latency: `ring` to `pending`, `word_valid` one cycle; to `head_valid` two (the queue's memory is read
    synchronously), three with `config.pipelined` (`RegisteredFifo`). Throughput: a write and a pop a cycle. After a pop
    from a full queue a write is taken in the next cycle, pipelined in one or two. Reset: no doorbell waits; words are
    kept but not valid.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        self.separate = config.receive_doorbells == "separate"
        self.words = 1 if config.receive_doorbells == "none" else 2
        queues = config.doorbell_priorities * (1 + self.separate)
        members = {
            "ring": In(stream.Signature(ring_layout(config))),
            "refused": Out(1),
            "refusals": Out(32),
            "pending": Out(1),
            "waiting": Out(range(config.doorbell_queue_entries * queues + 1)),
            "head": Out(queue_layout()),
            "head_valid": Out(1),
            "pop": In(1),
            "select": In(CHANNEL_BITS + self.words - 1),
            "word": Out(WORD_BITS),
            "word_valid": Out(1),
            "take": In(1),
        }
        if config.owners or config.doorbell_priorities > 1:
            members |= {"assign": In(assign_layout()), "assigns": In(1)}
        if self.separate:
            members |= {
                "receive_head": Out(queue_layout()),
                "receive_head_valid": Out(1),
                "receive_pop": In(1),
                "receive_pending": Out(1),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        accepted = Signal()
        refused: Value = self.ring.payload.channel >= self.config.channels
        priority: Value | int = 0
        if hasattr(self, "assign"):
            known = self._table(m)
            priority = known.priority
            if self.config.owners:
                refused = refused | ~known.open | (known.owner != self.ring.payload.owner)
        m.d.comb += [
            self.refused.eq(refused),
            accepted.eq(self.ring.valid & self.ring.ready & ~self.refused),
        ]
        with m.If(self.ring.valid & self.refused):
            m.d.sync += self.refusals.eq(self.refusals + 1)
        if self.config.doorbell == "queue":
            self._queues(m, accepted, priority)
        else:
            self._words(m, accepted)
        return m

    def _table(self, m: Module) -> data.View:
        """The assignment of the channel of `ring`."""
        fields = {name: field.width for name, field in assign_layout() if name != "channel"}
        layout = data.StructLayout(fields)
        m.submodules.table = table = memory.Memory(shape=layout, depth=self.config.channels, init=[])
        write, read = table.write_port(), table.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.assign.channel),
            write.en.eq(self.assigns & (self.assign.channel < self.config.channels)),
            read.addr.eq(self.ring.payload.channel),
        ]
        m.d.comb += [write.data[name].eq(self.assign[name]) for name in fields]
        return read.data

    def _queues(self, m: Module, accepted: Signal, priority: Value | int) -> None:
        config, ring = self.config, self.ring.payload
        entry = Signal(queue_layout())
        m.d.comb += [entry.channel.eq(ring.channel), entry.word.eq(ring.word)]
        if config.receive_doorbells == "merged":
            m.d.comb += entry.word.eq(Cat(ring.word[: QUEUE_WORD_BITS - 1], ring.receive))
        heads = [(self.head, self.head_valid, self.pop, self.pending)]
        if self.separate:
            receive = (self.receive_head, self.receive_head_valid, self.receive_pop, self.receive_pending)
            heads.append(receive)
        priorities = config.doorbell_priorities
        waiting: list[Value] = []
        room: Value | int = 0
        for bank, (head, head_valid, pop, pending) in enumerate(heads):
            queues: list[fifo.SyncFIFOBuffered | RegisteredFifo] = []
            higher: Value | int = 0  # a queue of a higher priority has an entry
            for i in reversed(range(priorities)):
                kind = RegisteredFifo if config.pipelined else fifo.SyncFIFOBuffered
                queue = kind(width=queue_layout().size, depth=config.doorbell_queue_entries)
                m.submodules["queue" if len(heads) * priorities == 1 else f"queue_{bank}_{i}"] = queue
                mine: Value | int = 1
                if priorities > 1:
                    # A priority that no queue has is the highest.
                    mine = priority >= i if i == priorities - 1 else priority == i
                if self.separate:
                    mine = mine & (ring.receive == bank)
                room = room | (mine & queue.w_rdy)
                m.d.comb += [
                    queue.w_data.eq(entry),
                    queue.w_en.eq(accepted & mine),
                    queue.r_en.eq(pop & ~higher if queues else pop),
                ]
                with m.If(queue.r_rdy & ~higher if queues else queue.r_rdy):
                    m.d.comb += head.eq(queue.r_data)
                higher = higher | queue.r_rdy
                queues.append(queue)
            levels_used = [queue.level for queue in queues]
            m.d.comb += [
                head_valid.eq(higher),
                pending.eq(Cat(levels_used).any()),
            ]
            waiting += levels_used
        m.d.comb += [self.ring.ready.eq(room | self.refused), self.waiting.eq(sum(waiting))]

    def _words(self, m: Module, accepted: Signal) -> None:
        channels = self.config.channels
        depth = channels * self.words
        m.submodules.words = words = memory.Memory(shape=unsigned(WORD_BITS), depth=depth, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        # A channel's two words, if it has two, are neighbours.
        rings: Value = self.ring.payload.channel
        looks: Value = self.select
        if self.words == 2:
            rings = Cat(self.ring.payload.receive, self.ring.payload.channel)
            looks = Cat(self.select[-1], self.select[:CHANNEL_BITS])
        # One flag a word in one vector: `any` of them is a single operation.
        valid = Signal(depth)
        rung, taken = Signal(depth), Signal(depth)
        exists = self.select[:CHANNEL_BITS] < channels
        m.d.comb += [
            self.ring.ready.eq(1),
            write.addr.eq(rings),
            write.data.eq(self.ring.payload.word),
            write.en.eq(accepted),
            read.addr.eq(looks),
            self.word.eq(Mux(exists, read.data, 0)),
            self.word_valid.eq(exists & valid.bit_select(looks, 1)),
            rung.eq(accepted << rings),
            taken.eq((self.take & exists) << looks),
            self.pending.eq(valid.any()),
            self.waiting.eq(self.pending),
        ]
        m.d.sync += valid.eq((valid & ~taken) | rung)
