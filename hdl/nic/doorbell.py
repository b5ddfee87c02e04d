"""Doorbells: words that host processes write, a page a channel, and how the firmware gets to see them."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig

__all__ = ["CHANNEL_BITS", "RING_LAYOUT", "Doorbell", "queue_layout"]

CHANNEL_BITS = 10
"""Width of a channel number, whatever the channels: as in `nic.rdl`, and the pages of the host's window."""
WORD_BITS = 31
"""Bits of the host's word that a polled doorbell keeps: DOORBELL_WORD of `nic.rdl` needs one for `valid`."""
QUEUE_WORD_BITS = 21
"""Bits of the host's word that the queue keeps: DOORBELL_QUEUE of `nic.rdl` holds the channel beside it."""

RING_LAYOUT = data.StructLayout({"channel": unsigned(CHANNEL_BITS), "word": unsigned(WORD_BITS)})
"""A doorbell write: the channel of its page and the low bits of its word."""


def queue_layout() -> data.StructLayout:
    """An entry of the hardware queue, as DOORBELL_QUEUE of `nic.rdl` shows it."""
    return data.StructLayout({"channel": unsigned(CHANNEL_BITS), "word": unsigned(QUEUE_WORD_BITS)})


class Doorbell(wiring.Component):
    """Doorbells of `config.channels` channels, polled or queued (nagar-thesis-2001 4.2.4, 5.2.1).

    Members:

    - `ring` (in, stream of `RING_LAYOUT`): a write. Held off while the queue is full: the write waits on the
      bus, so a doorbell is never lost, and order is that of arrival.
    - `refused` (out): the channel of `ring` does not exist. Such a write is taken at once, counted and
      forgotten. `refusals` (out, 32): how many, since reset, modulo 2^32.
    - `pending` (out): a doorbell waits to be seen.
    - `waiting` (out): how many: entries of the queue; polled, 1 if any.
    - `head` (out, `queue_layout`), `head_valid` (out), `pop` (in): the queue's oldest entry; `pop` takes it
      at the end of the cycle (nothing happens if there is none). Polled: never valid.
    - `select` (in, 10), `word` (out, 31), `word_valid` (out), `take` (in): the word that the selected
      channel's host wrote last, and whether it came since the last `take`. A write in the cycle of a `take`
      stays valid: the taker got the word before it. Queued: never valid.

    Latency: `ring` to `pending`, `word_valid` one cycle; to `head_valid` two (the queue's memory is read
    synchronously). Throughput: a write and a pop a cycle; after a pop from a full queue a write is taken in
    the next cycle. Reset: none waits; words are kept but not valid.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "ring": In(stream.Signature(RING_LAYOUT)),
                "refused": Out(1),
                "refusals": Out(32),
                "pending": Out(1),
                "waiting": Out(range(config.doorbell_queue_entries + 1)),
                "head": Out(queue_layout()),
                "head_valid": Out(1),
                "pop": In(1),
                "select": In(CHANNEL_BITS),
                "word": Out(WORD_BITS),
                "word_valid": Out(1),
                "take": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        accepted = Signal()
        m.d.comb += [
            self.refused.eq(self.ring.payload.channel >= self.config.channels),
            accepted.eq(self.ring.valid & self.ring.ready & ~self.refused),
        ]
        with m.If(self.ring.valid & self.refused):
            m.d.sync += self.refusals.eq(self.refusals + 1)
        if self.config.doorbell == "queue":
            self._queue(m, accepted)
        else:
            self._words(m, accepted)
        return m

    def _queue(self, m: Module, accepted: Signal) -> None:
        depth = self.config.doorbell_queue_entries
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=queue_layout().size, depth=depth)
        entry = Signal(queue_layout())
        m.d.comb += [
            self.ring.ready.eq(queue.w_rdy | self.refused),
            entry.channel.eq(self.ring.payload.channel),
            entry.word.eq(self.ring.payload.word),
            queue.w_data.eq(entry),
            queue.w_en.eq(accepted),
            self.head.eq(queue.r_data),
            self.head_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.pop),
            self.waiting.eq(queue.level),
            self.pending.eq(queue.level != 0),
        ]

    def _words(self, m: Module, accepted: Signal) -> None:
        channels = self.config.channels
        m.submodules.words = words = memory.Memory(shape=unsigned(WORD_BITS), depth=channels, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        # One flag a channel in one vector: `any` of them is a single operation.
        valid = Signal(channels)
        rung, taken = Signal(channels), Signal(channels)
        exists = self.select < channels
        m.d.comb += [
            self.ring.ready.eq(1),
            write.addr.eq(self.ring.payload.channel),
            write.data.eq(self.ring.payload.word),
            write.en.eq(accepted),
            read.addr.eq(self.select),
            self.word.eq(Mux(exists, read.data, 0)),
            self.word_valid.eq(exists & valid.bit_select(self.select, 1)),
            rung.eq(accepted << self.ring.payload.channel),
            taken.eq((self.take & exists) << self.select),
            self.pending.eq(valid.any()),
            self.waiting.eq(self.pending),
        ]
        m.d.sync += valid.eq((valid & ~taken) | rung)
