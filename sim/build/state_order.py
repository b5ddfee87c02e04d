"""Verilator's C++ of a block, made to keep together what an evaluation touches.

Verilator orders a model's variables by their sizes. So those of one port stand in as many places as there are sizes,
and memories between them. A system of a thousand routers is more than the processor's near caches hold. There an
evaluation costs the lines of memory that it touches. So the variables are put into this order:

- ports of the model, and variables that every evaluation touches;
- those that are touched in a branch alone (`branches.py`), submodule by submodule: a port without flits has none;
- memories.

Nothing else depends on the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .scopes import UnexpectedCode

__all__ = ["order_state"]

_BEGIN, _END = "// DESIGN SPECIFIC STATE\n", "// INTERNAL VARIABLES\n"
_PORT = re.compile(r"VL_\w+\(&?(\w+),")
_VARIABLE = re.compile(r"(?P<type>.+?)\s(?P<name>\w+);")
_BYTES = {"CData": 1, "SData": 2, "IData": 4, "QData": 8}
_MEMORY_BYTES = 512
"""Arrays from this size on are memories: an access touches a small part of one."""
_STRUCT_MEMBERS = 64
"""Members of one of the anonymous structures that Verilator writes, as compilers dislike larger ones."""


@dataclass(frozen=True)
class _Variable:
    """A variable of the model: its `line` of C++, its `name` and its size in `bytes`."""

    line: str
    name: str
    bytes: int


def order_state(folder: Path, *, prefix: str) -> None:
    """Change the order of the variables of the model `prefix` in `folder`, before it is compiled.

    Raises UnexpectedCode.
    """
    header = folder / f"{prefix}___024root.h"
    text = header.read_text()
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise UnexpectedCode(f"{header.name} has no {_BEGIN.strip()!r} before {_END.strip()!r}")
    before, _, rest = text.partition(_BEGIN)
    state, _, after = rest.partition(_END)
    variables = list(_variables(state))
    always = set[str]()
    for file in sorted(folder.glob(f"{prefix}___024root__*.cpp")):
        if not file.stem.endswith("Slow"):
            always |= _always_touched(file.read_text())

    def place(one: _Variable) -> tuple[int, str, int]:
        if one.bytes >= _MEMORY_BYTES:
            return 2, one.name, 0
        if "__DOT__" not in one.name or one.name in always:
            return 0, "", -one.bytes
        return 1, _submodule(one.name), -one.bytes

    variables.sort(key=place)
    header.write_text(f"{before}{_BEGIN}{_structures(variables)}\n    {_END}{after}")


def _variables(state: str) -> Iterator[_Variable]:
    for line in state.splitlines():
        text = line.strip()
        if not text or text in ("struct {", "};") or text.startswith("//"):
            continue
        if found := _PORT.match(text):
            yield _Variable(text, found[1], 4)
        elif found := _VARIABLE.fullmatch(text):
            yield _Variable(text, found["name"], _size(re.sub(r"/\*.*?\*/", "", found["type"])))
        else:
            raise UnexpectedCode(f"no variable of a model: {text!r}")


def _size(kind: str) -> int:
    """The bytes of a variable of this type; 8 for one that is not known."""
    kind = kind.strip()
    if found := re.fullmatch(r"VlUnpacked<(.+), (\d+)>", kind):
        return _size(found[1]) * int(found[2])
    if found := re.fullmatch(r"VlWide<(\d+)>", kind):
        return 4 * int(found[1])
    return _BYTES.get(kind, 8)


def _submodule(name: str) -> str:
    """The submodule of the block that a variable is in, or a signal of the block's own."""
    path = name.split("__DOT__")
    return path[2] if len(path) > 3 else ""


def _always_touched(text: str) -> set[str]:
    """The variables that the functions of a file touch outside of all branches, conditions of those among them."""
    found = set[str]()
    depth = 0
    for part in re.split(r"([{}])", text):
        if part == "{":
            depth += 1
        elif part == "}":
            depth -= 1
        elif depth == 1:
            found.update(re.findall(r"vlSelfRef\.(\w+)", part))
    return found


def _structures(variables: list[_Variable]) -> str:
    lines = []
    for first in range(0, len(variables), _STRUCT_MEMBERS):
        lines += [
            "    struct {",
            *(f"        {one.line}" for one in variables[first : first + _STRUCT_MEMBERS]),
            "    };",
        ]
    return "".join(f"{line}\n" for line in lines)
