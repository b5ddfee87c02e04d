"""A memory behind an AXI4 slave for Amaranth's simulator, which checks the master while it answers.

It takes any legal liberty: random waits on every channel, write data before its address, answers late.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from amaranth import Signal

__all__ = ["AxiMemory"]

OKAY, SLVERR = 0, 2
ADDRESS = ("id", "addr", "len", "size", "burst")
CHANNELS = {
    "aw": tuple(f"aw{name}" for name in ADDRESS),
    "ar": tuple(f"ar{name}" for name in ADDRESS),
    "w": ("wdata", "wstrb", "wlast"),
}


class AxiMemory:
    """`memory` (a bytearray, from address 0) behind the slave end of `bus` (an `Axi4Signature` interface).

    - `stall`: the chance (0 to 1) that a channel waits in a cycle; `rng` decides.
    - `latency`, cycles: a read's first beat stands on the bus so long after its address was taken, a write's answer as
      long after its last beat.
    - `fails(address)`: whether a beat at this byte address answers with SLVERR.
    - `data_first`: holds `awready` until the burst's write data has been taken.
    - `reset`: a signal. In a cycle in which it is up the other side forgets all that is under way. No valid of the
      master may be up in the next.

    Add `process` to the simulator as a background testbench. It raises AssertionError for:

    - a payload that changes or a valid that falls before ready;
    - a burst that crosses 4 KB or is longer than `max_beats`;
    - a burst type other than INCR, or a size other than the bus's;
    - a misplaced `wlast`.

    `bursts` lists (direction, address, beats) of every address taken; `quiet()` says that nothing is under way.
    """

    def __init__(
        self,
        bus: Any,
        memory: bytearray,
        *,
        data_bits: int,
        rng: random.Random,
        stall: float = 0.0,
        latency: int = 1,
        max_beats: int = 256,
        data_first: bool = False,
        fails: Callable[[int], bool] = lambda address: False,
        reset: Any = None,
    ) -> None:
        self.bus, self.memory, self.bytes = bus, memory, data_bits // 8
        self.rng, self.stall, self.latency, self.max_beats = rng, stall, latency, max_beats
        self.data_first, self.fails, self.reset = data_first, fails, reset
        self.bursts: list[tuple[str, int, int]] = []
        self.reads: deque[tuple[int, int, bool, int]] = deque()  # address, id, last, earliest cycle
        self.writes: deque[tuple[int, int, int]] = deque()  # address, beats, id: addresses without their data
        self.beats: deque[tuple[int, int, int]] = deque()  # data, strobes, last: data without its address
        self.answers: deque[tuple[int, int, int]] = deque()  # id, response, earliest cycle
        self.begun: list[tuple[int, int, int]] = []  # beats of the write burst that is being put together
        self.now = 0

    def quiet(self) -> bool:
        """Whether no burst is under way and no beat is left over."""
        return not (self.reads or self.writes or self.beats or self.answers or self.begun)

    async def process(self, ctx: Any) -> None:
        """The slave, forever; add it with `Simulator.add_testbench(..., background=True)`."""
        bus = self.bus
        inputs = [name for channel, names in CHANNELS.items() for name in (f"{channel}valid", *names)]
        inputs += ["rready", "bready"]
        waiting: dict[str, tuple[int, ...]] = {}
        read_shown = answer_shown = fresh = False
        if self.reset is None:
            self.reset = Signal()
        while True:
            ready = {channel: self.rng.random() >= self.stall for channel in CHANNELS}
            if self.data_first and len([beat for beat in self.beats if beat[2]]) <= len(self.writes):
                ready["aw"] = False
            for channel, value in ready.items():
                ctx.set(getattr(bus, f"{channel}ready"), value)
            # A valid that has been shown stays until it is taken.
            read_shown = read_shown or bool(self.reads and self.reads[0][3] <= self.now and self._go())
            answer_shown = answer_shown or bool(
                self.answers and self.answers[0][2] <= self.now and self._go()
            )
            ctx.set(bus.rvalid, read_shown)
            ctx.set(bus.bvalid, answer_shown)
            if read_shown:
                address, identity, last, _ = self.reads[0]
                word = self.memory[address : address + self.bytes]
                bad = self.fails(address)
                # Words that come with an error are not data.
                ctx.set(
                    bus.rdata, self.rng.getrandbits(8 * self.bytes) if bad else int.from_bytes(word, "little")
                )
                ctx.set(bus.rresp, SLVERR if bad else OKAY)
                ctx.set(bus.rlast, last)
                ctx.set(bus.rid, identity)
            if answer_shown:
                ctx.set(bus.bid, self.answers[0][0])
                ctx.set(bus.bresp, self.answers[0][1])
            _, _, reset, *values = await ctx.tick().sample(
                self.reset, *(getattr(bus, name) for name in inputs)
            )
            seen = dict(zip(inputs, values, strict=True))
            self.now += 1
            assert not (fresh and any(seen[f"{channel}valid"] for channel in CHANNELS)), "valid after a reset"
            fresh = bool(reset)
            if reset:
                for queue in (self.reads, self.writes, self.beats, self.answers, self.begun, waiting):
                    queue.clear()
                read_shown = answer_shown = False
                continue
            for channel, names in CHANNELS.items():
                payload = tuple(seen[name] for name in names)
                if channel in waiting:
                    assert seen[f"{channel}valid"], f"{channel}valid fell before {channel}ready"
                    assert waiting.pop(channel) == payload, f"{channel} payload changed before {channel}ready"
                if seen[f"{channel}valid"]:
                    if ready[channel]:
                        self._take(channel, payload)
                    else:
                        waiting[channel] = payload
            if read_shown and seen["rready"]:
                self.reads.popleft()
                read_shown = False
            if answer_shown and seen["bready"]:
                self.answers.popleft()
                answer_shown = False
            self._write()

    def _go(self) -> bool:
        return self.rng.random() >= self.stall

    def _take(self, channel: str, payload: tuple[int, ...]) -> None:
        if channel == "w":
            data, strobes, last = payload
            self.beats.append((data, strobes, last))
            return
        identity, address, length, size, burst = payload
        beats = length + 1
        assert burst == 1, f"{channel}burst = {burst}: 1 (INCR)"
        assert 1 << size == self.bytes, f"{channel}size = {size}: the bus has {self.bytes} bytes"
        assert beats <= self.max_beats, f"{channel}len = {length}: at most {self.max_beats} beats"
        start = address // self.bytes * self.bytes
        end = start + beats * self.bytes
        assert start // 4096 == (end - 1) // 4096, (
            f"{channel}: a burst from {address:#x} to {end:#x} crosses 4 KB"
        )
        self.bursts.append((channel, address, beats))
        if channel == "aw":
            self.writes.append((start, beats, identity))
        else:
            for i in range(beats):
                self.reads.append(
                    (start + i * self.bytes, identity, i == beats - 1, self.now + self.latency - 1)
                )

    def _write(self) -> None:
        """Put data that has its address into the memory; the last beat of a burst makes its answer."""
        while self.writes and self.beats:
            address, beats, identity = self.writes[0]
            self.begun.append(self.beats.popleft())
            assert self.begun[-1][2] == (len(self.begun) == beats), (
                f"wlast at beat {len(self.begun)} of {beats}"
            )
            if len(self.begun) < beats:
                continue
            response = OKAY
            for i, (data, strobes, _) in enumerate(self.begun):
                place = address + i * self.bytes
                if self.fails(place):
                    response = SLVERR
                    continue
                for byte in range(self.bytes):
                    if strobes >> byte & 1:
                        self.memory[place + byte] = data >> 8 * byte & 0xFF
            self.answers.append((identity, response, self.now + self.latency - 1))
            self.writes.popleft()
            self.begun.clear()
