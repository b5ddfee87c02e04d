"""The host behind a NIC: its memory and its processor's programmed I/O, on one PCI bus.

The order of phases is that of the PCI Local Bus Specification, revision 2.1 (1995). `PciTiming` has their clocks.

Clock for clock, a transaction is:

1. arbitration, only if the bus was idle; else it is hidden behind the transaction before (3.4);
2. the address phase;
3. for reads one turnaround clock;
4. the target's wait states;
5. data phases of one word a clock;
6. an idle clock.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.axi import Axi4LiteSignature, Axi4Signature
from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.ports import HOST_ADDRESS_BITS

from .pci_timing import PciTiming

__all__ = [
    "HOST_COMMAND",
    "HOST_RESPONSE",
    "BusUse",
    "HostMemorySignature",
    "PciHost",
    "pci_signals",
]

OKAY, SLVERR, DECERR = 0, 2, 3
"""AXI responses (ARM IHI 0022, A3.4.4)."""
INCR = 1
"""AXI burst type (A3.4.1)."""

HOST_COMMAND = data.StructLayout({"toggle": 1, "write": 1, "address": HOST_ADDRESS_BITS, "data": 32})
"""Programmed I/O of the host's processor. A change of `toggle` starts an access, when the one before has ended.
`address` is in bytes of the NIC's window, a multiple of 4."""
HOST_RESPONSE = data.StructLayout({"toggle": 1, "error": 1, "data": 32})
"""Answer to programmed I/O.

- `toggle` follows that of the command when the access has ended.
- `error`: the NIC refused it.
- `data`: the word that was read.
"""


class BusUse(enum.Enum, shape=2):  # type: ignore[call-arg]
    """Who uses the bus."""

    IDLE = 0
    PROGRAMMED = 1
    DMA_READ = 2
    DMA_WRITE = 3


