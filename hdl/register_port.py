"""The register port: accesses of a processor or an agent to the registers of a card or a router."""

from __future__ import annotations

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PROCESSOR_REQUEST", "PROCESSOR_RESPONSE", "ProcessorSignature"]

PROCESSOR_REQUEST = data.StructLayout({"valid": 1, "write": 1, "address": 24, "data": 32})
"""An access of the NIC's processor: held until `ready`; `address` in bytes, a multiple of 4."""
PROCESSOR_RESPONSE = data.StructLayout({"ready": 1, "event": 1, "data": 32})
"""`ready`: the request of this cycle is taken at its end. `data`: of the read taken in the cycle before.
`event`: an enabled interrupt status bit is set (`ISR & IMR`)."""


class ProcessorSignature(wiring.Signature):
    """The processor port, seen by the processor. Members: `request` (out, `PROCESSOR_REQUEST`),
    `response` (in, `PROCESSOR_RESPONSE`). A register access takes one cycle, an SRAM access waits for its turn;
    read data comes in the cycle after the request is taken. One access a cycle."""

    def __init__(self) -> None:
        super().__init__({"request": Out(PROCESSOR_REQUEST), "response": In(PROCESSOR_RESPONSE)})
