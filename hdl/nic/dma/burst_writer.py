"""A bus manager that writes one burst at a time, for small blocks that write into host memory."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...axi import Axi4Signature

__all__ = ["BURST_LAYOUT", "BurstWriter"]

BURST_LAYOUT = data.StructLayout({"address": 32, "beats": 5})
"""A burst: byte address, a multiple of the bus's bytes, and beats, 1 to 16, that cross no 4096 bytes."""


class BurstWriter(wiring.Component):
    """INCR write bursts, one after the other.

    Members:

    - `start` (in, stream of `BURST_LAYOUT`): ready when idle.
    - `beat` (in, stream of `data` (`data_bits`), `strobes` (`data_bits / 8`)): the burst's beats, taken after
      `start` as fast as the bus takes them.
    - `done` (out): the response comes in this cycle.
    - `error` (out): that response is an error.
    - `axi` (out, `Axi4Signature`), ID 0; it never reads.

    Latency: `start` to the address on the bus, and a beat to the bus: a cycle. `wvalid` never waits for `awready`.
    Throughput: a beat a cycle while the bus takes one. Reset: idle.
    """

    def __init__(self, *, data_bits: int) -> None:
        self.data_bits = data_bits
        beat = data.StructLayout({"data": data_bits, "strobes": data_bits // 8})
        super().__init__(
            {
                "start": In(stream.Signature(BURST_LAYOUT)),
                "beat": In(stream.Signature(beat)),
                "done": Out(1),
                "error": Out(1),
                "axi": Out(Axi4Signature(data_bits=data_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, start, beat = self.axi, self.start, self.beat
        busy = Signal()
        left = Signal(5)  # beats that are not on the bus yet
        m.d.comb += [
            start.ready.eq(~busy),
            beat.ready.eq((left != 0) & (~axi.wvalid | axi.wready)),
            axi.awsize.eq((self.data_bits // 8).bit_length() - 1),
            axi.awburst.eq(1),  # INCR
            axi.bready.eq(1),
            self.done.eq(axi.bvalid & busy),
            self.error.eq(axi.bresp[1]),
        ]
        with m.If(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(axi.wready):
            m.d.sync += axi.wvalid.eq(0)
        with m.If(beat.valid & beat.ready):
            m.d.sync += [
                axi.wvalid.eq(1),
                axi.wdata.eq(beat.payload.data),
                axi.wstrb.eq(beat.payload.strobes),
                axi.wlast.eq(left == 1),
                left.eq(left - 1),
            ]
        with m.If(self.done):
            m.d.sync += busy.eq(0)
        with m.If(start.valid & start.ready):
            m.d.sync += [
                busy.eq(1),
                left.eq(start.payload.beats),
                axi.awvalid.eq(1),
                axi.awaddr.eq(start.payload.address),
                axi.awlen.eq(start.payload.beats - 1),
            ]
        return m
