"""Flit streams of the packet interface's side, driven and taken in plain Python with random waits."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from lanikai.hdl.config import LinkConfig
from lanikai.hdl.packet import Header, packet_words

__all__ = ["Flit", "FlitSink", "FlitSource", "packet"]


class Flit(NamedTuple):
    """A flit as plain numbers."""

    data: int
    vl: int
    head: int
    tail: int


def packet(header: Header, payload: bytes, link: LinkConfig, *, vl: int) -> list[Flit]:
    """A good packet's flits."""
    words = packet_words(header, payload, link)
    return [Flit(word, vl, int(i == 0), int(i == len(words) - 1)) for i, word in enumerate(words)]


class FlitSource:
    """Offers `waiting` flits on `stream` (an `In` stream of the block) one after the other. Before each it waits while
    `rng` is below `stall`. `taken` counts flits."""

    def __init__(
        self, stream: Any, *, rng: random.Random, stall: float = 0.0, flits: Iterable[Flit] = ()
    ) -> None:
        self.stream, self.rng, self.stall = stream, rng, stall
        self.waiting = deque(flits)
        self.taken = 0

    async def process(self, ctx: Any) -> None:
        """The source, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        offered = False
        while True:
            offered = offered or bool(self.waiting and self.rng.random() >= self.stall)
            ctx.set(self.stream.valid, offered)
            if offered:
                ctx.set(self.stream.payload, self.waiting[0]._asdict())
            _, _, ready = await ctx.tick().sample(self.stream.ready)
            if offered and ready:
                self.waiting.popleft()
                self.taken += 1
                offered = False


class FlitSink:
    """Takes flits from `stream` (an `Out` stream of the block) into `flits`. It is not ready in a cycle with the chance
    `stall`. Raises AssertionError if a flit offered is withdrawn or changed."""

    def __init__(self, stream: Any, *, rng: random.Random, stall: float = 0.0) -> None:
        self.stream, self.rng, self.stall = stream, rng, stall
        self.flits: list[Flit] = []
        self.cycles: list[int] = []
        self.cycle = 0

    async def process(self, ctx: Any) -> None:
        """The sink, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        kept: Flit | None = None
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(self.stream.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(self.stream.valid, self.stream.payload)
            flit = Flit(payload.data, payload.vl, payload.head, payload.tail)
            assert kept is None or (valid and flit == kept), "a flit was withdrawn before it was taken"
            kept = None
            if valid and ready:
                self.flits.append(flit)
                self.cycles.append(self.cycle)
            elif valid:
                kept = flit
            self.cycle += 1
