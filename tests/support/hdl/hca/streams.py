"""Streams and ports of the adapter's parts, driven from a test bench."""

from __future__ import annotations

from typing import Any

__all__ = ["put", "strobe"]


async def strobe(ctx: Any, payload: Any, strobes: Any, value: Any) -> None:
    """One cycle of a port that takes its payload at once."""
    ctx.set(payload, value)
    ctx.set(strobes, 1)
    await ctx.tick()
    ctx.set(strobes, 0)


async def put(ctx: Any, stream: Any, value: Any) -> int:
    """Hands `value` to a stream; returns the cycles that this took."""
    ctx.set(stream.payload, value)
    ctx.set(stream.valid, 1)
    cycles, taken = 0, False
    while not taken:
        (taken,) = (await ctx.tick().sample(stream.ready))[2:]
        cycles += 1
    ctx.set(stream.valid, 0)
    return cycles
