"""The judgement of packets: which message of which queue pair, into which buffer, and how messages end."""

from __future__ import annotations

from enum import IntEnum

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config.hca import HcaConfig
from ...nic.owners.protection import ACCESS_LAYOUT, SEGMENT_LAYOUT
from ..layout import CONTROL_VL, MESSAGE_BITS, QP_BITS, CqeStatus
from ..memory_check import BUS_BYTES
from .layout import BUFFER_LAYOUT, PACKET_LAYOUT, RECEIVE_QP, WRITE_LAYOUT

__all__ = ["DROPS", "Progress", "ReceiveMessages"]


class Progress(IntEnum):
    """The state of a queue pair's message."""

    NONE = 0
    BEGUN = 1  # it has a buffer
    LOST = 2  # it is given up: its rest is dropped


DROPS = {
    "closed_drops": "the queue pair does not exist or is not open",
    "foreign_drops": "the queue pair is connected with another one than the packet's sender",
    "life_drops": "the packet is for, or of its peer's, earlier life of the number",
    "lane_drops": "it came on VL 15, and the queue pair is not for control packets, or the other way round",
    "order_drops": "the packet is not the next one of a message: its number, its flags or its lengths are others",
    "rest_drops": "the packet's message has been given up before",
    "buffer_drops": "no buffer was posted for the packet's message",
    "ended_drops": "the packet's message has just ended with an error, which the completion says",
}
"""The kinds of packets that are dropped, each of which is counted."""

_ALIGNED_BITS = (BUS_BYTES - 1).bit_length()


