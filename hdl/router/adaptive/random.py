"""Random numbers of a router, for packets that enter there."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value

from ..routing import RANDOM_BITS

__all__ = ["add_random", "next_state"]

STATE_BITS = 32
PLACE_BITS = 20
"""Bits of the first state in which routers and inputs differ; the seed has the others."""
INPUT_STEP = 0x9E379
"""Odd, with bits all over the place's: a multiple of it sets inputs apart."""


def next_state(state: int) -> int:
    """The state after `state` (xorshift, Marsaglia 2003): the model of `add_random`."""
    mask = (1 << STATE_BITS) - 1
    state ^= state << 13 & mask
    state ^= state >> 17
    return state ^ (state << 5 & mask)


def add_random(m: Module, take: Value, routing: Any, seed: int, number: int = 0) -> None:
    """Adds a generator to `m`. It drives `routing.random`, and goes on in each cycle with `take`.

    It starts from the router's position, `seed` and the `number` of the input. So inputs have different numbers, also
    those of routers that are one block.
    """
    state, now = Signal(STATE_BITS, name="random_state"), Signal(STATE_BITS, name="random_now")
    whole = Value.cast(routing.position)
    place: Value = Const(number * INPUT_STEP % (1 << PLACE_BITS), PLACE_BITS)
    for at in range(0, len(whole), PLACE_BITS):
        place = place ^ whole[at : at + PLACE_BITS]
    start = Cat(place[:PLACE_BITS], Const(seed, STATE_BITS - PLACE_BITS))
    m.d.comb += now.eq(Mux(state == 0, start, state))
    steps: list[Value] = [now]
    for shift in (13, -17, 5):
        after = Signal(STATE_BITS, name=f"random_{len(steps)}")
        m.d.comb += after.eq(steps[-1] ^ (steps[-1] << shift if shift > 0 else steps[-1] >> -shift))
        steps.append(after)
    m.d.comb += routing.random.eq(steps[-1][STATE_BITS - RANDOM_BITS :])
    with m.If(take):
        m.d.sync += state.eq(steps[-1])
