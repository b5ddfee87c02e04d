"""The stage: packets stand here as a whole, with a good CRC, before host memory is touched."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config.hca import BUS_BITS, HcaConfig
from ...link import FlitLayout
from ...nic.dma.crc import CRC_BITS, PacketCrc
from ...packet import HEADER_LAYOUT
from ..layout import QP_BITS, TRAILER_LAYOUT
from ..trailer_crc import TrailerCrc
from .layout import PACKET_LAYOUT, STAGE_PACKETS

__all__ = ["PacketStage", "slot_bits"]

FLIT_BYTES = BUS_BITS // 8
FLIT_SHIFT = (FLIT_BYTES - 1).bit_length()


def slot_bits(config: HcaConfig) -> int:
    """Width of a payload flit's place in its slot."""
    return max(1, (config.payload_flits - 1).bit_length())


class PacketStage(wiring.Component):
    """Takes whole packets, keeps the payload of good ones in `STAGE_PACKETS` slots, and tells of them in order.

    Members:

    - `flits` (in, stream of `FlitLayout`): whole packets, one after the other. Taken while a slot is free.
    - `packet` (out, stream of `PACKET_LAYOUT`): a good packet.
    - `read_valid` (in), `read_address` (in): a flit to read, its place in the slot below the slot's number.
    - `read_data` (out, 128): that flit, from the next cycle until the next read.
    - `release` (in): the slot that has been in use longest is free. All of it has been read.
    - `packets` (out, 32): good packets.
    - `length_errors` (out, 32): packets dropped as they have other flits than the header's length says.
    - `crc_errors` (out, 32): packets dropped for their CRC.
    - `empty` (out): all slots are free, and no packet has come in in part.

    Counters are modulo 2^32, since reset.

    Latency: a packet is told of in the cycle after its tail was taken. Throughput: a flit a cycle while a slot is free.
    Reset: empty.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        slots = (STAGE_PACKETS - 1).bit_length()
        super().__init__(
            {
                "flits": In(stream.Signature(FlitLayout(config.link))),
                "packet": Out(stream.Signature(PACKET_LAYOUT)),
                "read_valid": In(1),
                "read_address": In(slot_bits(config) + slots),
                "read_data": Out(BUS_BITS),
                "release": In(1),
                "packets": Out(32),
                "length_errors": Out(32),
                "crc_errors": Out(32),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flit, most = self.flits.payload, self.config.payload_flits
        place_bits = slot_bits(self.config)
        m.submodules.crc = crc = PacketCrc(self.config.link)
        m.submodules.trailer_crc = whole = TrailerCrc(early=False)
        m.submodules.told = told = fifo.SyncFIFO(width=PACKET_LAYOUT.size, depth=STAGE_PACKETS)
        m.submodules.payload = payload = memory.Memory(
            shape=BUS_BITS, depth=STAGE_PACKETS << place_bits, init=[]
        )
        write, read = payload.write_port(), payload.read_port()
        slot = Signal(range(STAGE_PACKETS))
        used = Signal(range(STAGE_PACKETS + 1))
        before = Signal(
            range(most + 2)
        )  # payload flits of the packet that have come; one more than most is too many
        begun = Signal()
        # All that is needed of the header.
        header, vl = Signal(HEADER_LAYOUT), Signal(4)
        trailer = TRAILER_LAYOUT(flit.data)
        taken, good, wrong_length, wrong_crc = Signal(), Signal(), Signal(), Signal()
        payload_flits = (header.length + FLIT_BYTES - 1)[FLIT_SHIFT:]
        m.d.comb += [
            self.flits.ready.eq(used != STAGE_PACKETS),
            taken.eq(self.flits.valid & self.flits.ready),
            crc.valid.eq(taken & ~flit.tail),
            crc.first.eq(~begun),
            crc.data.eq(flit.data),
            write.addr.eq((slot << place_bits) + before),
            write.data.eq(flit.data),
            write.en.eq(taken & begun & ~flit.tail & (before < most)),
            read.addr.eq(self.read_address),
            read.en.eq(self.read_valid),
            self.read_data.eq(read.data),
            wrong_length.eq(~begun | (before > most) | (before != payload_flits)),
            whole.crc.eq(crc.crc),
            whole.rest.eq(flit.data[CRC_BITS:]),
            wrong_crc.eq(whole.whole != trailer.crc),
            good.eq(taken & flit.tail & ~wrong_length & ~wrong_crc),
        ]
        with m.If(taken):
            m.d.sync += begun.eq(~flit.tail)
            with m.If(~begun):
                m.d.sync += [header.eq(flit.data), vl.eq(flit.vl), before.eq(0)]
            with m.Elif(before != most + 1):
                m.d.sync += before.eq(before + 1)
            with m.If(flit.tail):
                with m.If(wrong_length):
                    m.d.sync += self.length_errors.eq(self.length_errors + 1)
                with m.Elif(wrong_crc):
                    m.d.sync += self.crc_errors.eq(self.crc_errors + 1)
                with m.Else():
                    m.d.sync += [self.packets.eq(self.packets + 1), slot.eq((slot + 1) % STAGE_PACKETS)]
        packet = PACKET_LAYOUT(told.w_data)
        m.d.comb += [
            told.w_en.eq(good),
            packet.slot.eq(slot),
            packet.qp.eq(header.flow),
            packet.source.eq(header.source),
            packet.source_qp.eq(header.sequence),
            packet.number.eq(header.sequence[QP_BITS:]),
            packet.vl.eq(vl),
            packet.kind.eq(header.kind),
            packet.bytes.eq(header.length),
            *(
                packet[name].eq(trailer[name])
                for name in TRAILER_LAYOUT.members
                if name in PACKET_LAYOUT.members
            ),
            self.packet.valid.eq(told.r_rdy),
            self.packet.payload.eq(told.r_data),
            told.r_en.eq(self.packet.ready),
            self.empty.eq((used == 0) & ~begun),
        ]
        with m.If(good != self.release):
            m.d.sync += used.eq(used + good - self.release)
        return m