class ReceiveMessages(wiring.Component):
    """Judges each packet by its queue pair, and says what is written and which message ends.

    Members:

    - `setup` (in, `RECEIVE_QP`), `sets` (in): a queue pair is set up. Only while it `rests`.
    - `packet` (in, stream of `PACKET_LAYOUT`): good packets, one at a time.
    - `hold` (in): no packet is begun.
    - `ask`, `ask_qp`, `take` (out), `none`, `found`, `buffer` (in): to `ReceiveRings`.
    - `access` (out, stream of `ACCESS_LAYOUT`), `segment` (in, stream of `SEGMENT_LAYOUT`): to `MemoryCheck`.
    - `write` (out, stream of `WRITE_LAYOUT`): the outcome. Each packet has one that `releases` it.
    - The counters of `DROPS` (out, 32): packets dropped, by kind, modulo 2^32 since reset.
    - `rests` (out): no packet is being judged.

    A packet that `DROPS` has a kind for touches no memory. The first kind that fits counts.

    - A message begins with a packet that is `first`, of number 0. It takes the oldest buffer posted.
    - Its packets have consecutive numbers. All but the last have a multiple of 16 bytes. The last makes the length that
      all of them tell.
    - It ends with the completion of its last packet, or with the first error. Its rest is then dropped.
    - A message under way whose next packet is another one ends with PARTIAL, and so does one whose queue pair begins
      another message.
    - The bytes of each packet are checked in the buffer's region before they are written. A later packet of a message
      may end it with a check's status, though the first ones were written.

    `bytes` of a completion are those that were written, also if it ends with an error of the check or PARTIAL.

    Latency: from `packet` to `write` 5 cycles, 2 more if it begins a message, and the latency of `MemoryCheck` if it is
    not dropped. Throughput: one packet at a time. It waits only for the bus: for a buffer that is posted but not
    fetched, for a page table entry, or for `write`. Reset: no queue pair is open.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "setup": In(RECEIVE_QP),
                "sets": In(1),
                "packet": In(stream.Signature(PACKET_LAYOUT)),
                "hold": In(1),
                "ask": Out(1),
                "ask_qp": Out(QP_BITS),
                "take": Out(1),
                "none": In(1),
                "found": In(1),
                "buffer": In(BUFFER_LAYOUT),
                "access": Out(stream.Signature(ACCESS_LAYOUT)),
                "segment": In(stream.Signature(SEGMENT_LAYOUT)),
                "write": Out(stream.Signature(WRITE_LAYOUT)),
                **{name: Out(32) for name in DROPS},
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        packet, buffer = self.packet.payload, self.buffer
        self._memories(m)
        pair, state = self._pair, self._state
        # The judgement of the packet, while `pair` and `state` are those of its queue pair.
        after = Signal(MESSAGE_BITS + 1)
        fits, begins, follows = Signal(), Signal(), Signal()
        foreign, wrong_life, wrong_lane = Signal(), Signal(), Signal()
        m.d.comb += [
            self.ask_qp.eq(packet.qp),
            after.eq(Mux(packet.first, 0, state.received) + packet.bytes),
            fits.eq(
                Mux(
                    packet.last,
                    after == packet.total_bytes,
                    (after < packet.total_bytes) & (packet.bytes[:_ALIGNED_BITS] == 0),
                )
            ),
            begins.eq(packet.first & fits & (packet.number == 0) & (pair.connected | packet.last)),
            follows.eq(
                ~packet.first
                & fits
                & (state.progress == Progress.BEGUN)
                & (packet.number == state.next)
                & (packet.total_bytes == state.total)
            ),
            foreign.eq(pair.connected & ((packet.source != pair.peer) | (packet.source_qp != pair.peer_qp))),
            wrong_life.eq(
                (packet.life != pair.life) | (pair.connected & (packet.source_life != pair.peer_life))
            ),
            wrong_lane.eq(pair.control != (packet.vl == CONTROL_VL)),
        ]
        # The message as it will stand, and the outcome, which both leave in one state.
        message = Signal.like(state)
        outcome, goes_on = Signal(WRITE_LAYOUT), Signal()
        second = Signal()  # the next segment is the packet's second one
        m.d.comb += [
            self.write.payload.eq(outcome),
            self.access.payload.channel.eq(packet.qp),
            self.access.payload.region.eq(message.region),
            self.access.payload.key.eq(message.key),
            self.access.payload.address.eq(message.address + message.received),
            self.access.payload.bytes.eq(packet.bytes),
            self.access.payload.write.eq(1),
        ]
        entry = outcome.post.entry

        def end(status: CqeStatus | Value, received: Value | int) -> list[object]:
            """The message ends with a completion, and what comes of it is dropped."""
            return [
                outcome.ends.eq(1),
                entry.status.eq(status),
                entry.bytes.eq(received),
                message.progress.eq(Progress.LOST),
            ]

        def count(name: str) -> object:
            counter = getattr(self, name)
            return counter.eq(counter + 1)

        with m.FSM() as machine:
            with m.State("idle"), m.If(self.packet.valid & ~self.hold):
                m.next = "judge"
            with m.State("judge"):
                m.d.sync += [
                    message.eq(state),
                    outcome.eq(0),
                    outcome.slot.eq(packet.slot),
                    outcome.releases.eq(1),
                    outcome.qp.eq(packet.qp),
                    outcome.post.queue.eq(pair.queue),
                    entry.tag.eq(state.tag),
                    entry.qp.eq(packet.qp),
                    entry.receive.eq(1),
                    entry.source.eq(packet.source),
                    entry.source_qp.eq(packet.source_qp),
                    entry.vl.eq(packet.vl),
                    entry.kind.eq(packet.kind),
                    entry.life.eq(pair.life),
                    goes_on.eq(0),
                    second.eq(0),
                ]
                m.next = "outcome"
                with m.If((packet.qp >= self.config.queue_pairs) | ~pair.open):
                    m.d.sync += count("closed_drops")
                with m.Elif(foreign):
                    m.d.sync += count("foreign_drops")
                with m.Elif(wrong_life):
                    m.d.sync += count("life_drops")
                with m.Elif(wrong_lane):
                    m.d.sync += count("lane_drops")
                with m.Elif(follows):
                    m.next = "check"
                with m.Elif(~packet.first & (state.progress == Progress.LOST)):
                    m.d.sync += count("rest_drops")
                with m.Else():
                    with m.If(state.progress == Progress.BEGUN):
                        m.d.sync += end(CqeStatus.PARTIAL, state.received)
                    with m.If(begins):
                        # The end of the message before, if there is one, goes first, and leaves the packet in place.
                        m.d.sync += [outcome.releases.eq(0), goes_on.eq(1)]
                        with m.If(state.progress != Progress.BEGUN):
                            m.next = "buffer"
                    with m.Else():
                        m.d.sync += count("order_drops")
            with m.State("buffer"):
                m.d.comb += self.ask.eq(1)
                m.d.sync += [
                    outcome.ends.eq(0),
                    outcome.releases.eq(1),
                    goes_on.eq(0),
                    message.progress.eq(Progress.BEGUN),
                    message.next.eq(0),
                    message.received.eq(0),
                    message.total.eq(packet.total_bytes),
                    *(message[name].eq(buffer[name]) for name in ("address", "tag", "region", "key")),
                    entry.tag.eq(buffer.tag),
                    entry.status.eq(CqeStatus.OK),
                    entry.bytes.eq(0),
                ]
                with m.If(self.none):
                    m.d.sync += [count("buffer_drops"), message.progress.eq(Progress.LOST)]
                    m.next = "outcome"
                with m.Elif(self.found):
                    m.d.comb += self.take.eq(1)
                    m.next = "check"
                    with m.If(buffer.failed):
                        m.d.sync += [*end(CqeStatus.BUS_ERROR, 0), entry.tag.eq(0), count("ended_drops")]
                        m.next = "outcome"
                    with m.Elif(packet.total_bytes > buffer.bytes):
                        m.d.sync += [*end(CqeStatus.TOO_LONG, 0), count("ended_drops")]
                        m.next = "outcome"
            with m.State("check"):
                m.d.comb += self.access.valid.eq(1)
                with m.If(self.access.ready):
                    m.next = "segment"
            with m.State("segment"):
                segment = self.segment.payload
                m.d.comb += self.segment.ready.eq(1)
                with m.If(self.segment.valid):
                    m.d.sync += second.eq(1)
                    with m.If(second):
                        m.d.sync += [
                            outcome.next_address.eq(segment.address),
                            outcome.next_bytes.eq(segment.bytes),
                        ]
                    with m.Else():
                        m.d.sync += [outcome.address.eq(segment.address), outcome.bytes.eq(segment.bytes)]
                    with m.If(segment.last):
                        m.next = "outcome"
                    with m.If(segment.status != CqeStatus.OK):
                        m.d.sync += [*end(segment.status, message.received), count("ended_drops")]
                    with m.Else():
                        m.d.sync += [
                            message.next.eq(packet.number + 1),
                            message.received.eq(message.received + Mux(segment.last, packet.bytes, 0)),
                        ]
                        with m.If(packet.last & segment.last):
                            m.d.sync += [
                                outcome.ends.eq(1),
                                entry.bytes.eq(packet.total_bytes),
                                entry.with_immediate.eq(packet.with_immediate),
                                entry.immediate.eq(Mux(packet.with_immediate, packet.immediate, 0)),
                                message.progress.eq(Progress.NONE),
                            ]
            with m.State("outcome"):
                m.d.comb += self.write.valid.eq(1)
                with m.If(self.write.ready):
                    m.d.comb += [self.packet.ready.eq(~goes_on), self._saves.eq(1)]
                    m.next = "idle"
                    with m.If(goes_on):
                        m.next = "buffer"
        m.d.comb += [
            self._saved.eq(message),
            self.rests.eq(machine.ongoing("idle") & (self.hold | ~self.packet.valid)),
        ]
        return m

    def _memories(self, m: Module) -> None:
        """Set-ups and messages of the queue pairs: `_pair` and `_state` are those of the packet, a cycle later.

        `_saved` is the state that is written while `_saves` is up.
        """
        pairs, setup = self.config.queue_pairs, self.setup
        names = ("open", "connected", "peer", "peer_qp", "control", "life", "peer_life", "queue")
        fields = {name: RECEIVE_QP[name].width for name in names}
        state = data.StructLayout(
            {
                "progress": 2,
                "next": 8,
                "received": MESSAGE_BITS,
                "total": MESSAGE_BITS,
                **{name: BUFFER_LAYOUT[name].width for name in ("address", "tag", "region", "key")},
            }
        )
        sets = self.sets & (setup.qp < pairs)
        m.submodules.pairs = table = memory.Memory(shape=data.StructLayout(fields), depth=pairs, init=[])
        write, read = table.write_port(), table.read_port()
        m.d.comb += [
            write.addr.eq(setup.qp),
            write.en.eq(sets),
            read.en.eq(1),
            read.addr.eq(self.packet.payload.qp),
        ]
        m.d.comb += [write.data[name].eq(setup[name]) for name in fields]
        m.submodules.messages = messages = memory.Memory(shape=state, depth=pairs, init=[])
        save, load = messages.write_port(), messages.read_port()
        self._saved, self._saves = Signal(state), Signal()
        known = self.packet.payload.qp < pairs
        m.d.comb += [
            save.addr.eq(Mux(sets, setup.qp, self.packet.payload.qp)),
            save.en.eq(sets | (self._saves & known)),
            load.en.eq(1),
            load.addr.eq(self.packet.payload.qp),
        ]
        with m.If(~sets):
            m.d.comb += save.data.eq(self._saved)
        self._pair, self._state = read.data, load.data
