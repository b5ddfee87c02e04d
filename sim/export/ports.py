"""The ports of a block in its Verilog: names, directions, bits, and the fields of those that are structures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amaranth import Shape, Value
from amaranth.hdl import ShapeCastable
from amaranth.lib import data, wiring

from .tidy import RESERVED

__all__ = ["BlockPort", "block_ports", "port_table"]


@dataclass(frozen=True, kw_only=True)
class BlockPort:
    """A port: `name`, `direction` (`input`, `output`), `bits`, and `fields`, each with its name, low and high bit.

    `name` is the member's (`source`), with `_` behind a word of Verilog: `event_`.
    """

    name: str
    source: str
    direction: str
    bits: int
    fields: tuple[tuple[str, int, int], ...] = ()


def block_ports(component: wiring.Component) -> list[BlockPort]:
    """Clock and reset, then the members of the component's signature, in its order.

    The member `rx` of a signature in place 2 of an array `ports` is `ports__2__rx`.
    """
    found = [BlockPort(name=name, source=name, direction="input", bits=1) for name in ("clk", "rst")]
    for path, member, value in component.signature.flatten(component):
        bits = len(Value.cast(value))
        name = "__".join(str(step) for step in path)
        if bits:
            found.append(
                BlockPort(
                    name=f"{name}_" if name in RESERVED else name,
                    source=name,
                    direction="input" if member.flow is wiring.In else "output",
                    bits=bits,
                    fields=tuple(_fields(member.shape)),
                )
            )
    return found


def _fields(shape: object, name: str = "", low: int = 0) -> Iterator[tuple[str, int, int]]:
    """The fields of a shape, those of structures in it too; none of a plain number."""
    layout = shape if isinstance(shape, data.Layout) else None
    if layout is None and isinstance(shape, ShapeCastable):
        inner = shape.as_shape()
        layout = inner if isinstance(inner, data.Layout) else None
    if layout is not None:
        for key, field in layout:
            yield from _fields(field.shape, f"{name}.{key}" if name else str(key), low + field.offset)
    elif name and (width := Shape.cast(shape).width):  # type: ignore[arg-type]
        yield name, low, low + width - 1


def port_table(ports: Sequence[BlockPort]) -> list[str]:
    """A line for each port, and one for each of its fields."""
    names = [port.name for port in ports] + [f"  .{name}" for port in ports for name, _, _ in port.fields]
    wide = max(len(name) for name in names)
    lines = []
    for port in ports:
        lines.append(f"{port.name:<{wide}}  {port.direction:<6}  {port.bits}".rstrip())
        for name, low, high in port.fields:
            part = f"[{high}:{low}]" if high > low else f"[{low}]"
            lines.append(f"{'  .' + name:<{wide}}          {part}")
    return lines
