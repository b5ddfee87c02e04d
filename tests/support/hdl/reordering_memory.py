"""A host memory that delays and reorders as far as AXI allows, for Amaranth's simulator.

A write becomes visible, bus word by bus word and in any order, at some time between its beat and its answer. A read is
looked up, word by word, at some time between its address and its beat.

Answers to different IDs come in any order, those to one ID in the order of their addresses (ARM IHI 0022, A5.3 and A6).
So two writes that have not been answered are in no order that anybody may rely on. The same is true of reads and
writes.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["ReorderingMemory"]


class ReorderingMemory:
    """`memory` behind the subordinate end of `bus` (an `Axi4Signature` interface).

    `delay` is the longest time in cycles that anything is put off. Add `process` to the simulator as a background
    testbench.
    """

    def __init__(
        self, bus: Any, memory: bytearray, *, data_bits: int, rng: random.Random, delay: int = 20
    ) -> None:
        self.bus, self.memory, self.bytes, self.rng, self.delay = bus, memory, data_bits // 8, rng, delay
        self.writes: list[dict[str, Any]] = []  # bursts, in the order of their addresses
        self.beats: list[tuple[int, int, int]] = []  # data without an address yet
        self.reads: list[dict[str, Any]] = []

    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not (self.writes or self.beats or self.reads)

    def _go(self) -> bool:
        return self.rng.random() < 2 / self.delay

    async def process(self, ctx: Any) -> None:
        """The memory, forever."""
        bus, rng = self.bus, self.rng
        names = ("awvalid", "awid", "awaddr", "awlen", "wvalid", "wdata", "wstrb", "wlast", "bready")
        names += ("arvalid", "arid", "araddr", "arlen", "rready")
        answer: dict[str, Any] | None = None
        read: dict[str, Any] | None = None
        while True:
            ready = {channel: rng.random() < 0.7 for channel in ("aw", "w", "ar")}
            for channel, up in ready.items():
                ctx.set(getattr(bus, f"{channel}ready"), up)
            if answer is None:
                done = [w for w in self._first_of_each_id(self.writes) if w["last"] and not w["pending"]]
                if done and rng.random() < 0.5:
                    answer = rng.choice(done)
                    ctx.set(bus.bid, answer["id"])
            if read is None:
                able = [r for r in self._first_of_each_id(self.reads) if r["words"][r["next"]] is not None]
                if able and rng.random() < 0.8:
                    read = rng.choice(able)
                    ctx.set(bus.rid, read["id"])
                    ctx.set(bus.rdata, read["words"][read["next"]])
                    ctx.set(bus.rlast, read["next"] == len(read["words"]) - 1)
            ctx.set(bus.bvalid, answer is not None)
            ctx.set(bus.rvalid, read is not None)
            _, _, *values = await ctx.tick().sample(*(getattr(bus, name) for name in names))
            seen = dict(zip(names, values, strict=True))
            if answer is not None and seen["bready"]:
                self.writes.remove(answer)
                answer = None
            if read is not None and seen["rready"]:
                read["next"] += 1
                if read["next"] == len(read["words"]):
                    self.reads.remove(read)
                read = None
            if seen["awvalid"] and ready["aw"]:
                burst = {"id": seen["awid"], "address": seen["awaddr"], "left": seen["awlen"] + 1}
                self.writes.append({**burst, "pending": [], "last": False})
            if seen["wvalid"] and ready["w"]:
                self.beats.append((seen["wdata"], seen["wstrb"], seen["wlast"]))
            if seen["arvalid"] and ready["ar"]:
                words = [None] * (seen["arlen"] + 1)
                self.reads.append({"id": seen["arid"], "address": seen["araddr"], "words": words, "next": 0})
            self._settle()

    @staticmethod
    def _first_of_each_id(bursts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return list({burst["id"]: burst for burst in reversed(bursts)}.values())

    def _settle(self) -> None:
        """Give beats to their bursts, and let some of the words that may be written or read be so."""
        for burst in self.writes:
            while self.beats and burst["left"]:
                data, strobes, last = self.beats.pop(0)
                burst["pending"].append((burst["address"], data, strobes))
                burst["address"] += self.bytes
                burst["left"] -= 1
                burst["last"] = bool(last)
                assert last == (burst["left"] == 0), "wlast is not where the burst's length puts it"
            self.rng.shuffle(burst["pending"])
            while burst["pending"] and self._go():
                address, data, strobes = burst["pending"].pop()
                for byte in range(self.bytes):
                    if strobes >> byte & 1:
                        self.memory[address + byte] = data >> 8 * byte & 0xFF
        for burst in self.reads:
            for i, word in enumerate(burst["words"]):
                if word is None and self._go():
                    at = burst["address"] + i * self.bytes
                    burst["words"][i] = int.from_bytes(self.memory[at : at + self.bytes], "little")
