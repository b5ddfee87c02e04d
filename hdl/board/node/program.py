"""The words of the soft core's program: `program.asm` with the registers and places that there are."""

from __future__ import annotations

from ...nic.blocks import NIC_REGISTERS
from ...nic.ports import REGISTER_BASE, SRAM_BASE
from ...packet import HEADER_LAYOUT
from . import layout
from .config import PROGRAM
from .core import CARD_BASE

__all__ = ["constants", "program_words"]

REGISTERS = (
    *("ISR", "RTC", "HOST_DMA_HOST", "HOST_DMA_SRAM", "HOST_DMA_CONTROL", "SEND_ADDRESS", "SEND_CONTROL"),
    *(
        "RECEIVE_ADDRESS",
        "RECEIVE_CONTROL",
        "CRC_ERRORS",
        "LENGTH_ERRORS",
        "DOORBELL_QUEUE",
        "HOST_INTERRUPT",
    ),
)
"""Registers that the program uses."""


def constants() -> dict[str, int]:
    """The names of the program that stand for numbers."""
    flow, sequence = (HEADER_LAYOUT[name].offset for name in ("flow", "sequence"))
    found = {name: NIC_REGISTERS[name].offset for name in REGISTERS}
    found |= {
        f"EVENT_{name.upper()}": 1 << NIC_REGISTERS["ISR"].fields[name].low
        for name in ("host_dma", "send", "receive")
    }
    found |= {
        "REGISTERS": CARD_BASE + REGISTER_BASE,
        "SRAM": CARD_BASE + SRAM_BASE,
        "TO_HOST": 1 << NIC_REGISTERS["HOST_DMA_CONTROL"].fields["to_host"].low,
        "COMMAND_COUNTS": layout.COMMAND + layout.HEADER_BYTES,
        "SRAM_BYTES": layout.SRAM_WORDS + 4,
        "ONE_SEQUENCE": 1 << sequence % 32,
        "RESULT_BYTES": 4 * len(layout.Result),
    }
    for name in ("COMMAND", "RESULT", "SOURCE", "DESTINATION", "AREA_BYTES", "HEADER_BYTES", "SRAM_WORDS"):
        found[name] = getattr(layout, name)
    for name in ("SRAM_PACKET", "SRAM_RECEIVE"):
        place = found[name] = getattr(layout, name)
        found[f"{name}_PAYLOAD"] = place + layout.HEADER_BYTES
        found[f"{name}_FLOW"] = place + flow // 32 * 4
        found[f"{name}_SEQUENCE"] = place + sequence // 32 * 4
    return found | {f"RESULT_{one.name}": layout.SRAM_WORDS + 4 * one for one in layout.Result}


def program_words() -> list[int]:
    """The program, assembled. Raises ModuleNotFoundError without the assembler, bronzebeard."""
    from bronzebeard.asm import assemble

    binary = assemble(str(PROGRAM), constants=constants())
    return [int.from_bytes(binary[i : i + 4], "little") for i in range(0, len(binary), 4)]
