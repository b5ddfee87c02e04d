"""The send engine's second half: packets from what the bus has read."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import BUS_BITS, HcaConfig
from ..link import FlitLayout
from ..nic.dma.crc import CRC_BITS, PacketCrc
from ..packet import HEADER_LAYOUT, Kind
from .layout import QP_BITS, TIME_BITS, TRAILER_LAYOUT
from .send_layout import PACKET_LAYOUT, RECORD_LAYOUT
from .trailer_crc import TrailerCrc

__all__ = ["BEAT_LAYOUT", "PacketSender"]

BEAT_LAYOUT = data.StructLayout({"data": BUS_BITS, "failed": 1})
"""A beat that was read, or that the bus could not read it."""


class PacketSender(wiring.Component):
    """Header, payload and trailer of each packet, a flit a cycle.

    Members:

    - `node` (in, 10): the adapter's node number. `now` (in, `TIME_BITS`): the time, cycles modulo 2^32.
    - `packet` (in, stream of `PACKET_LAYOUT`): a packet that is begun.
    - `beat` (in, stream of `BEAT_LAYOUT`): the payloads of all packets, in order.
    - `send` (out, stream of `FlitLayout`): the packets' flits. They are taken at once, as there is room (`VlPort`).
    - `record_valid`, `record_vl`, `record` (out, `RECORD_LAYOUT`): a packet whose tail is taken in this cycle.
    - `bus_errors` (out, 32): messages of which the bus could not read all, since reset, modulo 2^32.
    - `quiet` (out): no packet is there, and no register changes but by an input.

    A header waits for the first beat of its payload, so that no VL is held while the bus works. If the bus cannot read
    a beat, the CRC of its packet and of all later ones of the message is inverted: receivers throw them away. They are
    sent to their end, as routers know no other one. Messages of several classes may take turns, packet by packet.

    Latency: from `beat` to the header 0 cycles, and a flit in each cycle that follows while beats come. Throughput: a
    flit a cycle.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "node": In(10),
                "now": In(TIME_BITS),
                "packet": In(stream.Signature(PACKET_LAYOUT)),
                "beat": In(stream.Signature(BEAT_LAYOUT)),
                "send": Out(stream.Signature(FlitLayout(config.link))),
                "record_valid": Out(1),
                "record_vl": Out(config.link.vl_bits),
                "record": Out(RECORD_LAYOUT),
                "bus_errors": Out(32),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        packet, beat, send, flit = self.packet.payload, self.beat, self.send, self.send.payload
        m.submodules.crc = crc = PacketCrc(self.config.link)
        m.submodules.trailer_crc = whole = TrailerCrc(early=True)
        header, trailer = Signal(HEADER_LAYOUT), Signal(TRAILER_LAYOUT)
        m.d.comb += [
            header.kind.eq(Mux(packet.last, packet.kind, Kind.DATA)),
            header.bandwidth.eq(Mux(packet.last, packet.bandwidth, 0)),
            header.service_level.eq(packet.service_level),
            header.route.eq(packet.route),
            header.destination.eq(packet.destination),
            header.source.eq(self.node),
            header.flow.eq(Cat(packet.destination_qp, packet.generation)),
            header.length.eq(packet.bytes),
            header.sequence.eq(Cat(packet.qp[:QP_BITS], packet.number)),
        ]
        # Beats of the packet that are yet to come; bytes of its last one, 0 for all 16.
        left, odd = Signal(8), Signal(4)
        mask, payload = Signal(BUS_BITS), Signal(BUS_BITS)
        # Of this packet, and of the message of each class that has begun: the bus could not read a beat.
        failed, fails, failures = Signal(), Signal(), Signal(self.config.classes)
        begun = Signal(TIME_BITS)
        moves = Signal()
        m.d.comb += [
            odd.eq(packet.bytes[:4]),
            mask.eq(Mux((left == 1) & (odd != 0), (1 << (odd << 3)) - 1, (1 << BUS_BITS) - 1)),
            payload.eq(beat.payload.data & mask),
            whole.crc.eq(crc.crc),
            # The packet stands since its header, a cycle at least.
            whole.rest.eq(trailer.as_value()[CRC_BITS:]),
            trailer.crc.eq(whole.whole ^ failed.replicate(CRC_BITS)),
            trailer.total_bytes.eq(packet.total_bytes),
            trailer.first.eq(packet.first),
            trailer.last.eq(packet.last),
            trailer.with_immediate.eq(packet.last & packet.with_immediate),
            trailer.life.eq(packet.destination_life),
            trailer.source_life.eq(packet.life),
            trailer.immediate.eq(Mux(trailer.with_immediate, packet.immediate, 0)),
            moves.eq(send.valid & send.ready),
            crc.valid.eq(moves),
            crc.first.eq(flit.head),
            crc.data.eq(flit.data),
            flit.vl.eq(packet.vl),
            fails.eq(beat.valid & beat.ready & beat.payload.failed),
            self.record_vl.eq(packet.vl),
            self.record.qp.eq(packet.qp),
            self.record.queue.eq(packet.queue),
            self.record.traffic_class.eq(packet.traffic_class),
            self.record.destination.eq(packet.destination),
            self.record.flits.eq(((packet.bytes + 15) >> 4) + 2),
            self.record.last.eq(packet.last),
            self.record.signaled.eq(packet.signaled),
            self.record.tag.eq(packet.tag),
            self.record.bytes.eq(packet.total_bytes),
            self.record.failed.eq(failed),
            self.record.begun.eq(begun),
        ]
        with m.If(fails & ~failed):
            m.d.sync += [failed.eq(1), self.bus_errors.eq(self.bus_errors + 1)]
        with m.FSM() as fsm:
            with m.State("header"):
                m.d.comb += [flit.data.eq(header), flit.head.eq(1)]
                m.d.comb += send.valid.eq(self.packet.valid & (beat.valid | (packet.bytes == 0)))
                with m.If(moves):
                    m.d.sync += [left.eq((packet.bytes + 15) >> 4), begun.eq(self.now)]
                    m.d.sync += failed.eq(failures.bit_select(packet.traffic_class, 1) & ~packet.first)
                    m.next = "payload"
                    with m.If(packet.bytes == 0):
                        m.next = "trailer"
            with m.State("payload"):
                m.d.comb += [flit.data.eq(payload), send.valid.eq(beat.valid), beat.ready.eq(send.ready)]
                with m.If(moves):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.next = "trailer"
            with m.State("trailer"):
                m.d.comb += [flit.data.eq(trailer), flit.tail.eq(1), send.valid.eq(1)]
                with m.If(moves):
                    m.d.comb += [self.packet.ready.eq(1), self.record_valid.eq(1)]
                    m.d.sync += failures.bit_select(packet.traffic_class, 1).eq(failed)
                    m.next = "header"
        m.d.comb += self.quiet.eq(fsm.ongoing("header") & ~self.packet.valid)
        return m
