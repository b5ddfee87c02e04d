"""Receive rings: the buffers that processes post, fetched before they are needed."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...arbiter.numbered_round_robin import NumberedRoundRobin
from ...axi import Axi4Signature
from ...config.hca import BUS_BITS, HcaConfig
from ..layout import INDEX_BITS, QP_BITS, RECEIVE_WQE_BYTES, RECEIVE_WQE_LAYOUT
from .layout import BUFFER_LAYOUT, RECEIVE_DOORBELL, RECEIVE_QP

__all__ = ["AHEAD", "ReceiveRings"]

AHEAD = 4
"""Elements that are fetched ahead, a queue pair: a power of two.

A fetch waits for the bus behind a burst of the messages that are sent. Packets of 40 flits come every 40 cycles
meanwhile. With one element ahead a queue pair takes a packet each time that the bus takes. Four are 160 cycles.
"""
_AHEAD_LOG2 = AHEAD.bit_length() - 1
_COUNT_BITS = _AHEAD_LOG2 + 1
"""Running indices whose difference is 0 to `AHEAD` are told apart by so many bits."""


class ReceiveRings(wiring.Component):
    """The receive rings of all queue pairs, with `AHEAD` fetched elements a queue pair (yum-2006 3.2: work queues).

    Members:

    - `setup` (in, `RECEIVE_QP`), `sets` (in): a queue pair is set up, its ring empty. Only while it `rests`.
    - `doorbell` (in, stream of `RECEIVE_DOORBELL`): elements are posted; taken at once but in the cycle of a set-up.
    - `refused` (out): that write does nothing. The queue pair is not open, or not the page's, or the index is none that
      the ring could have. Such an index goes back, or says that there are more elements than places.
    - `refusals` (out, 32): refused writes since reset, modulo 2^32.
    - `ask` (in), `ask_qp` (in): the next element of a queue pair is wanted. `ask_qp` has stood since the cycle before.
    - `none` (out): it has posted none.
    - `found` (out), `buffer` (out, `BUFFER_LAYOUT`): this one. Without both it is on its way.
    - `take` (in): that element is used up. Only with `found`.
    - `hold` (in): no fetch is begun, but for the element that is asked for.
    - `axi` (out, `Axi4Signature` of 128 bits): reads of up to `AHEAD` beats, ID 0, one at a time. None goes over a
      multiple of `AHEAD` elements' bytes, so none over a page.
    - `rests` (out): no fetch is under way.
    - `quiet` (out): it rests, nothing is to be fetched, and no register changes but by an input.

    Elements are fetched when they are posted and fewer than `AHEAD` are fetched and not taken. One that is asked for
    goes first, the others take turns.

    Latency: an element that is posted in cycle t is asked of the bus in t + 3, and found in the second cycle after its
    beat. The one after it is found 2 cycles after `take`. Throughput: a doorbell a cycle; a fetch every 4 cycles, the
    bus's time and a cycle for each element beyond one. Reset: no queue pair is open.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "setup": In(RECEIVE_QP),
                "sets": In(1),
                "doorbell": In(stream.Signature(RECEIVE_DOORBELL)),
                "refused": Out(1),
                "refusals": Out(32),
                "ask": In(1),
                "ask_qp": In(QP_BITS),
                "none": Out(1),
                "found": Out(1),
                "buffer": Out(BUFFER_LAYOUT),
                "take": In(1),
                "hold": In(1),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "rests": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pairs, axi = self.config.queue_pairs, self.axi
        # A bit a queue pair: it is open, has elements that are not fetched, has some that are, as many as it may.
        self._opened, self._more, self._held, self._full = (
            Signal(pairs, name=n) for n in ("opened", "more", "held", "full")
        )
        m.submodules.turns = turns = NumberedRoundRobin(size=pairs)
        fetched_qp = Signal(QP_BITS)  # whose element is being fetched
        known = self.setup.qp < pairs
        sets = self.sets & known
        self._memories(m, fetched_qp, sets)
        wants = Signal(pairs)
        asked, demanded, fetches = Signal(), Signal(), Signal()
        m.d.comb += [
            wants.eq(self._more & ~self._full),
            asked.eq(self.ask & (self.ask_qp < pairs)),
            demanded.eq(asked & self._bit(wants, self.ask_qp)),
            turns.requests.eq(wants),
        ]

        # Words that a ring has at most, less those that have been fetched, may be posted.
        index, posted, fetched = self.doorbell.payload.index, self._posted["ring"], self._fetched["ring"]
        row, ring_qp = self._row["ring"], self.doorbell.payload.qp
        ahead, waiting, rings = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal()
        wrong = Signal()
        m.d.comb += [
            self.doorbell.ready.eq(~self.sets),
            ahead.eq(index - fetched),
            waiting.eq(posted - fetched),
            wrong.eq(
                (ring_qp >= pairs)
                | ~self._bit(self._opened, ring_qp)
                | (row.owner != self.doorbell.payload.owner)
                | (ahead > 1 << row.entries_log2)
                | (ahead < waiting)
            ),
            self.refused.eq(self.doorbell.valid & ~self.sets & wrong),
            rings.eq(self.doorbell.valid & ~self.sets & ~wrong),
        ]
        with m.If(self.refused):
            m.d.sync += self.refusals.eq(self.refusals + 1)

        at = self._fetched["fetch"]
        word = RECEIVE_WQE_LAYOUT(axi.rdata)
        beats, left = self._burst(m), Signal(_COUNT_BITS)
        took, same = (
            Signal(),
            Signal(),
        )  # an element was taken in the cycle before; one of the queue pair that fetches is
        next_fetched, next_taken = Signal(INDEX_BITS), Signal(_COUNT_BITS)
        m.d.sync += took.eq(self.take)
        m.d.comb += [
            axi.arlen.eq(beats - 1),
            same.eq(self.take & (self.ask_qp == fetched_qp)),
            next_fetched.eq(at + 1),
            next_taken.eq(self._taken["ask"] + 1),
            axi.arsize.eq((BUS_BITS // 8 - 1).bit_length()),
            axi.arburst.eq(1),  # INCR
            axi.rready.eq(1),
            axi.bready.eq(1),
            *(self._put.data[name].eq(word[name]) for name, _ in BUFFER_LAYOUT if name != "failed"),
            self._put.data.failed.eq(axi.rresp[1]),
            self._put.addr.eq(Cat(at[:_AHEAD_LOG2], fetched_qp)),
        ]
        with m.If(self.take):
            m.d.sync += [
                self._held.bit_select(self.ask_qp, 1).eq(self._low["ask"] != next_taken),
                self._full.bit_select(self.ask_qp, 1).eq(0),
            ]
        with m.FSM() as machine:
            # A message that stands waits for its buffer, and a set-up for it: that fetch is begun all the same.
            with m.State("idle"), m.If((~self.hold | demanded) & turns.any):
                m.d.comb += turns.advance.eq(~demanded)
                m.d.sync += fetched_qp.eq(Mux(demanded, self.ask_qp, turns.number))
                m.next = "address"
            with m.State("address"):
                m.d.comb += axi.arvalid.eq(1)
                m.d.sync += left.eq(beats)
                with m.If(axi.arready):
                    m.next = "data"
            with m.State("data"), m.If(axi.rvalid):
                m.d.comb += [fetches.eq(1), self._put.en.eq(1)]
                held = (next_fetched - self._taken["fetch"] - same)[:_COUNT_BITS]
                m.d.sync += [
                    left.eq(left - 1),
                    self._held.bit_select(fetched_qp, 1).eq(1),
                    self._full.bit_select(fetched_qp, 1).eq(held == AHEAD),
                ]
                with m.If(next_fetched == self._posted["fetch"]):
                    m.d.sync += self._more.bit_select(fetched_qp, 1).eq(0)
                with m.If(left == 1):
                    m.next = "idle"
        # After the fetch, so that an element that is posted in the cycle of the last one's fetch is not forgotten.
        with m.If(rings & (index != posted)):
            m.d.sync += self._more.bit_select(ring_qp, 1).eq(1)
        with m.If(sets):
            m.d.sync += [
                self._opened.bit_select(self.setup.qp, 1).eq(self.setup.open),
                self._more.bit_select(self.setup.qp, 1).eq(0),
                self._held.bit_select(self.setup.qp, 1).eq(0),
                self._full.bit_select(self.setup.qp, 1).eq(0),
            ]
        for name, place, enable, value in (
            ("posted", ring_qp, rings, index),
            ("fetched", fetched_qp, fetches, next_fetched),
            ("low", fetched_qp, fetches, next_fetched),
            ("taken", self.ask_qp, self.take, next_taken),
        ):
            write = self._writers[name]
            m.d.comb += [
                write.addr.eq(Mux(sets, self.setup.qp, place)),
                write.data.eq(Mux(sets, 0, value)),
                write.en.eq(sets | enable),
            ]
        m.d.comb += [
            # In the cycle after a take the element before is still read.
            self.found.eq(asked & ~took & self._bit(self._held, self.ask_qp)),
            self.none.eq(
                self.ask
                & ~(asked & (self._bit(self._held, self.ask_qp) | self._bit(self._more, self.ask_qp)))
            ),
            self.rests.eq(machine.ongoing("idle")),
            self.quiet.eq(self.rests & ~(turns.any | self.doorbell.valid | self.sets | self.ask | took)),
        ]
        return m

    def _burst(self, m: Module) -> Signal:
        """Elements of the fetch, 1 to `AHEAD`: they are posted, have room, and end at the ring's end or a boundary."""
        row, axi = self._row["fetch"], self.axi
        fetched, posted = self._fetched["fetch"], self._posted["fetch"]
        waiting, place, to_end = (Signal(INDEX_BITS, name=n) for n in ("unfetched", "place", "to_end"))
        room, to_boundary = Signal(_COUNT_BITS, name="room"), Signal(_COUNT_BITS, name="to_boundary")
        bytes_log2 = RECEIVE_WQE_BYTES.bit_length() - 1
        m.d.comb += [
            place.eq(fetched & ((1 << row.entries_log2) - 1)),
            axi.araddr.eq((row.base & ~(RECEIVE_WQE_BYTES - 1)) + place * RECEIVE_WQE_BYTES),
            waiting.eq(posted - fetched),
            room.eq(AHEAD - (fetched - self._taken["fetch"])[:_COUNT_BITS]),
            to_end.eq((1 << row.entries_log2) - place),
            to_boundary.eq(AHEAD - axi.araddr[bytes_log2 : bytes_log2 + _AHEAD_LOG2]),
        ]
        fewest: Value = Const(AHEAD)
        for number, limit in enumerate((waiting, room, to_end, to_boundary)):
            most = Signal(_COUNT_BITS, name=f"most_{number}")
            m.d.comb += most.eq(Mux(limit < fewest, limit, fewest))
            fewest = most
        return fewest

    def _bit(self, bits: Value, number: Value) -> Value:
        return bits.bit_select(number, 1)

    def _memories(self, m: Module, fetched_qp: Value, sets: Value) -> None:
        """Rings and their running indices, with a reader for each user; fetched elements.

        `low` is the low bits of `fetched`, which a taker compares with `taken`.
        """
        pairs, setup = self.config.queue_pairs, self.setup
        fields = {name: RECEIVE_QP[name].width for name in ("owner", "base", "entries_log2")}
        places = {"ring": self.doorbell.payload.qp, "fetch": fetched_qp, "ask": self.ask_qp}
        tables = {
            "row": (data.StructLayout(fields), ("ring", "fetch")),
            "posted": (INDEX_BITS, ("ring", "fetch")),
            "fetched": (INDEX_BITS, ("ring", "fetch")),
            "low": (_COUNT_BITS, ("ask",)),
            "taken": (_COUNT_BITS, ("fetch", "ask")),
        }
        self._writers: dict[str, Any] = {}
        readers: dict[str, dict[str, Any]] = {}
        for name, (shape, users) in tables.items():
            m.submodules[name] = table = memory.Memory(shape=shape, depth=pairs, init=[])
            self._writers[name] = table.write_port()
            readers[name] = {}
            for place in users:
                port = table.read_port(domain="comb")
                m.d.comb += port.addr.eq(places[place])
                readers[name][place] = port.data
        self._row, self._posted, self._fetched = (readers[name] for name in ("row", "posted", "fetched"))
        self._low, self._taken = readers["low"], readers["taken"]
        row = self._writers["row"]
        m.d.comb += [
            row.addr.eq(setup.qp),
            row.en.eq(sets),
            *(row.data[name].eq(setup[name]) for name in fields),
        ]
        m.submodules.buffers = buffers = memory.Memory(shape=BUFFER_LAYOUT, depth=pairs * AHEAD, init=[])
        self._put = buffers.write_port()
        # The reader sees an element in the cycle after it was put, when it is found.
        get = buffers.read_port(transparent_for=(self._put,))
        m.d.comb += [
            get.addr.eq(Cat(self._taken["ask"][:_AHEAD_LOG2], self.ask_qp)),
            get.en.eq(1),
            self.buffer.eq(get.data),
        ]
