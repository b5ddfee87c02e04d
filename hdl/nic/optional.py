"""Registers, and bits of registers, that a card has only where its configuration asks for them.

The `.rdl` files declare what any card may have. A card without a feature has neither its registers nor its
event bits: they read as zero, and leave no logic behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..config import NicConfig
from ..registers import Register
from ..router.scheduler import has_tables
from .link_port.vl_port import port_config
from .owners.owned_registers import OWNED

__all__ = ["OPTIONAL", "active_registers"]

QUEUES: Mapping[str, Callable[[NicConfig], bool]] = {
    "HOST_DMA": lambda config: config.host_dma_queue_entries > 0,
    "SEND": lambda config: config.send_queue_entries > 0,
    "RECEIVE": lambda config: config.receive_queue_entries > 0,
}
"""Which cards have a queue before an engine, by the beginning of the names of its registers."""

OPTIONAL: Mapping[str, Callable[[NicConfig], bool]] = {
    **OWNED,
    **{f"{name}_{part}": has for name, has in QUEUES.items() for part in ("TAG", "QUEUE", "FINISHED")},
    "HOST_DMA_FINISHED.status": lambda config: config.host_dma_queue_entries > 0 and config.regions > 0,
    **dict.fromkeys(("HOST_DMA_FLOW", "HOST_DMA_VTICK"), lambda config: config.stamps_host_dma),
    **dict.fromkeys(("SEND_FLOW", "SEND_VTICK"), lambda config: config.stamps_send),
    **dict.fromkeys(
        ("HOST_DMA_STAMP", "HOST_DMA_PROTECT"),
        lambda config: config.host_dma_queue_entries > 0 and config.host_dma_queue_order == "timestamp",
    ),
    **dict.fromkeys(
        ("SEND_STAMP", "SEND_PROTECT"),
        lambda config: config.send_queue_entries > 0 and config.send_queue_order == "timestamp",
    ),
    **dict.fromkeys(("ISR.peer", "LOCKS", "PEER"), lambda config: config.processors == 2),
    **dict.fromkeys(("LINK", "LINK_LOST"), lambda config: bool(config.link.restart)),
    "DISCARDED": lambda config: config.receive_wait_cycles > 0,
    **dict.fromkeys(("SEND_VLS", "RECEIVE_VLS"), lambda config: config.vl_packets > 0),
    **dict.fromkeys(
        ("VL_TABLE_ENTRY", "VL_TABLE_COMMIT"),
        lambda config: config.vl_packets > 0 and has_tables(port_config(config)),
    ),
}
"""Which cards have a register (by its name) or a field (`REGISTER.field`); what is not named here all have."""


def active_registers(registers: Mapping[str, Register], config: NicConfig) -> dict[str, Register]:
    """What `config`'s card has of the `registers` of a declaration, by name, in the same order. The mask of
    events is as wide as the highest event bit that is left."""

    def has(name: str) -> bool:
        return name not in OPTIONAL or OPTIONAL[name](config)

    found = {}
    for name, register in registers.items():
        if has(name):
            fields = {
                part: field for part, field in register.fields.items() if has(part_name(register, part))
            }
            found[name] = replace(register, fields=fields)
    for mask, status in (("IMR", "ISR"), ("HOST_IMR", "HOST_ISR")):
        if mask in found:
            width = 1 + max(field.low for field in found[status].fields.values())
            fields = {"mask": replace(found[mask].fields["mask"], width=width)}
            found[mask] = replace(found[mask], fields=fields)
    return found


def part_name(register: Register, field: str) -> str:
    """The name of a field in `OPTIONAL`."""
    return f"{register.name}.{field}"
