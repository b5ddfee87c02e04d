"""The text of instances and ranges in Verilog that is written as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["instance", "width"]


def width(bits: int) -> str:
    """The range before a name of so many bits, with a space after it; nothing for one bit."""
    return f"[{bits - 1}:0] " if bits > 1 else ""


def instance(module: str, name: str, pins: Mapping[str, str], parameters: str = "") -> Iterator[str]:
    """The lines of an instance; `pins`: the wire at each port; `parameters`: `#(...) ` or nothing."""
    yield f"  {module} {parameters}{name} ("
    yield ",\n".join(f"    .{pin}({wire})" for pin, wire in pins.items())
    yield "  );"
