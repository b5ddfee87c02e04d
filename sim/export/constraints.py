"""Timing constraints of a block in SDC, which FPGA and ASIC tools read alike."""

from __future__ import annotations

from collections.abc import Sequence

from .ports import BlockPort

__all__ = ["IO_SHARE", "sdc"]

IO_SHARE = 0.4
"""Part of a clock period that the logic outside has, before an input and after an output. Nothing is known of it, so
that each side of a port has a little less than half, and the rest is for the wire."""


def sdc(ports: Sequence[BlockPort], *, clock_hz: int, top: str) -> str:
    """The constraints: the clock `clk`, and delays of all other ports against it."""
    period = 1e9 / clock_hz
    lines = [
        f"# Timing constraints of {top}: one clock, and {IO_SHARE:.0%} of its period outside each port.",
        f"create_clock -name clk -period {period:.3f} [get_ports {{clk}}]",
    ]
    for direction, command in (("input", "set_input_delay"), ("output", "set_output_delay")):
        for port in ports:
            if port.direction == direction and port.name != "clk":
                # A vector is named with all of its bits: no tool takes its bare name for them.
                name = f"{port.name}[*]" if port.bits > 1 else port.name
                lines.append(f"{command} -clock clk {period * IO_SHARE:.3f} [get_ports {{{name}}}]")
    return "\n".join(lines) + "\n"
