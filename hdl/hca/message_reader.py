"""The send engine's first half: checks a message, cuts it into packets, and reads them from host memory."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..nic.owners.protection import ACCESS_LAYOUT, SEGMENT_LAYOUT
from .layout import MESSAGE_BITS, CqeStatus
from .queue_pair_table import QueuePairTable
from .send_layout import END_LAYOUT, MESSAGE_LAYOUT, PACKET_LAYOUT, QUEUE_PAIR_LAYOUT

__all__ = ["MessageReader"]

BEAT_LOG2 = (BUS_BITS // 8 - 1).bit_length()


class MessageReader(wiring.Component):
    """Messages one after the other: their check, packet buffers, and reads of the bus.

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `message` (in, stream of `MESSAGE_LAYOUT`): a message, one at a time.
    - `access` (out, stream of `ACCESS_LAYOUT`), `segment` (in, stream of `SEGMENT_LAYOUT`): to `MemoryCheck`.
    - `room` (in, a bit a VL), `begin`, `begin_vl` (out): as in `VlPort`.
    - `packet` (out, stream of `PACKET_LAYOUT`): a packet that is begun, whose payload will come from the bus in order.
    - `end` (out, stream of `END_LAYOUT`): a message that may not be read, or whose queue pair was closed.
    - `axi` (out, `Axi4Signature` of 128 bits): addresses of reads. Its data is taken elsewhere (`PacketSender`).
    - `quiet` (out): no message is there, and no register changes but by an input.

    Nothing of a message is sent before it is checked as a whole. A message of 0 bytes touches no memory, and its region
    is not looked at. A packet is begun when its VL has room, and then read in bursts of at most `burst_beats`, which
    end at pages. When a queue pair is closed the packet under way is still sent, the rest of its message is not.

    Latency: from `message` to the first address on the bus 3 cycles more than the check (`MemoryCheck`). Throughput: 2
    cycles a packet and one a burst, if the bus takes addresses at once; between messages 3 cycles and the check's.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        link = config.link
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "message": In(stream.Signature(MESSAGE_LAYOUT)),
                "access": Out(stream.Signature(ACCESS_LAYOUT)),
                "segment": In(stream.Signature(SEGMENT_LAYOUT)),
                "room": In(link.vls),
                "begin": Out(1),
                "begin_vl": Out(link.vl_bits),
                "packet": Out(stream.Signature(PACKET_LAYOUT)),
                "end": Out(stream.Signature(END_LAYOUT)),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, axi = self.config, self.axi
        m.submodules.table = table = QueuePairTable(config.queue_pairs, fields=())
        message = Signal(MESSAGE_LAYOUT)
        packet, end = self.packet.payload, self.end.payload
        status = Signal(CqeStatus)
        # Bytes of the message that no packet has yet, of the packet that are not asked for, and of the segment.
        left, packet_left, segment_left = (
            Signal(MESSAGE_BITS, name=name) for name in ("left", "packet_left", "segment_left")
        )
        address, last_segment, number, first = Signal(32), Signal(), Signal(8), Signal()
        size, burst, beats = Signal(MESSAGE_BITS), Signal(MESSAGE_BITS), Signal(9)
        most = config.burst_beats << BEAT_LOG2
        here = Signal(MESSAGE_BITS)
        m.d.comb += [
            table.setup_valid.eq(self.setup_valid),
            table.setup.eq(self.setup),
            table.qp.eq(message.qp),
            self.access.payload.channel.eq(message.qp),
            self.access.payload.region.eq(message.region),
            self.access.payload.key.eq(message.key),
            self.access.payload.address.eq(message.address),
            self.access.payload.bytes.eq(message.bytes),
            size.eq(Mux(left > config.payload_bytes, config.payload_bytes, left)),
            here.eq(Mux(packet_left < segment_left, packet_left, segment_left)),
            burst.eq(Mux(here > most, most, here)),
            beats.eq((burst + (BUS_BITS // 8 - 1)) >> BEAT_LOG2),
            self.begin_vl.eq(message.vl),
            *(
                packet[name].eq(message[name])
                for name, _ in PACKET_LAYOUT
                if name in MESSAGE_LAYOUT.members and name != "bytes"
            ),
            packet.total_bytes.eq(message.bytes),
            packet.bytes.eq(size),
            packet.number.eq(number),
            packet.first.eq(first),
            packet.last.eq(left == size),
            end.qp.eq(message.qp),
            end.queue.eq(message.queue),
            end.tag.eq(message.tag),
            end.status.eq(status),
            end.signaled.eq(1),
            axi.arsize.eq(BEAT_LOG2),
            axi.arburst.eq(1),  # INCR
            axi.bready.eq(1),
        ]
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)
        with m.FSM() as fsm:
            with m.State("idle"):
                m.d.comb += self.message.ready.eq(1)
                m.d.sync += [left.eq(self.message.payload.bytes), number.eq(0), first.eq(1)]
                m.d.sync += [
                    packet_left.eq(0),
                    segment_left.eq(0),
                    last_segment.eq(0),
                    status.eq(CqeStatus.OK),
                ]
                with m.If(self.message.valid):
                    m.d.sync += message.eq(self.message.payload)
                    m.next = "packet"
                    with m.If(self.message.payload.bytes != 0):
                        m.next = "access"
            with m.State("access"):
                m.d.comb += self.access.valid.eq(1)
                with m.If(self.access.ready):
                    m.next = "check"
            with m.State("check"):
                # The first segment is taken later, unless it says that there is none.
                refused = self.segment.payload.status != CqeStatus.OK
                with m.If(self.segment.valid & refused):
                    m.d.comb += self.segment.ready.eq(1)
                    m.d.sync += status.eq(self.segment.payload.status)
                    m.next = "end"
                with m.Elif(self.segment.valid):
                    m.next = "packet"
            with m.State("packet"):
                with m.If(~table.open):
                    m.next = "end"
                    with m.If((message.bytes != 0) & ~last_segment):
                        m.next = "drain"
                with m.Elif(self.room.bit_select(message.vl, 1)):
                    m.d.comb += [self.packet.valid.eq(1), self.begin.eq(self.packet.ready)]
                    with m.If(self.packet.ready):
                        m.d.sync += [
                            packet_left.eq(size),
                            left.eq(left - size),
                            number.eq(number + 1),
                            first.eq(0),
                        ]
                        m.next = "read"
                        with m.If(size == 0):
                            m.next = "idle"
            with m.State("read"):
                with m.If(segment_left == 0):
                    m.d.comb += self.segment.ready.eq(1)
                    with m.If(self.segment.valid):
                        m.d.sync += [
                            segment_left.eq(self.segment.payload.bytes),
                            address.eq(self.segment.payload.address),
                            last_segment.eq(self.segment.payload.last),
                        ]
                with m.Elif(~axi.arvalid | axi.arready):
                    m.d.sync += [
                        axi.arvalid.eq(1),
                        axi.araddr.eq(address),
                        axi.arlen.eq(beats - 1),
                        address.eq(address + burst),
                        packet_left.eq(packet_left - burst),
                        segment_left.eq(segment_left - burst),
                    ]
                    with m.If(packet_left == burst):
                        m.next = "packet"
                        with m.If(left == 0):
                            m.next = "idle"
            with m.State("drain"):
                m.d.comb += self.segment.ready.eq(1)
                with m.If(self.segment.valid & self.segment.payload.last):
                    m.next = "end"
            with m.State("end"):
                m.d.comb += self.end.valid.eq(1)
                with m.If(self.end.ready):
                    m.next = "idle"
        m.d.comb += self.quiet.eq(fsm.ongoing("idle") & ~axi.arvalid & ~self.message.valid)
        return m
