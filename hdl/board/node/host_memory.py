"""Memory of a host in block RAM: an AXI4 subordinate for the card, a port for whoever plays the host."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...axi import Axi4Signature
from ...config import ConfigError

__all__ = ["HostMemory"]

OKAY, SLVERR = 0, 2
"""AXI response codes (ARM IHI 0022, A3.4.4)."""


class HostMemory(wiring.Component):
    """Memory of `size_bytes`, a power of two, in words of 32 bits.

    Members:

    - `axi` (in, `Axi4Signature` of 32 bits): whole words in bursts that count up (INCR). One read and one write at a
      time, beside each other.
    - `address` (in): byte address of the port's access; `write` (in), `data` (in): write a word. `read` (out): the word
      at the address of the cycle before.

    A burst that begins behind the memory is answered with SLVERR, and writes nothing. Latency: a read's first beat
    comes 2 cycles after its address, a write's answer 1 cycle after its last beat. Throughput: a beat a cycle each way;
    a write of the port takes the cycle of one. Reset: nothing is under way; the memory keeps its contents.

    Raises ConfigError for another size.
    """

    def __init__(self, *, size_bytes: int) -> None:
        if size_bytes < 8 or size_bytes & (size_bytes - 1):
            raise ConfigError(f"HostMemory: size_bytes = {size_bytes}: a power of two, at least 8")
        self._size_bytes = size_bytes
        super().__init__(
            {
                "axi": In(Axi4Signature(data_bits=32)),
                "address": In(range(size_bytes)),
                "write": In(1),
                "data": In(32),
                "read": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=self._size_bytes // 4, init=[])
        self._write = memory.write_port(granularity=8)
        self._beat, port = memory.read_port(), memory.read_port()
        m.d.comb += [port.addr.eq(self.address[2:]), self.read.eq(port.data)]
        self._reads(m)
        self._writes(m)
        return m

    def _reads(self, m: Module) -> None:
        axi, beat = self.axi, self._beat
        # Beats that are still to be fetched from the memory; one that was fetched stands on the bus.
        word, left, good = Signal.like(beat.addr), Signal(9), Signal()
        m.d.comb += [
            axi.arready.eq((left == 0) & ~axi.rvalid),
            beat.addr.eq(word),
            beat.en.eq((left != 0) & (~axi.rvalid | axi.rready)),
            axi.rdata.eq(Mux(good, beat.data, 0)),
            axi.rresp.eq(Mux(good, OKAY, SLVERR)),
        ]
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(beat.en):
            m.d.sync += [axi.rvalid.eq(1), axi.rlast.eq(left == 1), left.eq(left - 1), word.eq(word + 1)]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                word.eq(axi.araddr[2:]),
                left.eq(axi.arlen + 1),
                axi.rid.eq(axi.arid),
                good.eq(axi.araddr < self._size_bytes),
            ]

    def _writes(self, m: Module) -> None:
        axi, port = self.axi, self._write
        word, busy, good = Signal.like(port.addr), Signal(), Signal()
        beat = axi.wvalid & axi.wready
        m.d.comb += [
            axi.awready.eq(~busy & ~axi.bvalid),
            axi.wready.eq(busy & ~self.write),
            port.addr.eq(Mux(self.write, self.address[2:], word)),
            port.data.eq(Mux(self.write, self.data, axi.wdata)),
            port.en.eq(Mux(self.write, 0xF, Mux(beat & good, axi.wstrb, 0))),
            axi.bresp.eq(Mux(good, OKAY, SLVERR)),
        ]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [
                word.eq(axi.awaddr[2:]),
                busy.eq(1),
                axi.bid.eq(axi.awid),
                good.eq(axi.awaddr < self._size_bytes),
            ]
        with m.If(beat):
            m.d.sync += word.eq(word + 1)
            with m.If(axi.wlast):
                m.d.sync += [busy.eq(0), axi.bvalid.eq(1)]
