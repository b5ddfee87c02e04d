"""The send engine's first half: checks a message, cuts it into packets, and reads them from host memory."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..nic.owners.protection import ACCESS_LAYOUT, SEGMENT_LAYOUT
from .layout import MESSAGE_BITS, QP_BITS, CqeStatus
from .send_layout import END_LAYOUT, MESSAGE_LAYOUT, PACKET_LAYOUT, QUEUE_PAIR_LAYOUT

__all__ = ["MessageReader"]

BEAT_LOG2 = (BUS_BITS // 8 - 1).bit_length()


class MessageReader(wiring.Component):
    """Messages, one of each class at most: their check, packet buffers, and reads of the bus.

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `held` (in, a bit a class): classes with a message that waits to begin.
    - `hold` (in): memory regions or page tables are about to change.
    - `message` (in, stream of `MESSAGE_LAYOUT`): a message, of a class that has none suspended.
    - `suspended` (out, a bit a class): classes with a message that has begun and waits between two packets.
    - `resumable` (out, a bit a class): those that can go on. `resume` (in), `resume_class` (in): one of them goes on,
      while `message.ready`.
    - `rests` (out): no byte of host memory is about to be read.
    - `access` (out, stream of `ACCESS_LAYOUT`), `segment` (in, stream of `SEGMENT_LAYOUT`): to `MemoryCheck`.
    - `room` (in, a bit a VL), `begin`, `begin_vl` (out): as in `VlPort`.
    - `packet` (out, stream of `PACKET_LAYOUT`): a packet that is begun, whose payload will come from the bus in order.
    - `end` (out, stream of `END_LAYOUT`): a message that may not be read, or whose queue pair was closed.
    - `axi` (out, `Axi4Signature` of 128 bits): addresses of reads. Its data is taken elsewhere (`PacketSender`).
    - `quiet` (out): no message is there, and no register changes but by an input.

    Nothing of a message is sent before it is checked as a whole. A message of 0 bytes touches no memory, and its region
    is not looked at. A packet is begun when its VL has room, and then read in bursts of at most `burst_beats`, which
    end at pages. When a queue pair is closed the packet under way is still sent, the rest of its message is not.

    A message is suspended, so that another one can begin or go on, in these cases:

    - its VL has no room for its next packet, and another class has a message;
    - `packet` does not take it at once, and another class has a message;
    - `hold`.

    In the last two cases it has begun a packet since it began or went on. So nothing keeps it from going on for ever.

    When it goes on its next packet is checked anew, or all of it if no packet was begun. A packet that may not be read
    any more ends its message, the packets before it are sent. `hold` is up until `rests`; what is read after that has
    been checked after it. This takes as long as one check and the addresses of one packet take on the bus.

    Latency: from `message` to the first address on the bus 3 cycles more than the check (`MemoryCheck`). Throughput: 2
    cycles a packet and one a burst, if the bus takes addresses at once; between messages, and where one goes on, 3
    cycles and the check's.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        link = config.link
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "held": In(config.classes),
                "hold": In(1),
                "message": In(stream.Signature(MESSAGE_LAYOUT)),
                "suspended": Out(config.classes),
                "resumable": Out(config.classes),
                "resume": In(1),
                "resume_class": In(range(max(2, config.classes))),
                "rests": Out(1),
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
        message = Signal(MESSAGE_LAYOUT)
        packet, end = self.packet.payload, self.end.payload
        status = Signal(CqeStatus)
        # Bytes of the message that no packet has yet, of the packet that are not asked for, and of the segment.
        left, packet_left, segment_left = (
            Signal(MESSAGE_BITS, name=name) for name in ("left", "packet_left", "segment_left")
        )
        # `last_segment`: the check has given all its segments. `fresh`: no packet was begun since it began or went on.
        address, last_segment, number, first = Signal(32), Signal(), Signal(8), Signal()
        fresh, unread = Signal(), Signal()
        size, burst, beats = Signal(MESSAGE_BITS), Signal(MESSAGE_BITS), Signal(9)
        most = config.burst_beats << BEAT_LOG2
        here = Signal(MESSAGE_BITS)
        m.d.comb += [
            self.access.payload.channel.eq(message.qp),
            self.access.payload.region.eq(message.region),
            self.access.payload.key.eq(message.key),
            self.access.payload.address.eq(message.address),
            self.access.payload.bytes.eq(Mux(first, left, size)),
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
        closed, others, place = self._suspended(m, message, left, number, first)
        m.d.comb += unread.eq((size != 0) & last_segment & (segment_left == 0))
        with m.FSM() as fsm:
            with m.State("idle"):
                m.d.comb += self.message.ready.eq(~self.hold)
                m.d.sync += [
                    packet_left.eq(0),
                    segment_left.eq(0),
                    last_segment.eq(1),
                    fresh.eq(1),
                    status.eq(CqeStatus.OK),
                ]
                with m.If(self.resume):
                    m.d.sync += [
                        message.eq(place.message),
                        left.eq(place.left),
                        number.eq(place.number),
                        first.eq(place.first),
                    ]
                    m.next = "packet"
                with m.Else():
                    m.d.sync += [message.eq(self.message.payload), left.eq(self.message.payload.bytes)]
                    m.d.sync += [number.eq(0), first.eq(1)]
                    with m.If(self.message.valid & self.message.ready):
                        m.next = "packet"
                        with m.If(self.message.payload.bytes != 0):
                            m.next = "access"
            with m.State("access"):
                m.d.comb += self.access.valid.eq(1)
                with m.If(self.access.ready):
                    m.d.sync += last_segment.eq(0)
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
                with m.If(closed):
                    m.next = "end"
                    with m.If(~last_segment):
                        m.next = "drain"
                with m.Elif(
                    self.room.bit_select(message.vl, 1)
                    & (fresh | (~self.hold & (self.packet.ready | ~others)))
                ):
                    with m.If(unread):
                        m.next = "access"
                    with m.Else():
                        m.d.comb += [self.packet.valid.eq(1), self.begin.eq(self.packet.ready)]
                    with m.If(self.begin):
                        m.d.sync += [
                            packet_left.eq(size),
                            left.eq(left - size),
                            message.address.eq(message.address + size),
                            number.eq(number + 1),
                            first.eq(0),
                            fresh.eq(0),
                        ]
                        m.next = "read"
                        with m.If(size == 0):
                            m.next = "idle"
                with m.Elif(self.hold | others):
                    m.next = "suspend"
                    with m.If(~last_segment):
                        m.next = "drain"
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
                    m.d.sync += last_segment.eq(1)
                    m.next = "suspend"
            with m.State("suspend"):
                m.next = "idle"
                with m.If(closed):
                    m.next = "end"
                with m.Else():
                    m.d.comb += self._suspends.eq(1)
            with m.State("end"):
                m.d.comb += self.end.valid.eq(1)
                with m.If(self.end.ready):
                    m.next = "idle"
        m.d.comb += [
            self.rests.eq(fsm.ongoing("idle") & ~axi.arvalid),
            self.quiet.eq(self.rests & ~self.message.valid & ~self.suspended.any()),
        ]
        return m

    def _suspended(
        self, m: Module, message: data.View, left: Signal, number: Signal, first: Signal
    ) -> tuple[Signal, Signal, data.View]:
        """The places of suspended messages. `_suspends` puts the message there.

        Returns whether the message's queue pair was closed, whether other classes have messages, and what is in the
        place of `resume_class`.
        """
        classes = self.config.classes
        layout = data.StructLayout(
            {"message": MESSAGE_LAYOUT, "left": MESSAGE_BITS, "number": len(number), "first": 1}
        )
        m.submodules.places = places = memory.Memory(shape=layout, depth=max(2, classes), init=[])
        write, read = places.write_port(), places.read_port(domain="comb")
        self._suspends = suspends = Signal(name="suspends")
        mine, comes = message.traffic_class, self.message.payload
        cuts = Signal(classes)
        m.d.comb += [
            write.addr.eq(mine),
            write.data.message.eq(message),
            write.data.left.eq(left),
            write.data.number.eq(number),
            write.data.first.eq(first),
            write.en.eq(suspends),
            read.addr.eq(self.resume_class),
        ]
        ready = []
        for i in range(classes):
            # Of the class's message that has begun: its queue pair, its VL, and whether that was closed since.
            qp, vl = Signal(QP_BITS, name=f"qp_{i}"), Signal(len(message.vl), name=f"vl_{i}")
            begins = self.message.valid & self.message.ready & (comes.traffic_class == i)
            with m.If(begins):
                m.d.sync += [qp.eq(comes.qp), vl.eq(comes.vl), cuts[i].eq(0)]
            with m.If(self.setup_valid & ~self.setup.open & (self.setup.qp == Mux(begins, comes.qp, qp))):
                m.d.sync += cuts[i].eq(1)
            with m.If(suspends & (mine == i)):
                m.d.sync += self.suspended[i].eq(1)
            with m.If(self.resume & (self.resume_class == i)):
                m.d.sync += self.suspended[i].eq(0)
            ready.append(self.suspended[i] & (cuts[i] | self.room.bit_select(vl, 1)))
        closed, others = Signal(), Signal()
        m.d.comb += [
            self.resumable.eq(Cat(ready)),
            closed.eq(cuts.bit_select(mine, 1)),
            others.eq(((self.held | self.suspended) & ~(1 << mine)).any()),
        ]
        return closed, others, read.data
