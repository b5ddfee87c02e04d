"""The other end of a link, in plain Python: a transmitter with credits, a receiver that gives them back."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from support.hdl.flit_streams import Flit

__all__ = ["LinkReceiver", "LinkTransmitter"]


class LinkTransmitter:
    """Sends from `waiting` (a queue of flits a VL) on the link `rx` of a block. VLs are mixed flit by flit.

    A cycle stays idle with the chance `stall`. `credits` holds the rest of `depth` a VL.
    """

    def __init__(self, rx: Any, *, vls: int, depth: int, rng: random.Random, stall: float = 0.0) -> None:
        self.rx, self.rng, self.stall, self.depth = rx, rng, stall, depth
        self.credits = [depth] * vls
        self.waiting: list[deque[Flit]] = [deque() for _ in range(vls)]

    async def process(self, ctx: Any) -> None:
        """The transmitter, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        while True:
            able = [vl for vl, queue in enumerate(self.waiting) if queue and self.credits[vl]]
            go = bool(able) and self.rng.random() >= self.stall
            ctx.set(self.rx.valid, go)
            if go:
                vl = self.rng.choice(able)
                self.credits[vl] -= 1
                ctx.set(self.rx.payload, self.waiting[vl].popleft()._asdict())
            _, _, back, vl = await ctx.tick().sample(self.rx.credit_valid, self.rx.credit_vl)
            if back:
                self.credits[vl] += 1
                assert self.credits[vl] <= self.depth, f"VL {vl}: a credit too many"


class LinkReceiver:
    """Takes flits from the link `tx` of a block into buffers of `depth` flits a VL.

    It frees a flit of a random VL with the chance 1 - `stall` a cycle; none of VLs that are `blocked`. `flits` and
    `cycles` record the flits that came and their cycles.
    """

    def __init__(self, tx: Any, *, vls: int, depth: int, rng: random.Random, stall: float = 0.0) -> None:
        self.tx, self.rng, self.stall, self.depth = tx, rng, stall, depth
        self.held = [0] * vls
        self.blocked: set[int] = set()
        self.flits: list[Flit] = []
        self.cycles: list[int] = []
        self.cycle = 0

    async def process(self, ctx: Any) -> None:
        """The receiver, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        while True:
            full = [vl for vl, count in enumerate(self.held) if count and vl not in self.blocked]
            free = bool(full) and self.rng.random() >= self.stall
            ctx.set(self.tx.credit_valid, free)
            if free:
                vl = self.rng.choice(full)
                self.held[vl] -= 1
                ctx.set(self.tx.credit_vl, vl)
            _, _, valid, payload = await ctx.tick().sample(self.tx.valid, self.tx.payload)
            if valid:
                flit = Flit(payload.data, payload.vl, payload.head, payload.tail)
                self.flits.append(flit)
                self.cycles.append(self.cycle)
                self.held[flit.vl] += 1
                assert self.held[flit.vl] <= self.depth, f"VL {flit.vl}: a flit without a credit"
            self.cycle += 1
