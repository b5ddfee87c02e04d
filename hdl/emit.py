"""Verilog and RTLIL out: one Amaranth block to one text, free of paths so that a cache can compare it."""

from __future__ import annotations

from amaranth.back import rtlil, verilog
from amaranth.lib import wiring

__all__ = ["to_rtlil", "to_verilog"]


def to_verilog(component: wiring.Component, *, name: str) -> str:
    """The Verilog of `component` and all its submodules, the top module named `name`.

    Ports are `clk`, `rst` and the signature's members, a struct as one vector (`tx__payload`, `tx__valid`).
    Submodules are named below it (`name.sub`). The text is the same on every machine.
    """
    return verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)


def to_rtlil(component: wiring.Component, *, name: str) -> str:
    """As `to_verilog`, in Yosys's own language, which synthesis reads without a detour."""
    return rtlil.convert(component, name=name, emit_src=False)
