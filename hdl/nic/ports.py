"""The NIC's ports and address maps, as the processor and the host see them, and the signature of the whole card."""

from __future__ import annotations

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..axi import Axi4LiteSignature, Axi4Signature
from ..config import NicConfig
from ..link import LinkSignature
from ..register_port import ProcessorSignature
from .rtc import PASSED_BITS, clock_layout

__all__ = [
    "DOORBELL_BASE",
    "DOORBELL_PAGE_BYTES",
    "HOST_ADDRESS_BITS",
    "REGISTER_BASE",
    "SRAM_BASE",
    "NicSignature",
    "due_layout",
]

SRAM_BASE = 0x000000
"""SRAM, byte addresses, in the processor's map and in the host's window."""
REGISTER_BASE = 0x100000
"""Registers: `nic.rdl` in the processor's map, `host.rdl` in the host's."""
DOORBELL_BASE = 0x400000
"""First doorbell page, in the host's map alone; channel `c` is at `DOORBELL_BASE + c * DOORBELL_PAGE_BYTES`.

A 32-bit write anywhere in the page rings the channel's doorbell.
"""
DOORBELL_PAGE_BYTES = 4096
"""A page of the host's MMU, so that a process is given its own channels and no others."""
HOST_ADDRESS_BITS = 23
"""Width of the host's window: 1024 doorbell pages above `DOORBELL_BASE`."""


def due_layout(config: NicConfig) -> data.StructLayout:
    """An RTC value at which something happens, if `valid`."""
    return data.StructLayout({"valid": 1, "ticks": config.rtc_bits})


class NicSignature(wiring.Signature):
    """The whole card. Members:

    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the network link.
    - `dma` (out, `Axi4Signature`): AXI4 master onto host memory.
    - `host` (in, `Axi4LiteSignature`): registers, SRAM window and doorbell pages for the host.
    - `processor` (in, `ProcessorSignature`): the NIC processor's port.
    - `processor_1` (in, `ProcessorSignature`), only with two processors: the second one's port.
    - `interrupt` (out): the host's interrupt line.
    - `activity` (out): something moved in this cycle (a flit, a bus beat, a processor access), for the watchdog.

    These are there only if `skippable`, for a simulator that passes over cycles in which nothing happens:

    - `clock` (out, `rtc.clock_layout`): the place at which the RTC stands.
    - `set_clock` (in), `clock_set` (in, `rtc.clock_layout`): at the end of the cycle the RTC stands there.
    - `timer_due`, `flow_due` (out, `due_layout`): the time at which the card next does something by itself, if `valid`.
    - `rests` (out): no block counts cycles or walks through a table, whatever `activity` says.
    - `passed` (in, `PASSED_BITS`): so many cycles more are over with this one.
    """

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        clock, due = clock_layout(config), due_layout(config)
        skipping = {
            "clock": Out(clock),
            "set_clock": In(1),
            "clock_set": In(clock),
            "timer_due": Out(due),
            "flow_due": Out(due),
            "rests": Out(1),
            "passed": In(PASSED_BITS),
        }
        super().__init__(
            {
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "dma": Out(Axi4Signature(data_bits=config.bus_bits)),
                "host": In(Axi4LiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "processor": In(ProcessorSignature()),
                "interrupt": Out(1),
                "activity": Out(1),
            }
            | ({"processor_1": In(ProcessorSignature())} if config.processors == 2 else {})
            | (skipping if skippable else {})
        )
