"""The send DMA engine: reads a packet from the SRAM, appends its CRC and hands its flits to the link.

One of the two engines for "sending (receiving) packets to (from) the external network from (to) SRAM"
(nagar-thesis-2001 3.1), called NSDMA there.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ...config import NicConfig
from ...link import FlitLayout
from ..sram import SramPortSignature
from .crc import PacketCrc

__all__ = ["SEND_COMMAND", "SendEngine"]

SEND_COMMAND = data.StructLayout({"sram_address": 20, "bytes": 16, "vl": 4})
"""A packet.

- `sram_address`: byte address of its header in the SRAM, a multiple of the flit (its low bits are ignored). The payload
  is behind it.
- `bytes`: bytes of payload, 0 to 65535.
- `vl`: the virtual lane on which it travels.
"""

QUEUE_FLITS = 4
"""Flits read ahead. A word takes 2 cycles from its request to the queue's output, so 3 keep the stream going;
the queue's memory has 4 rows anyway."""


class SendEngine(wiring.Component):
    """The send engine: one packet after the other, `header_flits` of header, the payload and the CRC flit.

    Members:

    - `start` (in, stream of `SEND_COMMAND`): ready when idle. Behind a queue (`send_queue_entries`) one packet follows
      another closely. `start` is then ready too when the last word of the packet before comes from the SRAM, unless two
      packets are under way.
    - `busy` (out): a packet is under way.
    - `done` (out): the last flit of the oldest packet is taken in this cycle.
    - `sram` (out, `SramPortSignature`): reads. Addresses past the SRAM's end wrap.
    - `flits` (out, stream of `FlitLayout`): the packet, `head` on its first flit and `tail` on the CRC's.

    The bytes behind the payload in its last flit are sent as zero, whatever the SRAM holds. The header is
    sent as it stands: its length must be `bytes`, or the receiver drops the packet.

    Throughput: a flit a cycle while the SRAM grants one read a cycle and the link takes a flit a cycle. Latency:
    from `start` to the first flit: 3 cycles if the SRAM grants at once. The next packet can start in the cycle
    after `done`; one that follows closely leaves without a gap. Reset: idle.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(SEND_COMMAND)),
                "busy": Out(1),
                "done": Out(1),
                "sram": Out(SramPortSignature(config)),
                "flits": Out(stream.Signature(FlitLayout(config.link))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, sram, command = self.config.link, self.sram, self.start.payload
        size = link.flit_bytes
        shift = size.bit_length() - 1
        payload_flits = (command.bytes + size - 1)[shift:]
        bytes_over = command.bytes[:shift]  # in the last word, 0 for all of them

        # A packet that follows closely is read while the end of the one before stands in the queue, each with its VL.
        follows = self.config.send_queue_entries > 0
        vl_bits = link.vl_bits if follows else 0
        m.submodules.queue = queue = SyncFIFO(width=link.flit_bits + 2 + vl_bits, depth=QUEUE_FLITS)
        m.submodules.crc = crc = PacketCrc(link)

        vl = Signal(link.vl_bits)
        word = Signal.like(sram.address)
        # Words to ask for, and words to come; the latter is one behind at most.
        to_read = Signal(range((1 << 16) // size + link.header_flits + 1))
        to_come = Signal.like(to_read)
        # `last` and `last_mask` are known before the last word comes, as it goes through the CRC: that it is the last
        # one, and its bytes of payload.
        last, last_mask = Signal(), Signal(size)
        arriving = Signal()  # the word asked for in the cycle before is on the port
        first = Signal()
        close = Signal()  # the CRC is complete and goes in next

        # Room for this read means a place beyond the word on its way; the CRC needs none set aside, as it
        # waits, unless words of the next packet come behind it.
        on_its_way = arriving + close if follows else arriving
        m.d.comb += [
            sram.valid.eq((to_read != 0) & (queue.level + on_its_way < QUEUE_FLITS)),
            sram.address.eq(word),
        ]
        m.d.sync += arriving.eq(sram.valid & sram.ready)
        with m.If(sram.valid & sram.ready):
            m.d.sync += [to_read.eq(to_read - 1), word.eq(word + 1)]

        flit = Signal(link.flit_bits)
        head = first & ~close if follows else first
        kept = Cat((last_mask[i] | ~last).replicate(8) for i in range(size))
        m.d.comb += flit.eq(sram.rdata & kept)
        m.d.comb += [
            crc.valid.eq(arriving),
            crc.first.eq(first),
            crc.data.eq(flit),
            queue.w_en.eq(arriving | close),
            queue.w_data.eq(Cat(Mux(close, crc.crc, flit), head, close)),
        ]
        flit_vl: Value = vl
        if follows:
            crc_vl = Signal.like(vl)
            with m.If(arriving):
                m.d.sync += crc_vl.eq(vl)
            m.d.comb += queue.w_data[-vl_bits:].eq(Mux(close, crc_vl, vl))
            flit_vl = queue.r_data[-vl_bits:]
        with m.If(arriving):
            m.d.sync += [to_come.eq(to_come - 1), first.eq(0), close.eq(last), last.eq(to_come == 2)]
        with m.Elif(queue.w_rdy):
            m.d.sync += close.eq(0)

        flits = self.flits
        m.d.comb += [
            Cat(flits.payload.data, flits.payload.head, flits.payload.tail).eq(queue.r_data),
            flits.payload.vl.eq(flit_vl),
            flits.valid.eq(queue.r_rdy),
            queue.r_en.eq(flits.ready),
            self.done.eq(flits.valid & flits.ready & flits.payload.tail),
        ]
        begin = self.start.valid & self.start.ready
        if follows:
            packets = Signal(range(3))
            all_read = (to_read == 0) & ((to_come == 0) | (arriving & last))
            m.d.comb += [self.start.ready.eq(all_read & (packets != 2)), self.busy.eq(packets != 0)]
            m.d.sync += packets.eq(packets + begin - self.done)
        else:
            m.d.comb += self.start.ready.eq(~self.busy)
            with m.If(self.done):
                m.d.sync += self.busy.eq(0)
        with m.If(begin):
            m.d.sync += [
                *([] if follows else [self.busy.eq(1)]),
                first.eq(1),
                vl.eq(command.vl),
                word.eq(command.sram_address[shift:]),
                to_read.eq(payload_flits + link.header_flits),
                to_come.eq(payload_flits + link.header_flits),
                last.eq((payload_flits == 0) if link.header_flits == 1 else 0),
                last_mask.eq(Mux(bytes_over == 0, -1, (1 << bytes_over) - 1)),
            ]
        return m
