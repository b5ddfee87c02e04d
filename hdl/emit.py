"""Verilog and RTLIL out: one Amaranth block to one text, free of paths so that a cache can compare it."""

from __future__ import annotations

import re

from amaranth.back import rtlil, verilog
from amaranth.lib import wiring

__all__ = ["to_rtlil", "to_verilog"]


def to_verilog(component: wiring.Component, *, name: str) -> str:
    """The Verilog of `component` and all its submodules, the top module named `name`.

    Ports are `clk`, `rst` and the signature's members, a struct as one vector (`tx__payload`, `tx__valid`).
    Submodules are named below it (`name.sub`). The text is the same on every machine, and works in simulators of
    Verilog-2005 and of SystemVerilog alike.
    """
    text = verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)
    return _LONE.sub(_started, _STARTER.sub(r"\1reg \2;\n\1initial \2 <= 0;", text))


_STARTER = re.compile(r"^( *)reg (\\\$auto\$verilog_backend\.cc:\S+ ) = 0;$", re.MULTILINE)
"""A variable that Yosys puts into every `always @*`, for its start value to run the block at time 0. SystemVerilog
gives start values before any block waits (IEEE 1800-2017 10.5), so that no block would run and outputs would stay X
until an input changes. A nonblocking assignment comes when all blocks wait, in either language."""


_LONE = re.compile(r"^( *)always @\*\n *(.+);$", re.MULTILINE)
"""An `always @*` of one assignment, which Yosys makes of a part of a signal and gives no starter. Where a constant is
assigned nothing ever starts it: the part stayed 0 in Verilator, and X elsewhere."""


def _started(lone: re.Match[str]) -> str:
    """The same block with a starter, whose name has the block's place in the text."""
    indent, assignment = lone.groups()
    starter = f"\\lanikai$starter${lone.start()} "
    lines = (
        f"reg {starter};",
        f"initial {starter} <= 0;",
        "always @* begin",
        f"  if ({starter}) begin end",
        f"  {assignment};",
        "end",
    )
    return "\n".join(indent + line for line in lines)


def to_rtlil(component: wiring.Component, *, name: str) -> str:
    """The text of `to_verilog` in Yosys's own language, which synthesis reads without a detour."""
    return rtlil.convert(component, name=name, emit_src=False)
