"""Wave files: finding them, and reading the names in an FST file, so that a GTKWave save file names only what is there.

Only the hierarchy is read (FST block types 4 and 6, as GTKWave's fstapi writes them), in plain Python, so that no
reader has to be installed. Values are for GTKWave.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Variable", "end_time", "read_hierarchy", "waveforms"]

_HIERARCHY_GZIP, _HIERARCHY_LZ4 = 4, 6
_ATTRIBUTE, _ATTRIBUTE_END, _SCOPE, _UP = 252, 253, 254, 255


@dataclass(frozen=True)
class Variable:
    """A variable: `scope` (instance names, outermost first), `name`, `bits`."""

    scope: tuple[str, ...]
    name: str
    bits: int

    @property
    def path(self) -> str:
        """Names joined by dots, as GTKWave writes them."""
        return ".".join((*self.scope, self.name))


def read_hierarchy(path: Path) -> list[Variable]:
    """Every variable of an FST file, in its order. Raises ValueError if the file is not a whole FST file."""
    data = path.read_bytes()
    position = 0
    while position + 9 <= len(data):
        kind = data[position]
        length = int.from_bytes(data[position + 1 : position + 9], "big")
        if kind in (_HIERARCHY_GZIP, _HIERARCHY_LZ4):
            block = data[position + 9 : position + 1 + length]
            size = int.from_bytes(block[:8], "big")
            if kind == _HIERARCHY_GZIP:
                return list(_variables(zlib.decompress(block[8:], 31)))
            return list(_variables(_lz4(block[8:], size)))
        position += 1 + max(length, 8)
    raise ValueError(f"{path}: no hierarchy; the file is not a whole FST file")


def end_time(path: Path) -> int:
    """The time of the last change in an FST file, time steps; 0 if the file is not a whole FST file. The header block,
    which comes first, has it."""
    with path.open("rb") as file:
        start = file.read(25)
    return int.from_bytes(start[17:25], "big") if len(start) == 25 and start[0] == 0 else 0


def _variables(data: bytes) -> Iterator[Variable]:
    scope: list[str] = []
    position = 0

    def text() -> str:
        nonlocal position
        end = data.index(0, position)
        found = data[position:end].decode(errors="replace")
        position = end + 1
        return found

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        tag = data[position]
        position += 1
        if tag == _SCOPE:
            position += 1  # its kind
            scope.append(text())
            text()  # the module's name
        elif tag == _UP:
            scope.pop()
        elif tag == _ATTRIBUTE:
            position += 2  # type, subtype
            text()
            number()
        elif tag != _ATTRIBUTE_END:
            position += 1  # direction
            name = text()
            bits = number()
            number()  # the variable it is an alias of
            # GTKWave shows a vector's range after its name; ours are told apart by the name alone.
            yield Variable(tuple(scope), name, bits)


def _lz4(data: bytes, size: int) -> bytes:
    """An LZ4 block (its format document: token, literals, 16-bit offset, match), `size` bytes unpacked."""
    out = bytearray()
    position = 0

    def extended(length: int) -> int:
        nonlocal position
        if length < 15:
            return length
        while True:
            byte = data[position]
            position += 1
            length += byte
            if byte < 255:
                return length

    while position < len(data) and len(out) < size:
        token = data[position]
        position += 1
        literals = extended(token >> 4)
        out += data[position : position + literals]
        position += literals
        if len(out) >= size:
            break
        offset = data[position] | data[position + 1] << 8
        position += 2
        for _ in range(extended(token & 15) + 4):
            out.append(out[-offset])
    return bytes(out)


def waveforms(folder: Path) -> list[Path]:
    """The waveforms of a run in its folder, in the order of its points and seeds. Those of an earlier run that are set
    aside there are left out."""

    def numbers(path: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", str(path.relative_to(folder)))
        return [(int(part) if part.isdecimal() else -1, part) for part in parts]

    found = folder.rglob("*.fst")
    own = [path for path in found if not any(p.startswith(".") for p in path.relative_to(folder).parts)]
    return sorted(own, key=numbers)
