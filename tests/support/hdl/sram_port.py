"""The SRAM as a port sees it, in plain Python for Amaranth's simulator: random waits, checked accesses."""

from __future__ import annotations

import random
from typing import Any

from lanikai.hdl.config import NicConfig

__all__ = ["SramPort"]


class SramPort:
    """`memory` (a bytearray of the SRAM's size) behind `port`, the requester's end.

    - A request waits in a cycle with the chance `stall`.
    - Read data stands on the port in the one cycle in which the contract promises it, and random bits in every other.
    - `ready` may be high without a request.
    - `written`: the byte addresses ever written.
    - `cycle`: counts cycles.
    - `last_write`: the cycle of the last granted write.
    """

    def __init__(self, port: Any, config: NicConfig, *, rng: random.Random, stall: float = 0.0) -> None:
        self.port, self.config, self.rng, self.stall = port, config, rng, stall
        self.memory = bytearray(config.sram_bytes)
        self.written: set[int] = set()
        self.cycle = 0
        self.last_write = -1

    async def process(self, ctx: Any) -> None:
        """The port, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        port, width = self.port, self.config.word_bytes
        word: int | None = None
        while True:
            grant = self.rng.random() >= self.stall
            ctx.set(port.rdata, self.rng.getrandbits(8 * width) if word is None else word)
            ctx.set(port.ready, grant)
            _, _, valid, write, address, data, mask, ready = await ctx.tick().sample(
                port.valid, port.write, port.address, port.data, port.mask, port.ready
            )
            self.cycle += 1
            word = None
            if not (valid and ready):
                continue
            place = address * width
            if not write:
                word = int.from_bytes(self.memory[place : place + width], "little")
                continue
            self.last_write = self.cycle - 1
            for byte in range(width):
                if mask >> byte & 1:
                    self.memory[place + byte] = data >> 8 * byte & 0xFF
                    self.written.add(place + byte)
