"""Names in commands: the things that the processor's registers may name, and how many of each the card has.

A command that names a thing which is not there is refused and counted (`REFUSED` of `nic.rdl`), whatever the register.
No block sees it. So none can cut a number to the bits that it has and take another thing for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..config import NicConfig
from ..register_bank import Name
from ..registers import Register

__all__ = ["CARD_NAMES", "active_names"]


_SELECTED = (Name(field="RATE_SELECT.flow", things="flows"),)

CARD_NAMES: Mapping[str, tuple[Name, ...]] = {
    **dict.fromkeys(("RATE_IDT", "RATE_NDT", "RATE_COMMAND"), _SELECTED),
    "RATE_DISPATCH": (Name(field="flow", things="flows"),),
    "SEND_CONTROL": (Name(field="vl", things="link.vls"),),
}
"""The names in each command that every card has; those of blocks are `NicBlock.names`.

DOORBELL_SELECT is not here. It starts nothing, and a word that is not there is shown as not valid.
"""


def active_names(
    registers: Mapping[str, Register], config: NicConfig, commands: Mapping[str, tuple[Name, ...]]
) -> dict[str, list[tuple[Name, int]]]:
    """The names in `commands` that a card with these `registers` must look at, and how many things there are of each.

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
    for command, names in commands.items():
        for name in names if command in registers else ():
            count = name.count(config)
            if not has(name.field, command) or not 0 < count < 1 << width(name.field, command):
                continue
            found.setdefault(command, []).append((name, count))
    return found
