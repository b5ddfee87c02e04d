"""The NIC processor's port: its accesses to registers and SRAM."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import NicConfig
from ...register_bank import OFFSET_BITS, BankSignature
from ...register_port import ProcessorSignature
from ..ports import REGISTER_BASE
from ..sram import SramPortSignature

__all__ = ["ProcessorPort", "lane_bits"]


def lane_bits(config: NicConfig) -> int:
    """Bits of a byte address that choose a 32-bit lane of an SRAM word (0 if the word is one lane)."""
    return (config.word_bytes // 4 - 1).bit_length()


class ProcessorPort(wiring.Component):
    """Decodes the processor's accesses (`ports.py` has the map).

    With `shared` another processor has its turns at the registers (`BankJoin`).

    Members:

    - `processor` (in, `ProcessorSignature`): the processor.
    - `registers` (out, `BankSignature`): the bank of `nic.rdl`.
    - `sram` (out, `SramPortSignature`): the processor's port of the SRAM; an access is the 32-bit lane of its
      address.
    - `event` (in): shown as `response.event`.
    - `taken` (out): an access is taken in this cycle.
    - `bank_ready` (in), only if `shared`: the access to `registers` is taken in this cycle; it is held until then.
    - `held` (in), only with `config.pipelined`: the first cycle of an access to registers must wait.
    - `acts` (out), only with `config.pipelined`: this is the second cycle of such an access.

    Latency: a register access is taken at once, an SRAM access when the SRAM grants it (at best in the same cycle).
    Read data comes in the cycle after and stands for that cycle only. Throughput: an access a cycle.

    Addresses with neither register nor SRAM behind them are taken at once, read as zero and write nothing. The low two
    bits of an address are ignored.

    With `config.pipelined` an access to anything but the SRAM is taken in the second cycle of its request, so that it
    takes two. `registers` (and `bank_ready`) have it in the first cycle, in which `held` must not be up. It acts in the
    second (`acts`).
    """

    def __init__(self, config: NicConfig, *, shared: bool = False) -> None:
        self.config = config
        self._shared = shared
        super().__init__(
            {
                "processor": In(ProcessorSignature()),
                "registers": Out(BankSignature()),
                "sram": Out(SramPortSignature(config)),
                "event": In(1),
                "taken": Out(1),
            }
            | ({"bank_ready": In(1)} if shared else {})
            | ({"held": In(1), "acts": Out(1)} if config.pipelined else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.processor.request, self.processor.response
        bank, sram = self.registers, self.sram
        lanes = self.config.word_bytes // 4
        low = 2 + lane_bits(self.config)

        in_registers, in_sram = Signal(), Signal()
        reads: Value = request.valid & in_registers & ~request.write
        writes: Value = request.valid & in_registers & request.write
        ready = self._ready(in_registers, in_sram)
        taken: Value = request.valid & response.ready
        if self.config.pipelined:
            goes = Signal()
            m.d.comb += goes.eq(request.valid & ~in_sram & ~self.acts & ~self.held)
            m.d.sync += self.acts.eq(goes & (self.bank_ready | ~in_registers) if self._shared else goes)
            reads, writes = goes & reads, goes & writes
            ready, taken = self.acts | (in_sram & sram.ready), self.acts | (sram.valid & sram.ready)
        offset = request.address[2:OFFSET_BITS] << 2
        m.d.comb += [
            in_registers.eq(request.address[OFFSET_BITS:] == REGISTER_BASE >> OFFSET_BITS),
            in_sram.eq(request.address < self.config.sram_bytes),
            bank.read.eq(reads),
            bank.write.eq(writes),
            bank.read_offset.eq(offset),
            bank.write_offset.eq(offset),
            bank.write_data.eq(request.data),
            sram.valid.eq(request.valid & in_sram),
            sram.write.eq(request.write),
            sram.address.eq(request.address[low:]),
            sram.data.eq(request.data.replicate(lanes)),
            sram.mask.eq(0xF << (request.address[2:low] << 2)),
            response.ready.eq(ready),
            response.event.eq(self.event),
            self.taken.eq(taken),
        ]
        # The source of the data of the read taken in the cycle before.
        from_registers, from_sram = Signal(), Signal()
        read: Value = bank.read & self.bank_ready if self._shared else bank.read
        if self.config.pipelined:
            read_now = Signal()
            m.d.sync += read_now.eq(read)
            read = read_now
        lane = Signal(range(lanes))
        m.d.sync += [
            from_registers.eq(read & bank.read_mapped),
            from_sram.eq(sram.valid & sram.ready & ~sram.write),
            lane.eq(request.address[2:low]),
        ]
        m.d.comb += response.data.eq(
            Mux(from_registers, bank.read_data, 0) | Mux(from_sram, sram.rdata.word_select(lane, 32), 0)
        )
        return m

    def _ready(self, in_registers: Value, in_sram: Value) -> Value:
        if self._shared:
            return Mux(in_registers, self.bank_ready, ~in_sram | self.sram.ready)
        return ~in_sram | self.sram.ready
