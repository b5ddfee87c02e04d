"""The blocks that a card may have, in order, and the registers and names in commands that follow from them.

A new one is a file with a subclass of `NicBlock`, and a line in `NIC_BLOCKS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ..config import ConfigError, NicConfig
from ..register_bank import Name
from ..registers import Register, load, merge
from .block import NicBlock
from .names import CARD_NAMES, active_names
from .optional.completion_block import CompletionBlock
from .optional.doorbell_blocks import ChannelOwners, MergedDoorbells, ReceiveDoorbells, ShadowWindows
from .optional.link_blocks import LinkRestart, ReceiveWait, VlPortBlock, VlTables
from .optional.pair_block import ProcessorPair
from .optional.protection_block import ProtectionBlock, QueuedAccess
from .optional.queue_blocks import (
    HostDmaOrder,
    HostDmaQueue,
    HostDmaStamper,
    ReceiveQueue,
    SendOrder,
    SendQueue,
    SendStamper,
)

__all__ = [
    "HOST_REGISTERS",
    "NIC_BLOCKS",
    "NIC_REGISTERS",
    "command_names",
    "common_registers",
    "host_registers",
    "nic_names",
    "nic_registers",
    "wanted_blocks",
]

NIC_BLOCKS: tuple[type[NicBlock], ...] = (
    ChannelOwners,
    ShadowWindows,
    ReceiveDoorbells,
    MergedDoorbells,
    CompletionBlock,
    ProtectionBlock,
    HostDmaQueue,
    QueuedAccess,
    HostDmaOrder,
    HostDmaStamper,
    SendQueue,
    SendOrder,
    SendStamper,
    ReceiveQueue,
    ReceiveWait,
    LinkRestart,
    VlPortBlock,
    VlTables,
    ProcessorPair,
)
"""Every block. They are connected in this order."""

_Map = Literal["registers", "host_registers"]
_HERE = Path(__file__).parent
_BASE: Mapping[_Map, Mapping[str, Register]] = {
    "registers": load(_HERE / "nic.rdl"),
    "host_registers": load(_HERE / "host.rdl"),
}
"""Registers that every card has."""
_EVENTS: Mapping[_Map, tuple[str, str]] = {
    "registers": ("IMR", "ISR"),
    "host_registers": ("HOST_IMR", "HOST_ISR"),
}
"""The mask of events of each map, and their status."""


def _declared(which: _Map, blocks: Iterable[type[NicBlock]]) -> dict[str, Register]:
    """The map `which` of a card that has these blocks. The mask of events is as wide as the highest event bit."""
    found = merge(_BASE[which], *(getattr(block, which) for block in blocks))
    mask, status = _EVENTS[which]
    width = 1 + max(field.low for field in found[status].fields.values())
    fields = {"mask": replace(found[mask].fields["mask"], width=width)}
    found[mask] = replace(found[mask], fields=fields)
    return found


NIC_REGISTERS: Mapping[str, Register] = _declared("registers", NIC_BLOCKS)
"""Registers of the processor's map that any card may have, by name; offsets from `REGISTER_BASE`."""
HOST_REGISTERS: Mapping[str, Register] = _declared("host_registers", NIC_BLOCKS)
"""Registers of the host's map that any card may have, by name; offsets from `REGISTER_BASE`."""


def wanted_blocks(config: NicConfig) -> list[type[NicBlock]]:
    """The blocks of a card of this configuration, in order.

    Raises ConfigError if `NicConfig.blocks` names a block that is not there, or that other fields ask for.
    """
    wanted = [block for block in NIC_BLOCKS if block.wanted(config)]
    for name in config.blocks:
        if name not in [block.name for block in wanted]:
            others = (block for block in NIC_BLOCKS if block not in wanted)
            named = [one.name for one in others if one.wanted(config.replace(blocks=(one.name,)))]
            valid = f"one of {', '.join(named)}" if named else "none is asked for by name"
            raise ConfigError(f"NicConfig.blocks: {name!r}: {valid}")
    return wanted


def nic_registers(config: NicConfig) -> dict[str, Register]:
    """The registers of the processor's map that this card has, by name."""
    return _declared("registers", wanted_blocks(config))


def host_registers(config: NicConfig) -> dict[str, Register]:
    """The registers of the host's map that this card has, by name."""
    return _declared("host_registers", wanted_blocks(config))


def command_names() -> dict[str, tuple[Name, ...]]:
    """The names in each command of any card: `CARD_NAMES`, and those of the blocks."""
    found = dict(CARD_NAMES)
    for block in NIC_BLOCKS:
        for command, names in block.names.items():
            found[command] = (*found.get(command, ()), *names)
    return found


def nic_names(config: NicConfig) -> dict[str, list[tuple[Name, int]]]:
    """The names that this card must look at, by command, and how many things there are of each (`active_names`)."""
    return active_names(nic_registers(config), config, command_names())


def common_registers() -> frozenset[str]:
    """Registers of blocks with stored fields of which two processors share one."""
    return frozenset().union(*(block.common for block in NIC_BLOCKS))
