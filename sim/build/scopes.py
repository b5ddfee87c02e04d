"""Verilator's C++ of a block, made to give its instances the names that they would have in one model.

A block's model has a module of its own around the block (`composition.Block.module`), and every instance of it is a
model whose name is a path (`network_bench.network.router3`). Left alone, the block's variables would stand two scopes
below that, and the path would be one scope with dots in its name.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["UnexpectedCode", "rename_scopes"]


class UnexpectedCode(Exception):
    """Verilator's C++ is not as this version of it should write it."""


def rename_scopes(folder: Path, *, prefix: str, module: str, block: str) -> None:
    """Change the C++ in `folder`, of the model `prefix`. Its top is `module`, with the block as its instance `block`.

    Variables of the block are in the scope of the model's own name, for VPI and in waves. The files need `scopes.h` in
    the folder above. Raises UnexpectedCode.
    """
    inner = re.escape(f"{module}.{block}")
    changes = [
        # Scopes for VPI, in the constructor of the symbol table; none without a public variable.
        (
            f"{prefix}__Syms*.cpp",
            rf'VerilatedScope\{{this, "{inner}", "{block}", ',
            'VerilatedScope{this, "", blocks::last_name(name()), ',
            False,
        ),
        (f"{prefix}__Syms*.cpp", rf'VerilatedScope\{{this, "{inner}\.', 'VerilatedScope{this, "', False),
    ]
    if list(folder.glob(f"{prefix}__Trace__*.cpp")):
        scope, push = "VerilatedTracePrefixType::SCOPE_MODULE", r"VL_TRACE_PUSH_PREFIX\(tracep, "
        # A scope without a name is none.
        changes += [
            (f"{prefix}__Trace__*.cpp", rf'{push}"{name}",', 'VL_TRACE_PUSH_PREFIX(tracep, "",', True)
            for name in (module, block)
        ]
        changes += [
            (
                f"{prefix}.cpp",
                rf"tracep->pushPrefix\(vlSymsp->name\(\), {scope}\);",
                f"blocks::push_scopes(tracep, vlSymsp->name(), {scope});",
                True,
            ),
            (
                f"{prefix}.cpp",
                r"tracep->popPrefix\(\);",
                "blocks::pop_scopes(tracep, vlSymsp->name());",
                True,
            ),
        ]
    for files, pattern, text, is_once in changes:
        found = _replace(sorted(folder.glob(files)), pattern, text)
        if is_once and found != 1:
            raise UnexpectedCode(f"{pattern!r} is {found} times in {files}, not once")


def _replace(files: list[Path], pattern: str, text: str) -> int:
    """Replace what `pattern` finds by `text`. Returns how often it did."""
    total = 0
    for file in files:
        changed, count = re.subn(pattern, lambda _: text, file.read_text())
        if count:
            file.write_text('#include "../scopes.h"\n' + changed)
        total += count
    return total
