"""Accessors of the NIC's processor registers, made from their declarations. No address and no bit is written down
here."""

from __future__ import annotations

from functools import cache

import lanikai.hdl.nic.ports as ports
from lanikai.hdl.nic.blocks import NIC_REGISTERS
from lanikai.hdl.registers import Register

__all__ = ["NIC_REGISTERS", "address", "pack", "places", "register", "unpack"]


def register(name: str) -> Register:
    """The register `name`. Raises KeyError with the valid names."""
    try:
        return NIC_REGISTERS[name]
    except KeyError:
        raise KeyError(f"no NIC register {name!r}; there are {', '.join(NIC_REGISTERS)}") from None


@cache
def address(name: str) -> int:
    """Byte address of a register in the processor's map. Raises KeyError."""
    return ports.REGISTER_BASE + register(name).offset


@cache
def places(name: str) -> dict[str, tuple[int, int]]:
    """Lowest bit and largest value of each field of a register. Raises KeyError."""
    return {field.name: (field.low, (1 << field.width) - 1) for field in register(name).fields.values()}


def pack(name: str, **fields: int) -> int:
    """Word of a register with these fields, the others zero. Raises KeyError, ValueError."""
    return register(name).pack(**fields)


def unpack(name: str, word: int) -> dict[str, int]:
    """Fields of a word read from a register. Raises KeyError."""
    return register(name).unpack(word)
