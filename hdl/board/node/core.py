"""The soft core: PicoRV32 with its program in block RAM, the card's processor port behind the program."""

from __future__ import annotations

from amaranth import ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Out

from ...config import ConfigError
from ...register_port import ProcessorSignature

__all__ = ["CARD_BASE", "PROGRAM_WORDS", "Core"]

CARD_BASE = 0x0100_0000
"""Where the core sees the card's processor port: its addresses have 24 bits."""
PROGRAM_WORDS = 256
"""Words of the program's memory, from address 0: a block RAM of an iCE40 or two."""


class Core(wiring.Component):
    """PicoRV32 (RV32I, no interrupts) that runs `program`, 32-bit words.

    Members:

    - `processor` (out, `ProcessorSignature`): the card's port; the core sees it from `CARD_BASE` on.
    - `trap` (out): the core has met something that is no instruction, and stands.

    The program's memory is only read: its data are in the card's SRAM. Latency: 2 cycles for a word of the program, 3
    for a register of the card. Throughput: an access at a time. Reset: the core begins at address 0.

    Source: github.com/YosysHQ/picorv32, as pip installs it (`pythondata-cpu-picorv32`). Raises ConfigError for a
    program that is too long.
    """

    def __init__(self, program: list[int]) -> None:
        if len(program) > PROGRAM_WORDS:
            raise ConfigError(f"Core: a program of {len(program)} words: at most {PROGRAM_WORDS}")
        self._program = program
        super().__init__({"processor": Out(ProcessorSignature()), "trap": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.processor.request, self.processor.response
        m.submodules.program = program = Memory(shape=32, depth=PROGRAM_WORDS, init=self._program)
        fetch = program.read_port()
        valid, ready, address, strobe = Signal(), Signal(), Signal(32), Signal(4)
        # The core has a synchronous reset; that of this component stands for it, whoever gives it.
        running, card = Signal(), Signal()
        m.d.sync += running.eq(1)
        m.submodules.core = Instance(
            "picorv32",
            # What the program does not use is left out.
            p_ENABLE_COUNTERS=0,
            p_ENABLE_COUNTERS64=0,
            p_CATCH_MISALIGN=0,
            i_clk=ClockSignal(),
            i_resetn=running,
            i_mem_ready=ready,
            i_mem_rdata=Mux(card, response.data, fetch.data),
            i_pcpi_wr=0,
            i_pcpi_rd=0,
            i_pcpi_wait=0,
            i_pcpi_ready=0,
            i_irq=0,
            o_trap=self.trap,
            o_mem_valid=valid,
            o_mem_addr=address,
            o_mem_wdata=request.data,
            o_mem_wstrb=strobe,
        )
        m.d.comb += [
            card.eq(address[24:] == CARD_BASE >> 24),
            fetch.addr.eq(address[2:]),
            request.valid.eq(valid & card & ~ready),
            request.write.eq(strobe.any()),
            request.address.eq(address[:24]),
        ]
        # The data of either come in the cycle after.
        m.d.sync += ready.eq(valid & ~ready & (~card | response.ready))
        return m