class HostMemorySignature(wiring.Signature):
    """A synchronous memory of `data_bits`, seen by its user. Members:

    - `address` (out, 32): bytes, a multiple of the word's; `write` (out), `strobe` (out, a bit a byte),
      `write_data` (out): a word written at the end of the cycle.
    - `read` (out): `read_data` (in) holds the word at `address` from the next cycle on.
    - `hit` (in): the word written in the cycle before is one that host software watches.
    """

    def __init__(self, *, data_bits: int) -> None:
        super().__init__(
            {
                "address": Out(32),
                "write": Out(1),
                "strobe": Out(data_bits // 8),
                "write_data": Out(data_bits),
                "read": Out(1),
                "read_data": In(data_bits),
                "hit": In(1),
            }
        )


class PciHost(wiring.Component):
    """Host bridge, memory controller and the processor's programmed I/O on one PCI bus.

    Parameters: `timing`; `data_bits` (32 or 64); `memory_bytes` (a multiple of 4096). Raises ConfigError.

    Members:

    - `dma` (in, `Axi4Signature`): the NIC's master. It sends whole-word INCR bursts, one at a time; anything else is
      answered with SLVERR. A beat beyond `memory_bytes` is answered with DECERR and ones (nobody claims the address:
      master abort). A write is answered in the cycle after its last beat.
    - `nic` (out, `Axi4LiteSignature`): programmed I/O into the NIC's window.
    - `command` (in, `HOST_COMMAND`), `response` (out, `HOST_RESPONSE`): the host's processor.
    - `memory` (out, `HostMemorySignature`).
    - `write_event` (out): changes two cycles after the last beat of a DMA write burst of which a word was watched.
    - `activity` (out): a transaction is on the bus.

    Latency on an idle bus, from request to first word: arbitration, 1, turnaround and wait states (read); then one word
    a cycle. Throughput of bursts of n words: n words in 1 + waits + n + idle cycles, as arbitration is hidden.

    Programmed I/O and DMA take turns when both wait. The NIC may not answer programmed I/O in `retry_cycles`. Then it
    leaves the bus to DMA and tries again, so that a NIC that stalls a doorbell write cannot lock itself up. Reset:
    idle.
    """

    def __init__(self, timing: PciTiming, *, data_bits: int, memory_bytes: int) -> None:
        if data_bits not in (32, 64):
            raise ConfigError(f"PciHost: data_bits = {data_bits}: 32 or 64")
        if memory_bytes <= 0 or memory_bytes % 4096:
            raise ConfigError(f"PciHost: memory_bytes = {memory_bytes}: a positive multiple of 4096")
        self._timing, self._data_bits, self._memory_bytes = timing, data_bits, memory_bytes
        super().__init__(
            {
                "dma": In(Axi4Signature(data_bits=data_bits)),
                "nic": Out(Axi4LiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "command": In(HOST_COMMAND),
                "response": Out(HOST_RESPONSE),
                "memory": Out(HostMemorySignature(data_bits=data_bits)),
                "write_event": Out(1),
                "activity": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, dma, nic, memory = self._timing, self.dma, self.nic, self.memory
        word_bytes = self._data_bits // 8
        shift = word_bytes.bit_length() - 1

        use = Signal(BusUse, name="bus_use")
        last_programmed = Signal()
        wait = Signal(range(64))
        words = Signal(range(timing.burst_words))
        # The DMA burst under way, which may take several bus transactions.
        burst_active = Signal()
        burst_write = Signal()
        beats = Signal(8)
        address = Signal(32)
        fault = Signal()
        write_response = Signal(2)
        bvalid = Signal()
        burst_id = Signal.like(dma.awid)
        in_memory = Signal()
        m.d.comb += in_memory.eq(address < self._memory_bytes)

        # Programmed I/O. `issued`: the NIC's port has been given the access, and answers in its own time.
        issued, aw, w, ar = Signal(), Signal(), Signal(), Signal()
        back_off = Signal(range(timing.retry_idle_cycles + 1))
        command, response = self.command, self.response
        programmed = Signal()
        m.d.comb += [
            programmed.eq((command.toggle != response.toggle) & (back_off == 0)),
            nic.awaddr.eq(command.address),
            nic.araddr.eq(command.address),
            nic.wdata.eq(command.data),
            nic.wstrb.eq(0b1111),
            nic.awvalid.eq(aw),
            nic.wvalid.eq(w),
            nic.arvalid.eq(ar),
        ]
        with m.If(nic.awready):
            m.d.sync += aw.eq(0)
        with m.If(nic.wready):
            m.d.sync += w.eq(0)
        with m.If(nic.arready):
            m.d.sync += ar.eq(0)
        with m.If(back_off != 0):
            m.d.sync += back_off.eq(back_off - 1)

        m.d.comb += [
            dma.bid.eq(burst_id),
            dma.rid.eq(burst_id),
            dma.bvalid.eq(bvalid),
            dma.bresp.eq(write_response),
            memory.strobe.eq(dma.wstrb),
            memory.write_data.eq(dma.wdata),
        ]
        with m.If(dma.bready):
            m.d.sync += bvalid.eq(0)

        new_burst = Signal()
        m.d.comb += new_burst.eq(~burst_active & ~bvalid & (dma.awvalid | dma.arvalid))
        # A master waits for the bus, and in the cycle it is chosen a new burst is taken from the AXI port.
        # Reads and writes of one master take turns: a NIC may have one of each in flight.
        take_write = Signal()
        m.d.comb += take_write.eq(dma.awvalid & (~dma.arvalid | ~burst_write))

        def choose(next_state: str) -> None:
            with m.If(programmed & ~(last_programmed & (burst_active | new_burst))):
                m.d.sync += [use.eq(BusUse.PROGRAMMED), last_programmed.eq(1)]
                m.next = next_state
            with m.Elif(burst_active):
                m.d.sync += use.eq(Mux(burst_write, BusUse.DMA_WRITE, BusUse.DMA_READ))
                m.d.sync += last_programmed.eq(0)
                m.next = next_state
            with m.Elif(new_burst):
                m.d.comb += [dma.awready.eq(take_write), dma.arready.eq(~take_write)]
                m.d.sync += [
                    last_programmed.eq(0),
                    use.eq(Mux(take_write, BusUse.DMA_WRITE, BusUse.DMA_READ)),
                    burst_active.eq(1),
                    burst_write.eq(take_write),
                    write_response.eq(OKAY),
                ]
                for taken, channel in ((take_write, "aw"), (~take_write, "ar")):
                    with m.If(taken):
                        start = getattr(dma, f"{channel}addr")
                        size, kind = getattr(dma, f"{channel}size"), getattr(dma, f"{channel}burst")
                        m.d.sync += [
                            burst_id.eq(getattr(dma, f"{channel}id")),
                            beats.eq(getattr(dma, f"{channel}len")),
                            address.eq(start[shift:] << shift),
                            fault.eq((size != shift) | (kind != INCR)),
                        ]
                m.next = next_state

        beat, burst_end = Signal(), Signal()
        m.d.comb += burst_end.eq(beat & (beats == 0))
        with m.If(beat):
            m.d.sync += [address.eq(address + word_bytes), beats.eq(beats - 1), words.eq(words - 1)]
        with m.If(burst_end):
            m.d.sync += burst_active.eq(0)

        with m.FSM(name="bus"):
            with m.State("IDLE"):
                m.d.sync += wait.eq(timing.arbitration_cycles - 2)
                choose("ARBITRATE" if timing.arbitration_cycles > 1 else "ADDRESS")
            with m.State("ARBITRATE"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.sync += words.eq(timing.burst_words - 1)
                with m.Switch(use):
                    with m.Case(BusUse.PROGRAMMED):
                        m.d.sync += [wait.eq(timing.retry_cycles - 2), issued.eq(1)]
                        with m.If(~issued):
                            m.d.sync += [aw.eq(command.write), w.eq(command.write), ar.eq(~command.write)]
                        m.next = "PROGRAMMED"
                    with m.Case(BusUse.DMA_READ):
                        m.d.sync += wait.eq(timing.read_turnaround_cycles + timing.read_wait_cycles - 1)
                        m.next = "WAIT"
                    with m.Default():
                        m.d.sync += wait.eq(timing.write_wait_cycles - 1)
                        m.next = "WAIT" if timing.write_wait_cycles else "WRITE"
            with m.State("WAIT"):
                m.d.sync += wait.eq(wait - 1)
                m.d.comb += [
                    memory.address.eq(address),
                    memory.read.eq((wait == 0) & ~burst_write & in_memory),
                ]
                with m.If(wait == 0):
                    m.next = "READ"
                    with m.If(burst_write):
                        m.next = "WRITE"
            with m.State("READ"):
                # The word shown now was read in the cycle before; the next one is read as this one is taken.
                m.d.comb += [
                    dma.rvalid.eq(1),
                    dma.rlast.eq(beats == 0),
                    dma.rresp.eq(Mux(fault, SLVERR, Mux(in_memory, OKAY, DECERR))),
                    dma.rdata.eq(Mux(in_memory & ~fault, memory.read_data, (1 << self._data_bits) - 1)),
                    beat.eq(dma.rready),
                    memory.address.eq(address + word_bytes),
                    memory.read.eq(beat & (beats != 0) & (memory.address < self._memory_bytes)),
                ]
                with m.If(beat & ((beats == 0) | (words == 0))):
                    m.d.sync += [wait.eq(timing.idle_cycles - 1), use.eq(BusUse.IDLE)]
                    m.next = "TURN"
            with m.State("WRITE"):
                m.d.comb += [
                    dma.wready.eq(1),
                    beat.eq(dma.wvalid),
                    memory.address.eq(address),
                    memory.write.eq(beat & in_memory & ~fault),
                ]
                with m.If(beat):
                    with m.If(fault):
                        m.d.sync += write_response.eq(SLVERR)
                    with m.Elif(~in_memory):
                        m.d.sync += write_response.eq(DECERR)
                m.d.sync += bvalid.eq(burst_end)
                with m.If(beat & ((beats == 0) | (words == 0))):
                    m.d.sync += [wait.eq(timing.idle_cycles - 1), use.eq(BusUse.IDLE)]
                    m.next = "TURN"
            with m.State("PROGRAMMED"):
                m.d.sync += wait.eq(wait - 1)
                m.d.comb += [nic.bready.eq(1), nic.rready.eq(1)]
                answered = nic.bvalid | nic.rvalid
                with m.If(answered):
                    m.d.sync += [
                        issued.eq(0),
                        response.toggle.eq(command.toggle),
                        response.error.eq(Mux(command.write, nic.bresp, nic.rresp) != OKAY),
                        response.data.eq(nic.rdata),
                    ]
                with m.Elif(wait == 0):
                    m.d.sync += back_off.eq(timing.retry_idle_cycles)
                with m.If(answered | (wait == 0)):
                    m.d.sync += [wait.eq(timing.idle_cycles - 1), use.eq(BusUse.IDLE)]
                    m.next = "TURN"
            with m.State("TURN"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "IDLE"
                    choose("ADDRESS")

        # The memory says a cycle after a write whether somebody watches that word.
        watched, ended = Signal(), Signal()
        m.d.sync += [
            ended.eq(burst_end & burst_write),
            watched.eq(~ended & (watched | memory.hit)),
            self.write_event.eq(self.write_event ^ (ended & (watched | memory.hit))),
        ]
        m.d.comb += self.activity.eq(use != BusUse.IDLE)
        return m


def pci_signals() -> dict[str, str]:
    """Variables that a watchdog shows of the module that a `PciHost` is converted to, with their meaning."""
    return {"bus_use": "who uses the bus: 0 nobody, 1 programmed I/O, 2 DMA read, 3 DMA write"}
