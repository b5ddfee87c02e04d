"""Structural Verilog: the text of instances and wires between converted blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amaranth import Shape
from amaranth.lib import wiring

__all__ = ["instance", "members", "width"]


def width(bits: int) -> str:
    """The range before a name of so many bits, with a space after it; nothing for one bit."""
    return f"[{bits - 1}:0] " if bits > 1 else ""


def members(signature: wiring.Signature) -> dict[str, int]:
    """Names, as Amaranth's Verilog has them, and widths of a signature's members."""
    return {
        "__".join(str(step) for step in path): Shape.cast(member.shape).width
        for path, member, _ in signature.flatten(signature.create())
    }


def instance(module: str, name: str, pins: Mapping[str, str], parameters: str = "") -> Iterator[str]:
    """The lines of an instance; `pins`: the wire at each port; `parameters`: `#(...) ` or nothing."""
    yield f"  {module} {parameters}{name} ("
    yield ",\n".join(f"    .{pin}({wire})" for pin, wire in pins.items())
    yield "  );"
