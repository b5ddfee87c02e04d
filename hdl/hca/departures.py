"""Departures: the packets in the buffers towards the link, until their tails are on it."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from ..nic.link_port.vl_count import VlCount
from ..router.vl_pointers import VlPointers
from .injection.base import ENTERED_LAYOUT
from .layout import MOST_BUFFERED_CYCLES, QP_BITS, TIME_BITS, CqeStatus
from .send_layout import END_LAYOUT, RECORD_LAYOUT

__all__ = ["Departures"]

SPARE = 8
"""Messages beyond those that fit in the buffers towards the link: their ends wait for the completion writer."""


class Departures(wiring.Component):
    """A record of each packet, a queue a VL, and the end of its message when its last tail is on the link.

    Members:

    - `begin` (in), `begin_vl` (in): a packet is begun.
    - `record_valid`, `record_vl`, `record` (in, `RECORD_LAYOUT`): its tail is in the buffer of its VL.
    - `now` (in, `TIME_BITS`): the time, cycles modulo 2^32.
    - `flit` (in), `flit_vl` (in): a flit of the VL's oldest packet is on the link. `tail` (in): it is its last.
    - `start` (in): a message begins. `retired` (in): one has ended that began, in whatever way.
    - `room` (out): a message may begin. So there is a place for the end of each that has begun.
    - `entered_valid`, `entered` (out, `ENTERED_LAYOUT`): the packet whose tail was on the link in the cycle before.
      `gone_qp` (out, 8): its queue pair.
    - `vl_busy` (out, a bit a VL): VLs with a packet that is begun and whose tail was not on the link.
    - `end` (out, stream of `END_LAYOUT`): messages whose last tail was on the link.
    - `packets`, `flits` (out, 32): those of packets whose tail was on the link, since reset, modulo 2^32.
    - `quiet` (out): nothing is under way, and no register changes but by an input.

    Latency: from `tail` to `end` 2 cycles. Throughput: a packet a cycle. Reset: nothing is under way.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        vls, vl = config.link.vls, config.link.vl_bits
        super().__init__(
            {
                "begin": In(1),
                "begin_vl": In(vl),
                "record_valid": In(1),
                "record_vl": In(vl),
                "record": In(RECORD_LAYOUT),
                "now": In(TIME_BITS),
                "flit": In(1),
                "flit_vl": In(vl),
                "tail": In(1),
                "start": In(1),
                "retired": In(1),
                "room": Out(1),
                "entered_valid": Out(1),
                "entered": Out(ENTERED_LAYOUT),
                "gone_qp": Out(QP_BITS),
                "vl_busy": Out(vls),
                "end": Out(stream.Signature(END_LAYOUT)),
                "packets": Out(32),
                "flits": Out(32),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        vls, depth = config.link.vls, config.vl_packets
        bits = (depth - 1).bit_length()
        m.submodules.records = records = memory.Memory(
            shape=RECORD_LAYOUT, depth=max(2, vls) << bits, init=[]
        )
        write, read = records.write_port(), records.read_port(domain="comb")
        m.submodules.ins = ins = VlPointers(vls=vls, modulus=depth, reads=0)
        m.submodules.outs = outs = VlPointers(vls=vls, modulus=depth, reads=0)
        m.submodules.count = count = VlCount(vls=vls, most=depth)
        tail, tail_vl = Signal(), Signal.like(self.flit_vl)
        m.d.sync += tail.eq(self.flit & self.tail)
        with m.If(self.flit & self.tail):
            m.d.sync += tail_vl.eq(self.flit_vl)
        departed = self._stamps(m, tail_vl)
        gone = read.data
        m.d.comb += [
            ins.step.eq(self.record_valid),
            ins.step_vl.eq(self.record_vl),
            outs.step.eq(tail),
            outs.step_vl.eq(tail_vl),
            write.addr.eq(Cat(ins.here, self.record_vl)),
            write.data.eq(self.record),
            write.en.eq(self.record_valid),
            read.addr.eq(Cat(outs.here, tail_vl)),
            count.add.eq(self.begin),
            count.add_vl.eq(self.begin_vl),
            count.take.eq(tail),
            count.take_vl.eq(tail_vl),
            self.vl_busy.eq(count.any),
            self.entered_valid.eq(tail),
            self.gone_qp.eq(gone.qp),
            self.entered.traffic_class.eq(gone.traffic_class),
            self.entered.destination.eq(gone.destination),
            self.entered.flits.eq(gone.flits),
            self.entered.last.eq(gone.last),
        ]
        with m.If(tail):
            m.d.sync += [self.packets.eq(self.packets + 1), self.flits.eq(self.flits + gone.flits)]
        most = vls * depth + SPARE
        m.submodules.ended = ended = fifo.SyncFIFO(width=END_LAYOUT.size, depth=most)
        end, under_way = Signal(END_LAYOUT), Signal(range(most + 1))
        waited = Signal(TIME_BITS)
        m.d.comb += [
            end.qp.eq(gone.qp),
            end.queue.eq(gone.queue),
            end.tag.eq(gone.tag),
            end.bytes.eq(gone.bytes),
            end.signaled.eq(gone.signaled),
            end.departed.eq(departed),
            waited.eq(departed - gone.begun),
            end.buffered.eq(Mux(waited > MOST_BUFFERED_CYCLES, MOST_BUFFERED_CYCLES, waited)),
            ended.w_data.eq(end),
            ended.w_en.eq(tail & gone.last),
            self.end.valid.eq(ended.r_rdy),
            self.end.payload.eq(ended.r_data),
            ended.r_en.eq(self.end.ready),
            self.room.eq(under_way != most),
            self.quiet.eq((under_way == 0) & ~count.any.any() & ~tail & ~self.begin),
        ]
        with m.If(gone.failed):
            m.d.comb += end.status.eq(CqeStatus.BUS_ERROR)
        m.d.sync += under_way.eq(under_way + self.start - self.retired)
        return m

    def _stamps(self, m: Module, tail_vl: Signal) -> Value:
        """The time of the header of the packet whose tail was on the link in the cycle before."""
        vls = self.config.link.vls
        inside = Signal(vls)  # VLs with a packet that has a flit on the link, and not its tail
        m.submodules.stamps = stamps = memory.Memory(shape=TIME_BITS, depth=max(2, vls), init=[])
        write, read = stamps.write_port(), stamps.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.flit_vl),
            write.data.eq(self.now),
            write.en.eq(self.flit & ~inside.bit_select(self.flit_vl, 1)),
            # The next header of the VL comes in this cycle at the earliest, and is not read yet.
            read.addr.eq(tail_vl),
        ]
        with m.If(self.flit):
            m.d.sync += inside.bit_select(self.flit_vl, 1).eq(~self.tail)
        return read.data
