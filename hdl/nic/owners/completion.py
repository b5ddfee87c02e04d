"""Completion: status words, completion queues in host memory, and the events that wake who waits for them."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from ...axi import Axi4Signature
from ...config import ConfigError, NicConfig
from ..dma.burst_writer import BurstWriter
from ..dma.bus_fence import BusFence, BusWatchSignature
from ..rtc import PASSED_BITS
from .completion_layout import (
    CONSUME_LAYOUT,
    ENTRY_BYTES,
    ENTRY_LAYOUT,
    INDEX_BITS,
    POST_LAYOUT,
    QUEUE_BITS,
    QUEUE_SETUP_LAYOUT,
    STATUS_LAYOUT,
    CompletionStatus,
)
from .event_flags import EventFlags

__all__ = ["Completion"]

STAMP_BITS = 24
"""Width of the clock by which collected entries age.

An entry that a hung bus holds up for 2^24 cycles (half a second) looks young again. It is written late by at most
another `lag_cycles`.
"""


class Completion(wiring.Component):
    """`completion_queues` queues, each shared by as many work queues as wanted.

    Sources: nagar-thesis-2001 4.1.2, 4.2.2; yum-2006 3.2.

    Members:

    - `setup` (in, stream of `QUEUE_SETUP_LAYOUT`): make or remake a queue, empty. A queue whose ring is shorter than 2
      entries or `completion_batch` is switched off.
    - `post` (in, stream of `POST_LAYOUT`): a completion. `ready` is that of the queue named in the payload. A queue
      that stalls and is full, or has `completion_batch` entries on their way, holds its own posts and no other queue's.
    - `consume` (in, stream of `CONSUME_LAYOUT`): a consumer's write, taken at once but in the cycle of a set-up.
    - `refused` (out): that write does nothing, as the queue is not the owner's, or no entry has been written there.
    - `event` (out): a queue that was armed has an entry.
    - `event_queue` (out): that queue, the next one after that of the last acknowledgement first.
    - `acknowledge` (in): that event has been seen. It is down in the next cycle, unless another comes in this one.
    - `failed` (out): in this cycle a queue was overrun or the bus answered with an error.
    - `failed_queue` (out): that queue, from the next cycle until the next failure.
    - `broken` (out, `completion_queues`): queues that are dead as the bus answered an entry with an error, until they
      are set up again.
    - `dropped` (out, 32): entries lost to queues that were overrun, failed or not set up, since reset, modulo 2^32.
    - `watched` (out, `BusWatchSignature`): the data's port of the host's bus, to be driven from outside.
    - `axi` (out, `Axi4Signature`): writes only, one burst at a time, ID 0.

    A set-up comes after every post that was taken before it: their entries, collected or not, are written to the ring
    that there was. A post to that queue may have waited since before the set-up, as the queue stalls. It loses its
    entry, counted in `dropped`. A post that comes with the set-up, or after it, waits for it.

    Parameters, other than the card's in tests and proofs, which take them over their wrap:

    - `index_bits`: width of running indices, at most `INDEX_BITS`, at least one more than a ring's `entries_log2`.
    - `first_index`: the index of a queue's first entry.
    - `stamp_bits`: width of the clock by which entries age, more than `lag_cycles` has.

    Order: nothing is written before every transfer has been answered that `watched` showed under way in the cycle after
    the post was taken. So neither status nor entry is visible before the data, and a buffer that is said to be done is
    read no more. The status word of a post is written, and answered, before its entry. If the bus answers it with an
    error, the entry of a post that says OK says BUS_ERROR.

    Latency: entries of a queue are written together, in one burst, when there are `batch` of them, or they reach a
    multiple of `completion_batch`, or the first is `lag_cycles` old. To that comes a look at the other queues
    (`completion_queues` cycles), and one burst and one post for each of them that is due too.

    A consumer that falls behind: with `stall` its queue takes no post before there is room. Without, the last
    free entry of the ring says OVERRUN and the queue is dead until it is set up again. An entry that has not
    been consumed is never written over.

    Arming: `consume` with `arm` raises the event at once if there is an entry at `index` already. Otherwise the next
    entry raises it, once the bus has answered its write. So a consumer that looks, finds nothing, arms and sleeps,
    misses no entry, whatever the cycle in which it comes.

    Throughput: a post every 2 cycles as long as no write is due; the bus's time for a burst or status word
    and 5 cycles more stand between posts otherwise. Reset: no queue is set up, nothing is under way.

    With `skippable` there are two members more:

    - `rests` (out): no entry waits to be written, and nothing is under way. Only the look at the queues goes on.
    - `passed` (in, `PASSED_BITS`): cycles beside the present one that a simulator passes over.

    Raises ConfigError for no queues.
    """

    def __init__(
        self,
        config: NicConfig,
        *,
        skippable: bool = False,
        index_bits: int = INDEX_BITS,
        first_index: int = 0,
        stamp_bits: int = STAMP_BITS,
    ) -> None:
        if config.completion_queues < 1:
            raise ConfigError("Completion: completion_queues = 0: at least 1")
        self.config, self.skippable = config, skippable
        self._index_bits, self._first_index, self._stamp_bits = index_bits, first_index, stamp_bits
        super().__init__(
            {
                "setup": In(stream.Signature(QUEUE_SETUP_LAYOUT)),
                "post": In(stream.Signature(POST_LAYOUT)),
                "consume": In(stream.Signature(CONSUME_LAYOUT)),
                "refused": Out(1),
                "event": Out(1),
                "event_queue": Out(QUEUE_BITS),
                "acknowledge": In(1),
                "failed": Out(1),
                "failed_queue": Out(QUEUE_BITS),
                "broken": Out(config.completion_queues),
                "dropped": Out(32),
                "watched": Out(BusWatchSignature()),
                "axi": Out(Axi4Signature(data_bits=config.bus_bits)),
            }
            | ({"rests": Out(1), "passed": In(PASSED_BITS)} if skippable else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = self.config.completion_queues
        m.submodules.fence = self._fence = BusFence()
        m.submodules.writer = self._writer = writer = BurstWriter(data_bits=self.config.bus_bits)
        m.submodules.events = self._events = EventFlags(size=queues)
        connect(m, flipped(self.axi), writer.axi)
        members = self.watched.signature.members
        m.d.comb += [getattr(self._fence.watched, name).eq(getattr(self.watched, name)) for name in members]
        # The post that is being worked on, and the queue that is looked at.
        self._have, self._posted = Signal(), Signal(POST_LAYOUT)
        self._scan = Signal(range(queues))
        self._post_queue = Mux(self._have, self._posted.queue, self.post.payload.queue)
        # The set-up's turn: no post comes before it.
        self._comes = Signal()
        # One bit a queue.
        self._enabled, self._armed, self._dead = (
            Signal(queues, name=name) for name in ("enabled", "armed", "dead")
        )
        # Steps of the state machine in this cycle: a set-up, the post's entry is collected, a burst of entries ends.
        self._set_up, self._collected, self._ended = Signal(), Signal(), Signal()
        self._end = Signal(self._index_bits)  # of the entries that are being written
        self._passed: Value = self.passed if self.skippable else Const(0)
        self._memories(m)
        self._accept(m)
        self._machine(m)
        self._set(m)
        self._consume(m)
        m.d.comb += [
            self.event.eq(self._events.any),
            self.event_queue.eq(self._events.index),
            self._events.acknowledge.eq(self.acknowledge),
        ]
        return m

    def _exists(self, queue: Value) -> Value:
        return (queue < self.config.completion_queues) & self._enabled.bit_select(queue, 1)

    def _memories(self, m: Module) -> None:
        """State of the queues in small memories: `self._state[place, name]`, `self._writes[name]`.

        Each has one writer and a reader for each place that asks.
        """
        places = {
            "post": self._post_queue,
            "scan": self._scan,
            "consume": self.consume.payload.queue,
            "setup": self.setup.payload.queue,
        }
        setup = data.StructLayout({name: shape for name, shape in _SETUP.items() if name != "queue"})
        # Running indices: collected, on the bus (so that the host may see it), answered, consumed. Then the time at
        # which the first entry not yet written was collected.
        contents: dict[str, tuple[Any, tuple[str, ...]]] = {
            "setup": (setup, ("post", "scan", "consume")),
            "produced": (self._index_bits, ("post", "scan", "setup")),
            "issued": (self._index_bits, ("consume",)),
            "written": (self._index_bits, ("post", "scan", "consume", "setup")),
            "consumed": (self._index_bits, ("post", "scan", "consume")),
            "stamp": (self._stamp_bits, ("scan",)),
        }
        self._state: dict[tuple[str, str], Any] = {}
        self._writes: dict[str, Any] = {}
        for name, (shape, readers) in contents.items():
            memory = Memory(shape=shape, depth=self.config.completion_queues, init=[])
            m.submodules[f"{name}_memory"] = memory
            self._writes[name] = memory.write_port()
            for place in readers:
                port = memory.read_port(domain="comb")
                m.d.comb += port.addr.eq(places[place])
                self._state[place, name] = port.data
        batch = self.config.completion_batch
        m.submodules.entries = entries = Memory(
            shape=ENTRY_LAYOUT.size, depth=self.config.completion_queues * batch, init=[]
        )
        self._put, self._get = entries.write_port(), entries.read_port()
        self._now = Signal(self._stamp_bits)
        m.d.sync += self._now.eq(self._now + 1 + self._passed)

    def _slot(self, queue: Value, index: Value) -> Value:
        """The place where an entry is kept until it has been written."""
        return Cat(index[: self.config.completion_batch.bit_length() - 1], queue[: len(self._scan)])

    def _write(self, m: Module, name: str, queue: Value, value: Any) -> None:
        write = self._writes[name]
        m.d.comb += [write.addr.eq(queue), write.data.eq(value), write.en.eq(1)]

    def _accept(self, m: Module) -> None:
        """Take a post; collect its entry when the state machine says so."""
        queue, post, posted, comes = self._post_queue, self.post.payload, self._posted, self._comes
        setup, produced = self._state["post", "setup"], self._state["post", "produced"]
        waiting, used, entries = (
            Signal(self._index_bits, name=name) for name in ("waiting", "used", "entries")
        )
        dead, room, able = Signal(), Signal(), Signal()
        # A post that has waited since before the set-up goes before it. A post that cannot, as its queue is full, does
        # not belong to the queue that the set-up makes.
        early, lost = Signal(), Signal()
        m.d.sync += early.eq(self.post.valid & ~self.post.ready & (early | ~self.setup.valid))
        m.d.comb += [
            waiting.eq(produced - self._state["post", "written"]),
            used.eq(produced - self._state["post", "consumed"]),
            entries.eq(1 << setup.entries_log2),
            dead.eq(~self._exists(queue) | self._dead.bit_select(queue, 1)),
            room.eq((waiting < self.config.completion_batch) & ~(setup.stall & (used >= entries))),
            able.eq(~post.entry | dead | room),
            comes.eq(self.setup.valid & ~self._have & ~(self.post.valid & early & able)),
            lost.eq(self._set_up & self.post.valid & early & (post.queue == self.setup.payload.queue)),
            self.post.ready.eq(lost | (~self._have & able & ~comes)),
        ]
        with m.If(self.post.valid & self.post.ready):
            m.d.sync += [self._have.eq(1), posted.eq(post)]
            with m.If(lost):
                m.d.sync += [posted.entry.eq(0), self.dropped.eq(self.dropped + 1)]

        overrun, entry, phase = Signal(), Signal(ENTRY_LAYOUT), Signal()
        m.d.comb += [
            overrun.eq(~setup.stall & (used >= entries - 1)),
            phase.eq(~produced.bit_select(setup.entries_log2, 1)),
            entry.bytes.eq(Mux(overrun, 0, posted.bytes)),
            entry.status.eq(Mux(overrun, CompletionStatus.OVERRUN, posted.status)),
            entry.descriptor.eq(posted.descriptor),
            entry.work_queue.eq(posted.work_queue),
            entry.phase.eq(phase),
            entry.phase_1.eq(phase),
            self._put.addr.eq(self._slot(queue, produced)),
            self._put.data.eq(entry),
        ]
        with m.If(self._collected):
            m.d.sync += self._have.eq(0)
            with m.If(posted.entry & dead):
                m.d.sync += self.dropped.eq(self.dropped + 1)
            with m.Elif(posted.entry):
                m.d.comb += self._put.en.eq(1)
                self._write(m, "produced", queue, produced + 1)
                with m.If(waiting == 0):
                    self._write(m, "stamp", queue, self._now)
                with m.If(overrun):
                    m.d.comb += self.failed.eq(1)
                    m.d.sync += [self._dead.bit_select(queue, 1).eq(1), self.failed_queue.eq(queue)]

    def _machine(self, m: Module) -> None:
        """One thing at a time: a set-up, a post, a burst of entries."""
        scan, posted, writer, fence = self._scan, self._posted, self._writer, self._fence
        clear = fence.clear
        setup, produced = self._state["scan", "setup"], self._state["scan", "produced"]
        written = self._state["scan", "written"]
        batch_bits = self.config.completion_batch.bit_length() - 1
        count, age, due, whole = Signal(self._index_bits), Signal(self._stamp_bits), Signal(), Signal()
        flush = self._comes & (scan == self.setup.payload.queue)
        m.d.comb += [
            count.eq(produced - written),
            # A burst ends where the entries reach a multiple of the batch: it crosses neither the ring's end
            # nor 4096 bytes.
            whole.eq(produced[batch_bits:] != written[batch_bits:]),
            age.eq(self._now - self._state["scan", "stamp"]),
            due.eq(
                self._enabled.bit_select(scan, 1)
                & (count != 0)
                & (whole | flush | (count >= setup.batch) | (age >= setup.lag_cycles))
            ),
        ]
        # Entries of the queue that is to be set up are still to be written.
        waiting = self._state["setup", "produced"] != self._state["setup", "written"]
        flushes = self._exists(self.setup.payload.queue) & waiting
        index, second = Signal(self._index_bits), Signal()
        status = Signal()  # the word that is being written is a status word
        posts_turn = Signal()
        word = Signal(STATUS_LAYOUT)
        bus_bytes = self.config.bus_bits // 8
        m.d.comb += [
            word.bytes.eq(posted.bytes),
            word.status.eq(posted.status),
            word.done.eq(1),
            self._get.addr.eq(self._slot(scan, index)),
            self._get.en.eq(1),
        ]
        with m.FSM() as machine:
            with m.State("idle"):
                with m.If(~due):
                    m.d.sync += scan.eq(Mux(scan == self.config.completion_queues - 1, 0, scan + 1))
                    if self.skippable:
                        with m.If(self._passed != 0):
                            m.d.sync += scan.eq((scan + 1 + self._passed) % self.config.completion_queues)
                with m.If(self._comes & ~flushes):
                    m.d.comb += self._set_up.eq(1)
                with m.Elif(self._comes & ~due):
                    m.d.sync += scan.eq(self.setup.payload.queue)
                with m.Elif(due & ~(posts_turn & self._have)):
                    m.d.comb += fence.mark.eq(1)
                    end = Mux(whole, (written[batch_bits:] + 1) << batch_bits, produced)
                    m.d.sync += [status.eq(0), index.eq(written), self._end.eq(end)]
                    m.next = "fence"
                with m.Elif(self._have & posted.write_back):
                    m.d.comb += fence.mark.eq(1)
                    m.d.sync += status.eq(1)
                    m.next = "fence"
                with m.Elif(self._have):
                    m.d.comb += self._collected.eq(1)
                    m.d.sync += posts_turn.eq(0)
            with m.State("fence"):
                entry_bus_beats = ENTRY_BYTES // bus_bytes
                place = written & ((1 << setup.entries_log2) - 1)
                m.d.comb += [
                    writer.start.valid.eq(clear),
                    writer.start.payload.address.eq(
                        Mux(
                            status,
                            posted.status_address & ~(bus_bytes - 1),
                            (setup.base & ~0x3F) + place * ENTRY_BYTES,
                        )
                    ),
                    writer.start.payload.beats.eq(
                        Mux(status, 1, (self._end - written)[: min(4, self._index_bits)] * entry_bus_beats)
                    ),
                ]
                with m.If(clear):
                    with m.If(~status):
                        self._write(m, "issued", scan, self._end)
                    m.next = "beats"
            with m.State("load"):
                m.next = "beats"
            with m.State("beats"):
                entry = self._get.data
                m.d.comb += [
                    writer.beat.valid.eq(1),
                    writer.beat.payload.data.eq(entry if bus_bytes == 8 else entry.word_select(second, 32)),
                    writer.beat.payload.strobes.eq(~0),
                ]
                with m.If(status):
                    m.d.comb += [
                        writer.beat.payload.data.eq(word.as_value().replicate(bus_bytes // 4)),
                        writer.beat.payload.strobes.eq(
                            0xF if bus_bytes == 4 else Mux(posted.status_address[2], 0xF0, 0x0F)
                        ),
                    ]
                with m.If(writer.beat.ready):
                    m.d.sync += second.eq(~second & ~status & (bus_bytes == 4))
                    with m.If(status):
                        m.next = "answer"
                    with m.Elif(second | (bus_bytes == 8)):
                        m.d.sync += index.eq(index + 1)
                        m.next = "load"
                        with m.If((index + 1)[: self._index_bits] == self._end):
                            m.next = "answer"
            with m.State("answer"), m.If(writer.done):
                m.d.comb += self._ended.eq(~status)
                with m.If(status):
                    m.d.sync += posted.write_back.eq(0)
                with m.Else():
                    m.d.sync += posts_turn.eq(1)
                    self._write(m, "written", scan, self._end)
                with m.If(writer.error):
                    failed = Mux(status, self._post_queue, scan)
                    m.d.comb += self.failed.eq(1)
                    m.d.sync += self.failed_queue.eq(failed)
                    with m.If(~status):
                        m.d.sync += [
                            self._dead.bit_select(scan, 1).eq(1),
                            self.broken.bit_select(scan, 1).eq(1),
                        ]
                    with m.Elif(posted.status == CompletionStatus.OK):
                        m.d.sync += posted.status.eq(CompletionStatus.BUS_ERROR)
                m.next = "idle"

        if self.skippable:
            self._join_rests(m, machine.ongoing("idle"))

    def _join_rests(self, m: Module, idle: Value) -> None:
        """Queues with entries that have yet to be written, and `rests`."""
        collected = Signal(self.config.completion_queues)
        with m.If(self._collected & self._put.en):
            m.d.sync += collected.bit_select(self._post_queue, 1).eq(1)
        with m.If(self._ended & (self._end == self._state["scan", "produced"])):
            m.d.sync += collected.bit_select(self._scan, 1).eq(0)
        with m.If(self._set_up):
            m.d.sync += collected.bit_select(self.setup.payload.queue, 1).eq(0)
        m.d.comb += self.rests.eq(
            idle & ~self._have & ~self.setup.valid & ~self.post.valid & (collected == 0)
        )

    def _set(self, m: Module) -> None:
        """Make a queue: empty, not armed, alive."""
        setup = self.setup.payload
        smallest = max(1, self.config.completion_batch.bit_length() - 1)
        m.d.comb += self.setup.ready.eq(self._set_up)
        with m.If(self._set_up & (setup.queue < self.config.completion_queues)):
            for name in ("produced", "issued", "written", "consumed"):
                self._write(m, name, setup.queue, self._first_index)
            self._write(m, "stamp", setup.queue, 0)
            write = self._writes["setup"]
            m.d.comb += [write.addr.eq(setup.queue), write.en.eq(1)]
            m.d.comb += [write.data[name].eq(setup[name]) for name in _SETUP if name != "queue"]
            m.d.comb += self._events.clear.eq(1 << setup.queue)
            bit = setup.queue
            m.d.sync += [
                self._enabled.bit_select(bit, 1).eq(setup.entries_log2 >= smallest),
                self._armed.bit_select(bit, 1).eq(0),
                self._dead.bit_select(bit, 1).eq(0),
                self.broken.bit_select(bit, 1).eq(0),
            ]

    def _consume(self, m: Module) -> None:
        """The consumer's index and its arming; and the events of armed queues."""
        consume, scan = self.consume.payload, self._scan
        queue = consume.queue
        setup, consumed = self._state["consume", "setup"], self._state["consume", "consumed"]
        bits = self._index_bits
        # The distances from the index that the host said before: to the one it says now, to the last entry that it may
        # see, and to the last one that it does see.
        steps, issued, written = (
            Signal(self._index_bits, name=name) for name in ("steps", "issued", "written")
        )
        takes, here = Signal(), Signal()
        m.d.comb += [
            here.eq(self._ended & (queue == scan)),
            steps.eq(consume.index - consumed),
            issued.eq(self._state["consume", "issued"] - consumed),
            # The entries of a burst that ends in this cycle count.
            written.eq(Mux(here, self._end, self._state["consume", "written"]) - consumed),
            self.consume.ready.eq(~self._set_up),
            self.refused.eq(~self._exists(queue) | (setup.owner != consume.owner) | (steps > issued)),
            takes.eq(self.consume.valid & self.consume.ready & ~self.refused),
        ]
        # A burst ends: its queue's event, if it is armed and has an entry that is not consumed.
        index = consume.index[: self._index_bits]
        last = Mux(takes & here, index, self._state["scan", "consumed"])
        wakes, finds = Signal(), Signal()
        unseen, unanswered = (issued - steps)[:bits], (issued - written)[:bits]
        m.d.comb += [
            wakes.eq(self._ended & self._armed.bit_select(scan, 1) & (self._end != last)),
            # The host may have seen entries whose write has not been answered: then it is ahead of `written`.
            finds.eq(takes & consume.arm & (unseen > unanswered)),
            self._events.set.eq((wakes << scan) | (finds << queue)),
        ]
        with m.If(wakes):
            m.d.sync += self._armed.bit_select(scan, 1).eq(0)
        with m.If(takes):
            self._write(m, "consumed", queue, consume.index)
            with m.If(consume.arm):
                m.d.sync += self._armed.bit_select(queue, 1).eq(~finds)


_SETUP = {name: field.width for name, field in QUEUE_SETUP_LAYOUT}
