"""The host's port: an AXI4-Lite subordinate over registers, the SRAM window and the doorbell pages."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data as data_layouts
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..axi import Axi4LiteSignature
from ..config import NicConfig
from ..register_bank import OFFSET_BITS, BankSignature
from .doorbell import ring_layout
from .owners.completion_layout import CONSUME_LAYOUT, OWNER_BITS
from .owners.owner_page import CONSUME_WORD, DOORBELL_WORD, PART_BITS, PagePart
from .ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, HOST_ADDRESS_BITS, REGISTER_BASE
from .processor.port import lane_bits
from .sram import SramPortSignature

__all__ = ["SHADOW_LAYOUT", "HostPort", "Resp"]

SHADOW_LAYOUT = data_layouts.StructLayout({"owner": OWNER_BITS, "address": 20, "bytes": PART_BITS + 1})
"""A shadow window: `bytes` of the SRAM from `address` on, which `owner` may write.

It is of whole words: the low two bits of either are not looked at, so it never has more than `bytes`.
"""


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

    - `consume` (out, stream of `CONSUME_LAYOUT`), `consume_refused` (in), only with completion queues: writes of part
      2.
    - `shadow` (in, `SHADOW_LAYOUT`), `shadows` (in), only with shadow windows: a window is written when `shadows` is
      up.

    In a card without owners a page of the doorbell window is a channel's, and a write anywhere in it rings the
    channel's doorbell. With receive doorbells a write in the upper half rings its receive doorbell.

    With `owners` page `i` is that of owner `i`, and the operating system maps it into one process. So a page says who
    writes. In nagar-thesis-2001 4.2.3 "the protection domain is a process", and all its doorbells are on one page. Its
    parts, of 1024 bytes, take a word each wherever it is written:

    - 0: send doorbell. Bits 9:0 are the channel, 31:10 the doorbell's word.
    - 1: receive doorbell, in cards that have them, with the same bits.
    - 2: completion queue. Bits 5:0 are the queue, bit 15 arms, 31:16 are the index before which all is consumed. The
      write goes to `consume`, and is refused if `consume_refused` is up.
    - 3: shadow window: the bytes that `shadow` has given to the owner, and which the write cannot leave. After power-up
      no owner has any.

    The SRAM window and the registers are for the driver: they are on no page that is mapped into a process.

    Answers are OKAY. An access that did nothing is answered with SLVERR:

    - an address with nothing behind it
    - a doorbell that is refused (counted by `Doorbell`)
    - a doorbell read
    - a register or doorbell write without all four strobes

    A write to a register that software may only read is OKAY and does nothing.

    Throughput: one write and one read at a time, beside each other. Latency: `bvalid` comes two cycles after the later
    half of a write, more if the SRAM is busy. `rvalid` comes three cycles after the address, more if the SRAM is busy.

    `awready` and `wready` are up until their half of a write has come, in any order, and again once it has been done. A
    doorbell write to a full queue is done when the queue has room. The next write waits on the bus behind it, reads do
    not. If an SRAM write and an SRAM read come at the same time the write goes first. Valid signals stay up, and their
    payload stays, until they are taken. Reset: nothing is under way.
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
            | self._page_members(config)
        )

    @staticmethod
    def _page_members(config: NicConfig) -> dict[str, wiring.Member]:
        members: dict[str, wiring.Member] = {}
        if config.completion_queues:
            members |= {"consume": Out(stream.Signature(CONSUME_LAYOUT)), "consume_refused": In(1)}
        if config.shadow_windows:
            members |= {"shadow": In(SHADOW_LAYOUT), "shadows": In(1)}
        return members

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host, sram = self.host, self.sram
        lanes = self.config.word_bytes // 4
        low = 2 + lane_bits(self.config)
        write_address, write_data, write_mask = Signal.like(host.awaddr), Signal(32), Signal(4)
        # The address in the SRAM to which a write goes.
        self._write_at = Signal.like(host.awaddr) if self.config.shadow_windows else write_address
        read_address = Signal.like(host.araddr)
        write_sram, read_sram = Signal(), Signal()
        self._write(m, write_address, write_data, write_mask, write_sram)
        self._read(m, read_address, read_sram, write_sram)

        address = Mux(write_sram, self._write_at, read_address)
        m.d.comb += [
            sram.valid.eq(write_sram | read_sram),
            sram.write.eq(write_sram),
            sram.address.eq(address[low:]),
            sram.data.eq(write_data.replicate(lanes)),
            sram.mask.eq(write_mask << (self._write_at[2:low] << 2)),
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
        have_address, have_data, in_sram = Signal(), Signal(), Signal()
        m.d.comb += [host.awready.eq(~have_address), host.wready.eq(~have_data)]
        with m.If(host.awvalid & host.awready):
            m.d.sync += [have_address.eq(1), address.eq(host.awaddr), in_sram.eq(self._in_sram(host.awaddr))]
        with m.If(host.wvalid & host.wready):
            m.d.sync += [have_data.eq(1), data.eq(host.wdata), mask.eq(host.wstrb)]

        # A write is done once both halves stand and the answer to the one before has been taken.
        go, done, good = Signal(), Signal(), Signal()
        m.d.comb += [
            go.eq(have_address & have_data & ~host.bvalid),
            bank.write_offset.eq(address[2:OFFSET_BITS] << 2),
            bank.write_data.eq(data),
        ]
        page = address[(DOORBELL_PAGE_BYTES - 1).bit_length() :]
        part = address[PART_BITS : (DOORBELL_PAGE_BYTES - 1).bit_length()]
        if self.config.owners:
            rung = data_layouts.View(DOORBELL_WORD, data)
            m.d.comb += [
                ring.payload.channel.eq(rung.channel),
                ring.payload.word.eq(rung.word),
                ring.payload.owner.eq(page),
            ]
        else:
            m.d.comb += [ring.payload.channel.eq(page), ring.payload.word.eq(data)]
        if self.config.receive_doorbells != "none":
            m.d.comb += ring.payload.receive.eq(part[0] if self.config.owners else part[1])
        window = None
        if self.config.shadow_windows:
            window = self._windows(m, page[:OWNER_BITS])
            m.d.comb += self._write_at.eq(address)
        with m.If(in_sram):
            m.d.comb += [sram.eq(go), done.eq(self.sram.ready), good.eq(1)]
        with m.Elif(self._in_registers(address) & mask.all()):
            m.d.comb += [bank.write.eq(go), done.eq(1), good.eq(bank.write_mapped)]
        with m.Elif((address >= DOORBELL_BASE) & mask.all()):
            rings = [ring.valid.eq(go), done.eq(ring.ready), good.eq(~self.refused)]
            if not self.config.owners:
                m.d.comb += rings
            else:
                self._owner_page(m, page[:OWNER_BITS], address, data, go, rings, window, (sram, done, good))
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

    def _owner_page(
        self,
        m: Module,
        page: Value,
        address: Signal,
        data: Signal,
        go: Signal,
        rings: list[Any],
        window: data_layouts.View | None,
        ends: tuple[Signal, Signal, Signal],
    ) -> None:
        """A write into the page of an owner.

        - `rings`: the signals that ring a doorbell.
        - `window`: the owner's shadow window.
        - `ends`: an SRAM write is wanted, the write is done, and it did something.
        """
        sram, done, good = ends
        m.d.comb += done.eq(1)
        with m.Switch(address[PART_BITS : (DOORBELL_PAGE_BYTES - 1).bit_length()]):
            doorbells = [PagePart.SEND] + [PagePart.RECEIVE] * (self.config.receive_doorbells != "none")
            with m.Case(*doorbells):
                m.d.comb += rings
            if self.config.completion_queues:
                with m.Case(PagePart.COMPLETION):
                    consume, said = self.consume.payload, data_layouts.View(CONSUME_WORD, data)
                    m.d.comb += [
                        self.consume.valid.eq(go),
                        *(consume[name].eq(said[name]) for name in ("queue", "arm", "index")),
                        consume.owner.eq(page),
                        done.eq(self.consume.ready),
                        good.eq(~self.consume_refused),
                    ]
            if window is not None:
                offset = address[:PART_BITS]
                # A write is of a word: all of it must be in the window.
                inside = (page < self.config.owners) & (offset[2:] < window.bytes[2:])
                with m.Case(PagePart.SHADOW), m.If(inside):
                    m.d.comb += [
                        self._write_at.eq(Cat(offset[:2], window.address[2:] + offset[2:])),
                        sram.eq(go),
                        done.eq(self.sram.ready),
                        good.eq(1),
                    ]

    def _windows(self, m: Module, page: Value) -> data_layouts.View:
        """The shadow window of the owner of `page`."""
        fields = {name: field.width for name, field in SHADOW_LAYOUT if name != "owner"}
        m.submodules.windows = windows = Memory(
            shape=data_layouts.StructLayout(fields), depth=self.config.owners, init=[]
        )
        write, read = windows.write_port(), windows.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.shadow.owner),
            write.en.eq(self.shadows & (self.shadow.owner < self.config.owners)),
            write.data.address.eq(self.shadow.address),
            write.data.bytes.eq(self.shadow.bytes),
            read.addr.eq(page),
        ]
        return read.data

    def _read(self, m: Module, address: Signal, sram: Signal, sram_taken: Signal) -> None:
        """Adds the read side. `sram_taken`: a write has the SRAM port in this cycle."""
        host, bank = self.host, self.registers
        lane = address[2 : 2 + lane_bits(self.config)]
        with m.If(host.rvalid & host.rready):
            m.d.sync += host.rvalid.eq(0)
        m.d.comb += bank.read_offset.eq(address[2:OFFSET_BITS] << 2)
        in_sram = Signal()
        answered = [host.rvalid.eq(1), host.rresp.eq(Resp.OKAY)]
        with m.FSM():
            with m.State("idle"):
                m.d.comb += host.arready.eq(~host.rvalid)
                m.d.sync += [address.eq(host.araddr), in_sram.eq(self._in_sram(host.araddr))]
                with m.If(host.arvalid & host.arready):
                    m.next = "start"
            with m.State("start"):
                with m.If(in_sram):
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
