"""Completion queues of an adapter: rings in host memory that its engines fill and processes read."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter.round_robin import RoundRobinArbiter
from ..axi import Axi4Signature
from ..config import ConfigError
from ..config.hca import BUS_BITS, HcaConfig
from .layout import CQ_BITS, CQE_BYTES, CQE_LAYOUT, INDEX_BITS, OWNER_BITS, CqeStatus

__all__ = [
    "COMPLETION_CONSUME",
    "COMPLETION_POST",
    "COMPLETION_SETUP",
    "WRITES_UNDER_WAY",
    "CompletionWriter",
]

WRITES_UNDER_WAY = 8
"""Entries whose write the bus has not answered. A bus that answers after 20 cycles takes an entry every 3 cycles."""

COMPLETION_POST = data.StructLayout({"queue": CQ_BITS, "entry": CQE_LAYOUT})
"""An entry for a completion queue. The writer fills in its `phase`."""

COMPLETION_SETUP = data.StructLayout({"queue": CQ_BITS, "owner": OWNER_BITS, "base": 32, "entries_log2": 4})
"""The set-up of completion queue `queue`: the owner whose page consumes it, and its ring of 2^`entries_log2` entries.

- `base`: of the ring in host memory, a multiple of 16; its low bits are ignored.
- `entries_log2`: 0 switches the queue off.
"""

COMPLETION_CONSUME = data.StructLayout({"queue": CQ_BITS, "owner": OWNER_BITS, "index": INDEX_BITS})
"""The write of a process into page `owner`: all entries of the queue before running index `index` are done with."""


class CompletionWriter(wiring.Component):
    """Writes entries into `completion_queues` rings (yum-2006 3.2: completion queues).

    Parameters: `sources`: engines that post. In tests and proofs also `index_bits`, the width of running indices, and
    `first_index`, that of a queue's first entry, which take them over their wrap.

    Members:

    - `setup` (in, stream of `COMPLETION_SETUP`): make or remake a queue, empty. It is taken when all writes have been
      answered, before any post that comes after it. So nothing is written into the old ring after it.
    - `post_0` to `post_{sources-1}` (in, streams of `COMPLETION_POST`): entries. Sources take turns.
    - `consume` (in, stream of `COMPLETION_CONSUME`): a consumer's write, taken at once but in the cycle of a set-up.
    - `refused` (out): that write does nothing, as the queue is not the owner's, or no entry has been written there.
    - `completed` (out), `completed_queue` (out): in this cycle the bus answers that an entry of the queue is written.
    - `dead` (out, a bit a queue): queues that were overrun, or whose write the bus answered with an error. They stay
      so until they are set up again.
    - `refusals` (out, 32): refused writes.
    - `overruns` (out, 32): entries whose place an entry with status OVERRUN took.
    - `dropped` (out, 32): entries for queues that were dead or not set up.
    - `bus_errors` (out, 32): entries that the bus answered with an error.
    - `axi` (out, `Axi4Signature` of 128 bits): writes of one beat, ID 0, `WRITES_UNDER_WAY` at most.
    - `quiet` (out): no entry waits or is under way, and no register changes but by an input.

    Counters are modulo 2^32, since reset.

    An entry that has not been consumed is never written over: the last free entry of a ring says OVERRUN, and its queue
    is dead. A post for a dead queue is taken as fast as any other one. So no source waits for the owner of a queue. It
    waits for one post of each other source and for the bus, whose answers to at most `WRITES_UNDER_WAY` writes go
    before.

    Latency: a post taken in cycle t is on the bus in t + 2. Throughput: a post a cycle while the bus takes a write a
    cycle. Reset: no queue is set up.

    Raises ConfigError for less than 1 source.
    """

    def __init__(
        self,
        config: HcaConfig,
        *,
        sources: int = 2,
        index_bits: int = INDEX_BITS,
        first_index: int = 0,
    ) -> None:
        if sources < 1:
            raise ConfigError(f"CompletionWriter: sources = {sources}: at least 1")
        self.config, self.sources = config, sources
        self._index_bits, self._first_index = index_bits, first_index
        posts = {f"post_{i}": In(stream.Signature(COMPLETION_POST)) for i in range(sources)}
        super().__init__(
            {
                "setup": In(stream.Signature(COMPLETION_SETUP)),
                **posts,
                "consume": In(stream.Signature(COMPLETION_CONSUME)),
                "refused": Out(1),
                "completed": Out(1),
                "completed_queue": Out(CQ_BITS),
                "dead": Out(config.completion_queues),
                "refusals": Out(32),
                "overruns": Out(32),
                "dropped": Out(32),
                "bus_errors": Out(32),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, setup = self.axi, self.setup.payload
        m.submodules.under_way = under_way = fifo.SyncFIFO(width=CQ_BITS, depth=WRITES_UNDER_WAY)
        have, posted = Signal(), Signal(COMPLETION_POST)
        goes = Signal()  # the post leaves its register
        sets = Signal()
        self._memories(m, posted.queue, sets)
        offered = self._take_turns(m, have, goes, posted)

        # A post: an entry, the last one that says OVERRUN, or nothing.
        row, produced = self._row["post"], self._produced["post"]
        used, entries, phase = Signal(self._index_bits), Signal(self._index_bits), Signal()
        lost, overrun = Signal(), Signal()
        room = (~axi.awvalid | axi.awready) & (~axi.wvalid | axi.wready) & under_way.w_rdy
        entry = Signal(CQE_LAYOUT)
        m.d.comb += [
            used.eq(produced - self._consumed["post"]),
            entries.eq(1 << row.entries_log2),
            phase.eq(~produced.bit_select(row.entries_log2, 1)),
            lost.eq(~self._exists(posted.queue) | self._bit(self.dead, posted.queue)),
            overrun.eq(used >= entries - 1),
            goes.eq(have & (lost | room)),
            entry.eq(posted.entry),
            under_way.w_data.eq(posted.queue),
            under_way.w_en.eq(goes & ~lost),
        ]
        with m.If(overrun):
            m.d.comb += [entry.eq(0), entry.status.eq(CqeStatus.OVERRUN)]
        m.d.comb += entry.phase.eq(phase)
        m.d.comb += [
            axi.awsize.eq((BUS_BITS // 8).bit_length() - 1),
            axi.awburst.eq(1),  # INCR
            axi.wstrb.eq(~0),
            axi.wlast.eq(1),
            axi.bready.eq(1),
            axi.rready.eq(1),
        ]
        with m.If(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(axi.wready):
            m.d.sync += axi.wvalid.eq(0)
        with m.If(goes & lost):
            m.d.sync += self.dropped.eq(self.dropped + 1)
        with m.If(goes & ~lost):
            place = produced & (entries - 1)
            m.d.sync += [
                axi.awvalid.eq(1),
                axi.awaddr.eq((row.base & ~(CQE_BYTES - 1)) + place * CQE_BYTES),
                axi.wvalid.eq(1),
                axi.wdata.eq(entry),
            ]
            with m.If(overrun):
                m.d.sync += [
                    self.overruns.eq(self.overruns + 1),
                    self.dead.bit_select(posted.queue, 1).eq(1),
                ]
        with m.If(~sets):
            self._write(m, "produced", posted.queue, produced + 1, goes & ~lost)

        # Answers, in the order of the writes.
        answered = axi.bvalid & under_way.r_rdy
        m.d.comb += [
            under_way.r_en.eq(answered),
            self.completed.eq(answered & ~axi.bresp[1]),
            self.completed_queue.eq(under_way.r_data),
        ]
        with m.If(answered & axi.bresp[1]):
            m.d.sync += [
                self.bus_errors.eq(self.bus_errors + 1),
                self.dead.bit_select(under_way.r_data, 1).eq(1),
            ]

        # A set-up, when all that was posted before it has been written and answered.
        idle = ~have & (under_way.level == 0)
        m.d.comb += [self.setup.ready.eq(idle), sets.eq(self.setup.valid & idle)]
        with m.If(sets & (setup.queue < self.config.completion_queues)):
            self._write(m, "produced", setup.queue, self._first_index, 1)
            m.d.sync += [
                self._enabled.bit_select(setup.queue, 1).eq(setup.entries_log2 != 0),
                self.dead.bit_select(setup.queue, 1).eq(0),
            ]
        self._consume(m, sets)
        m.d.comb += self.quiet.eq(idle & ~(offered | self.setup.valid | self.consume.valid))
        return m

    def _take_turns(self, m: Module, have: Signal, goes: Signal, posted: data.View) -> Value:
        """Posts of the sources into `posted`, one after the other; returns whether there is one."""
        posts = [getattr(self, f"post_{i}") for i in range(self.sources)]
        m.submodules.turns = turns = RoundRobinArbiter(size=self.sources)
        takes = Signal()
        m.d.comb += [
            takes.eq((~have | goes) & ~self.setup.valid),
            turns.requests.eq(Cat(post.valid for post in posts)),
            turns.advance.eq(takes),
        ]
        with m.If(goes):
            m.d.sync += have.eq(0)
        for i, post in enumerate(posts):
            m.d.comb += post.ready.eq(takes & turns.grant[i])
            with m.If(takes & turns.grant[i]):
                m.d.sync += [have.eq(1), posted.eq(post.payload)]
        return turns.requests.any()

    def _memories(self, m: Module, queue: Value, sets: Value) -> None:
        """State of the queues, with a reader for posts and one for consumers."""
        setup = self.setup.payload
        places = {"post": queue, "consume": self.consume.payload.queue}
        fields = {name: field.width for name, field in COMPLETION_SETUP if name != "queue"}
        shapes = {
            "row": data.StructLayout(fields),
            "produced": self._index_bits,
            "consumed": self._index_bits,
        }
        self._enabled = Signal(self.config.completion_queues)
        self._writers, readers = {}, {}
        for name, shape in shapes.items():
            m.submodules[name] = table = memory.Memory(
                shape=shape, depth=self.config.completion_queues, init=[]
            )
            self._writers[name] = table.write_port()
            for place, number in places.items():
                port = table.read_port(domain="comb")
                m.d.comb += port.addr.eq(number)
                readers[name, place] = port.data
        self._row = {place: readers["row", place] for place in places}
        self._produced = {place: readers["produced", place] for place in places}
        self._consumed = {place: readers["consumed", place] for place in places}
        row = self._writers["row"]
        m.d.comb += [
            row.addr.eq(setup.queue),
            row.en.eq(sets & (setup.queue < self.config.completion_queues)),
            *(row.data[name].eq(setup[name]) for name in fields),
        ]

    def _write(self, m: Module, name: str, queue: Value, value: Value | int, enable: Value | int) -> None:
        port = self._writers[name]
        m.d.comb += [port.addr.eq(queue), port.data.eq(value), port.en.eq(enable)]

    def _bit(self, bits: Value, queue: Value) -> Value:
        return bits.bit_select(queue, 1)

    def _exists(self, queue: Value) -> Value:
        return (queue < self.config.completion_queues) & self._bit(self._enabled, queue)

    def _consume(self, m: Module, sets: Value) -> None:
        """The indices of consumers, which a set-up begins anew."""
        consume, setup = self.consume.payload, self.setup.payload
        queue, consumed = consume.queue, self._consumed["consume"]
        index = consume.index[: self._index_bits]
        ahead, written, takes = Signal(self._index_bits), Signal(self._index_bits), Signal()
        m.d.comb += [
            ahead.eq(index - consumed),
            written.eq(self._produced["consume"] - consumed),
            self.consume.ready.eq(~sets),
            takes.eq(self.consume.valid & ~sets),
            self.refused.eq(
                takes
                & (~self._exists(queue) | (self._row["consume"].owner != consume.owner) | (ahead > written))
            ),
        ]
        with m.If(self.refused):
            m.d.sync += self.refusals.eq(self.refusals + 1)
        chosen = Mux(sets, setup.queue, queue)
        known = sets & (setup.queue < self.config.completion_queues)
        self._write(
            m, "consumed", chosen, Mux(sets, self._first_index, index), known | (takes & ~self.refused)
        )
