"""Struct layouts as plain integers, fast enough for a simulation's inner loop."""

from __future__ import annotations

from amaranth.lib import data

__all__ = ["Fields"]


class Fields:
    """Packs and unpacks words of a struct layout whose fields are unsigned."""

    def __init__(self, layout: data.StructLayout) -> None:
        self._places = {name: (field.offset, (1 << field.width) - 1) for name, field in layout}

    def pack(self, **values: int) -> int:
        """The word with these fields, the others zero. Raises ValueError for a value that does not fit."""
        word = 0
        for name, value in values.items():
            offset, mask = self._places[name]
            if not 0 <= value <= mask:
                raise ValueError(f"{name} = {value:#x}: 0 to {mask:#x}")
            word |= value << offset
        return word

    def get(self, word: int, name: str) -> int:
        """One field of a word."""
        offset, mask = self._places[name]
        return word >> offset & mask
