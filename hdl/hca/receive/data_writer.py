"""The write of packets into host memory: bursts back to back, and after their answers the ends of messages."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...axi import Axi4Signature
from ...config.hca import BUS_BITS, HcaConfig
from ..completion_writer import COMPLETION_POST
from ..layout import MESSAGE_BITS, QP_BITS
from .layout import STAGE_PACKETS, WRITE_LAYOUT
from .packet_stage import FLIT_BYTES, FLIT_SHIFT, slot_bits
from .write_ends import WriteEnds

__all__ = ["BURSTS_AHEAD", "DataWriter"]

BURSTS_AHEAD = 4
"""Bursts whose address goes to the bus before their first beat."""


class DataWriter(wiring.Component):
    """Writes packets from the stage into segments of host memory.

    Members:

    - `write` (in, stream of `WRITE_LAYOUT`): a packet, or an end of a message without one.
    - `read_valid`, `read_address` (out), `read_data` (in): to `PacketStage`.
    - `release` (out): the packet that has been in the stage longest is not needed any more.
    - `post` (out, stream of `COMPLETION_POST`): ends of messages.
    - `forget`, `forget_qp` (in): errors of the queue pair are forgotten. Only while it `rests`.
    - `bus_errors` (out, 32): bursts that the bus answered with an error since reset, modulo 2^32.
    - `axi` (out, `Axi4Signature` of 128 bits): writes, ID 0. A burst has `burst_beats` beats at most and is in one
      segment, so in one page. Of its last beat only the packet's bytes are written.
    - `rests` (out): nothing is under way.

    Latency: the address of a write taken in cycle t is on the bus in t + 2, its first beat in t + 3. Throughput: a beat
    a cycle, with no cycle between bursts, if bursts have 2 beats or more. Reset: nothing is under way.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        self._address_bits = slot_bits(config) + (STAGE_PACKETS - 1).bit_length()
        super().__init__(
            {
                "write": In(stream.Signature(WRITE_LAYOUT)),
                "read_valid": Out(1),
                "read_address": Out(self._address_bits),
                "read_data": In(BUS_BITS),
                "release": Out(1),
                "post": Out(stream.Signature(COMPLETION_POST)),
                "forget": In(1),
                "forget_qp": In(QP_BITS),
                "bus_errors": Out(32),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        m.submodules.ends = self._ends = ends = WriteEnds(self.config)
        connect(m, ends.post, flipped(self.post))
        m.d.comb += [
            ends.forget.eq(self.forget),
            ends.forget_qp.eq(self.forget_qp),
            ends.answer.eq(axi.bvalid),
            ends.error.eq(axi.bresp[1]),
            axi.bready.eq(ends.answer_ready),
            axi.rready.eq(1),
            self.bus_errors.eq(ends.bus_errors),
            axi.awsize.eq(FLIT_SHIFT),
            axi.awburst.eq(1),  # INCR
        ]
        # Beats of a burst (0: none, but the packet may be released), bytes in the last one (0: all of it).
        self._burst = data.StructLayout(
            {"place": self._address_bits, "beats": 9, "tail": FLIT_SHIFT, "releases": 1}
        )
        m.submodules.bursts = bursts = fifo.SyncFIFO(width=self._burst.size, depth=BURSTS_AHEAD)
        writes = self._split(m, bursts, ends)
        beats = self._feed(m, bursts)
        m.d.comb += self.rests.eq(
            ends.empty & ~(writes | beats | self.write.valid | (bursts.level != 0) | axi.awvalid)
        )
        return m

    def _split(self, m: Module, bursts: fifo.SyncFIFO, ends: WriteEnds) -> Value:
        """Segments into bursts, each of which goes to three places at once; returns whether one is being split."""
        axi, most = self.axi, self.config.burst_beats
        have, wanted = Signal(), Signal(WRITE_LAYOUT)
        place = Signal(self._address_bits)
        size, last, ready, goes = Signal(MESSAGE_BITS), Signal(), Signal(), Signal()
        burst, item = self._burst(bursts.w_data), ends.item.payload
        m.d.comb += [
            # The segment under way is always the first one.
            last.eq((wanted.bytes <= most * FLIT_BYTES) & (wanted.next_bytes == 0)),
            size.eq(Mux(wanted.bytes <= most * FLIT_BYTES, wanted.bytes, most * FLIT_BYTES)),
            ready.eq((~axi.awvalid | axi.awready) & bursts.w_rdy & ends.item.ready),
            goes.eq(have & ready),
            bursts.w_en.eq(goes),
            burst.place.eq(place),
            burst.beats.eq((size + FLIT_BYTES - 1)[FLIT_SHIFT:]),
            burst.tail.eq(size),
            burst.releases.eq(last & wanted.releases),
            ends.item.valid.eq(goes),
            item.awaits.eq(size != 0),
            item.ends.eq(last & wanted.ends),
            item.qp.eq(wanted.qp),
            item.post.eq(wanted.post),
            self.write.ready.eq(~have | (goes & last)),
        ]
        with m.If(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(goes):
            m.d.sync += place.eq(place + burst.beats)
            with m.If(size != 0):
                m.d.sync += [
                    axi.awvalid.eq(1),
                    axi.awaddr.eq(wanted.address),
                    axi.awlen.eq(burst.beats - 1),
                ]
            with m.If(wanted.bytes <= most * FLIT_BYTES):
                m.d.sync += [
                    wanted.address.eq(wanted.next_address),
                    wanted.bytes.eq(wanted.next_bytes),
                    wanted.next_bytes.eq(0),
                ]
            with m.Else():
                m.d.sync += [wanted.address.eq(wanted.address + size), wanted.bytes.eq(wanted.bytes - size)]
            with m.If(last):
                m.d.sync += have.eq(0)
        with m.If(self.write.valid & self.write.ready):
            m.d.sync += [
                have.eq(1),
                wanted.eq(self.write.payload),
                place.eq(self.write.payload.slot << slot_bits(self.config)),
            ]
        return have

    def _feed(self, m: Module, bursts: fifo.SyncFIFO) -> Value:
        """Beats of the bursts, read from the stage; returns whether there are any."""
        axi = self.axi
        burst = self._burst(bursts.r_data)
        active, now = Signal(), Signal(self._burst)
        steps, issues, ends, loads, only_releases = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            # What is read now stands on the bus in the next cycle, until it is taken.
            steps.eq(~axi.wvalid | axi.wready),
            issues.eq(active & steps),
            ends.eq(issues & (now.beats == 1)),
            only_releases.eq(bursts.r_rdy & (burst.beats == 0) & ~active),
            loads.eq(bursts.r_rdy & (burst.beats != 0) & (~active | ends)),
            bursts.r_en.eq(loads | only_releases),
            self.release.eq((ends & now.releases) | (only_releases & burst.releases)),
            self.read_valid.eq(issues),
            self.read_address.eq(now.place),
            axi.wdata.eq(self.read_data),
        ]
        with m.If(steps):
            m.d.sync += axi.wvalid.eq(issues)
        with m.If(issues):
            m.d.sync += [
                axi.wlast.eq(now.beats == 1),
                axi.wstrb.eq(~0),
                now.place.eq(now.place + 1),
                now.beats.eq(now.beats - 1),
            ]
            with m.If((now.beats == 1) & (now.tail != 0)):
                m.d.sync += axi.wstrb.eq((1 << now.tail) - 1)
        with m.If(ends):
            m.d.sync += active.eq(0)
        with m.If(loads):
            m.d.sync += [active.eq(1), now.eq(burst)]
        return Cat(active, axi.wvalid).any()
