"""The host's port: an AXI4-Lite subordinate over registers, the SRAM window and the doorbell pages."""

from __future__ import annotations

from enum import IntEnum

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4LiteSignature
from ..config import NicConfig
from .doorbell import ring_layout
from .ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, HOST_ADDRESS_BITS, REGISTER_BASE
from .processor_port import lane_bits
from .register_bank import OFFSET_BITS, BankSignature
from .sram import SramPortSignature

__all__ = ["HostPort", "Resp"]


class Resp(IntEnum):
    """AXI response codes (ARM IHI 0022, A3.4.4)."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class HostPort(wiring.Component):
    """AXI4-Lite subordinate of the card (`ports.py` has the map).

    Members:

    - `host` (in, `Axi4LiteSignature`): the host's bus.
    - `registers` (out, `BankSignature`): the bank of `host.rdl`.
    - `sram` (out, `SramPortSignature`): the host's port of the SRAM; byte strobes are honoured.
    - `ring` (out, stream of `ring_layout`), `refused` (in): doorbell writes, to `Doorbell`.
    - `moved` (out): a transfer on one of the bus's channels in this cycle.

    Answers are OKAY, or SLVERR for an access that did nothing: an address with nothing behind it, a doorbell
    of a channel that does not exist (counted by `Doorbell`), a doorbell read, a register or doorbell write
    without all four strobes. A write to a register that software may only read is OKAY and does nothing.

    Latency: one write and one read at a time, beside each other. `awready` and `wready` are up until their
    half of a write has come, in any order, and again once it has been done; `bvalid` comes two cycles after
    the later half, more if the SRAM is busy. A doorbell write to a full queue is done when the queue has
    room: the next write waits on the bus behind it, reads do not. `rvalid` comes three cycles after the
    address, more if the SRAM is busy; of an SRAM write and read at the same time the write goes first. Valid
    signals stay up, and their payload stays, until they are taken. Reset: nothing is under way.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "host": In(Axi4LiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "registers": Out(BankSignature()),
                "sram": Out(SramPortSignature(config)),
                "ring": Out(stream.Signature(ring_layout(config))),
                "refused": In(1),
                "moved": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host, sram = self.host, self.sram
        lanes = self.config.word_bytes // 4
        low = 2 + lane_bits(self.config)
        write_address, write_data, write_mask = Signal.like(host.awaddr), Signal(32), Signal(4)
        read_address = Signal.like(host.araddr)
        write_sram, read_sram = Signal(), Signal()
        self._write(m, write_address, write_data, write_mask, write_sram)
        self._read(m, read_address, read_sram, write_sram)

        address = Mux(write_sram, write_address, read_address)
        m.d.comb += [
            sram.valid.eq(write_sram | read_sram),
            sram.write.eq(write_sram),
            sram.address.eq(address[low:]),
            sram.data.eq(write_data.replicate(lanes)),
            sram.mask.eq(write_mask << (write_address[2:low] << 2)),
            self.moved.eq(
                Cat(
                    host.awvalid & host.awready,
                    host.wvalid & host.wready,
                    host.bvalid & host.bready,
                    host.arvalid & host.arready,
                    host.rvalid & host.rready,
                ).any()
            ),
        ]
        return m

    def _in_sram(self, address: Signal) -> Signal:
        return address < self.config.sram_bytes

    @staticmethod
    def _in_registers(address: Signal) -> Signal:
        return address[OFFSET_BITS:] == REGISTER_BASE >> OFFSET_BITS

    def _write(self, m: Module, address: Signal, data: Signal, mask: Signal, sram: Signal) -> None:
        host, bank, ring = self.host, self.registers, self.ring
        have_address, have_data = Signal(), Signal()
        m.d.comb += [host.awready.eq(~have_address), host.wready.eq(~have_data)]
        with m.If(host.awvalid & host.awready):
            m.d.sync += [have_address.eq(1), address.eq(host.awaddr)]
        with m.If(host.wvalid & host.wready):
            m.d.sync += [have_data.eq(1), data.eq(host.wdata), mask.eq(host.wstrb)]

        # A write is done once both halves stand and the answer to the one before has been taken.
        go, done, good = Signal(), Signal(), Signal()
        m.d.comb += [
            go.eq(have_address & have_data & ~host.bvalid),
            bank.write_offset.eq(address[2:OFFSET_BITS] << 2),
            bank.write_data.eq(data),
            ring.payload.channel.eq(address[(DOORBELL_PAGE_BYTES - 1).bit_length() :]),
            ring.payload.word.eq(data),
        ]
        with m.If(self._in_sram(address)):
            m.d.comb += [sram.eq(go), done.eq(self.sram.ready), good.eq(1)]
        with m.Elif(self._in_registers(address) & mask.all()):
            m.d.comb += [bank.write.eq(go), done.eq(1), good.eq(bank.write_mapped)]
        with m.Elif((address >= DOORBELL_BASE) & mask.all()):
            m.d.comb += [ring.valid.eq(go), done.eq(ring.ready), good.eq(~self.refused)]
        with m.Else():
            m.d.comb += done.eq(1)
        with m.If(host.bready):
            m.d.sync += host.bvalid.eq(0)
        with m.If(go & done):
            m.d.sync += [
                have_address.eq(0),
                have_data.eq(0),
                host.bvalid.eq(1),
                host.bresp.eq(Mux(good, Resp.OKAY, Resp.SLVERR)),
            ]

    def _read(self, m: Module, address: Signal, sram: Signal, sram_taken: Signal) -> None:
        """`sram_taken`: a write has the SRAM port in this cycle."""
        host, bank = self.host, self.registers
        lane = address[2 : 2 + lane_bits(self.config)]
        with m.If(host.rvalid & host.rready):
            m.d.sync += host.rvalid.eq(0)
        m.d.comb += bank.read_offset.eq(address[2:OFFSET_BITS] << 2)
        answered = [host.rvalid.eq(1), host.rresp.eq(Resp.OKAY)]
        with m.FSM():
            with m.State("idle"):
                m.d.comb += host.arready.eq(~host.rvalid)
                m.d.sync += address.eq(host.araddr)
                with m.If(host.arvalid & host.arready):
                    m.next = "start"
            with m.State("start"):
                with m.If(self._in_sram(address)):
                    m.d.comb += sram.eq(1)
                    with m.If(self.sram.ready & ~sram_taken):
                        m.next = "sram"
                with m.Elif(self._in_registers(address)):
                    m.d.comb += bank.read.eq(1)
                    m.next = "register"
                with m.Else():
                    m.d.sync += [host.rvalid.eq(1), host.rdata.eq(0), host.rresp.eq(Resp.SLVERR)]
                    m.next = "idle"
            with m.State("sram"):
                m.d.sync += [*answered, host.rdata.eq(self.sram.rdata.word_select(lane, 32))]
                m.next = "idle"
            with m.State("register"):
                m.d.sync += [*answered, host.rdata.eq(bank.read_data)]
                with m.If(~bank.read_mapped):
                    m.d.sync += [host.rdata.eq(0), host.rresp.eq(Resp.SLVERR)]
                m.next = "idle"
