"""Names in commands: the things that the processor's registers may name, and how many of each the card has.

A command that names a thing which is not there is refused and counted (`REFUSED` of `nic.rdl`), whatever the register.
No block sees it. So none can cut a number to the bits that it has and take another thing for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..config import NicConfig
from ..register_bank import Name
from ..registers import Register

__all__ = ["NAMES", "active_names"]


def _selected(*commands: str) -> dict[str, tuple[Name, ...]]:
    return {command: (Name(field="RATE_SELECT.flow", things="flows"),) for command in commands}


def _stamped(register: str) -> Name:
    return Name(field=f"{register}.flow", things="stamp_flows", only=(f"{register}.stamped", (1,)))


_OWNER = Name(field="owner", things="owners")

NAMES: Mapping[str, tuple[Name, ...]] = {
    **_selected("RATE_IDT", "RATE_NDT", "RATE_COMMAND"),
    "RATE_DISPATCH": (Name(field="flow", things="flows"),),
    "SEND_CONTROL": (Name(field="vl", things="link.vls"), _stamped("SEND_FLOW")),
    "SEND_VTICK": (Name(field="SEND_FLOW.flow", things="stamp_flows"),),
    "HOST_DMA_CONTROL": (_stamped("HOST_DMA_FLOW"),),
    "ACCESS_CONTROL": (_stamped("HOST_DMA_FLOW"),),
    "HOST_DMA_VTICK": (Name(field="HOST_DMA_FLOW.flow", things="stamp_flows"),),
    "DOORBELL_CHANNEL": (
        Name(field="channel", things="channels"),
        Name(field="rank", things="doorbell_classes"),
        _OWNER,
    ),
    "SHADOW_WINDOW": (_OWNER,),
    "COMPLETION_SETUP": (Name(field="queue", things="completion_queues"), _OWNER),
    "REGION": (Name(field="region", things="regions"), _OWNER),
    "TRANSLATION_INVALIDATE": (Name(field="region", things="regions", only=("scope", (0, 1))),),
    "VL_TABLE_ENTRY": (
        Name(field="vl", things="link.vls"),
        Name(field="entry", things="vl_table_entries"),
    ),
}
"""The names in each command. These commands are not here:

- ACCESS_TAG: an access of a region that is not there ends with a status of its own (`CompletionStatus.NO_REGION`).
- COMPLETION_POST: a post to a queue that is not there is counted as an entry lost (COMPLETION_DROPPED).
- DOORBELL_SELECT: it starts nothing, and a word that is not there is shown as not valid.
"""


def active_names(registers: Mapping[str, Register], config: NicConfig) -> dict[str, list[tuple[Name, int]]]:
    """The names that a card with these `registers` must look at, by command, and how many things there are of each.

    A name whose every number names something is left out.
    """

    def has(field: str, command: str) -> bool:
        register, _, name = field.rpartition(".")
        found = registers.get(register or command)
        return found is not None and name in found.fields

    def width(field: str, command: str) -> int:
        register, _, name = field.rpartition(".")
        return registers[register or command].fields[name].width

    found: dict[str, list[tuple[Name, int]]] = {}
    for command, names in NAMES.items():
        for name in names if command in registers else ():
            count = name.count(config)
            if not has(name.field, command) or not 0 < count < 1 << width(name.field, command):
                continue
            found.setdefault(command, []).append((name, count))
    return found
