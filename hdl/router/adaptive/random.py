"""Random numbers of a router, for packets that enter there."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value

from ..routing import RANDOM_BITS

__all__ = ["add_random", "next_state"]

STATE_BITS = 32


def next_state(state: int) -> int:
    """The state after `state` (xorshift, Marsaglia 2003): the model of `add_random`."""
    mask = (1 << STATE_BITS) - 1
    state ^= state << 13 & mask
    state ^= state >> 17
    return state ^ (state << 5 & mask)


def add_random(m: Module, take: Value, routing: Any, seed: int) -> None:
    """Adds a generator to `m`. It drives `routing.random`, and goes on in each cycle with `take`.

    It starts from the router's position and `seed`, so that routers that are one block have different numbers.
    """
    state, now = Signal(STATE_BITS, name="random_state"), Signal(STATE_BITS, name="random_now")
    place = Value.cast(routing.position)[: STATE_BITS - 12]
    start = Cat(place, Const(0, STATE_BITS - 12 - len(place)), Const(seed, 12))
    m.d.comb += now.eq(Mux(state == 0, start, state))
    steps: list[Value] = [now]
    for shift in (13, -17, 5):
        after = Signal(STATE_BITS, name=f"random_{len(steps)}")
        m.d.comb += after.eq(steps[-1] ^ (steps[-1] << shift if shift > 0 else steps[-1] >> -shift))
        steps.append(after)
    m.d.comb += routing.random.eq(steps[-1][STATE_BITS - RANDOM_BITS :])
    with m.If(take):
        m.d.sync += state.eq(steps[-1])
