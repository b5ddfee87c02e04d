"""The system bus: bursts each way at once, their times, errors."""

from __future__ import annotations

import random
from collections import deque

import pytest
from amaranth import Module
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError
from lanikai.sim.models.system_bus import DECERR, OKAY, SLVERR, SystemBus, SystemBusTiming

MEMORY_BYTES = 8192


class Bench:
    """A bus of 128 bits with a Python memory, run cycle by cycle."""

    def __init__(self, timing: SystemBusTiming) -> None:
        self.bus = SystemBus(timing, data_bits=128, id_bits=4, memory_bytes=MEMORY_BYTES)
        self.memory = bytearray(random.Random(5).randbytes(MEMORY_BYTES))
        self.answers: list[tuple[int, str, int, int, int]] = []
        """Cycle, channel, ID, response, data (a read's) of each beat and answer."""

    def run(self, reads, writes, cycles, *, pause=lambda: False):
        """`reads`: (cycle, id, address, beats, size, kind); `writes`: (cycle, id, address, words of data)."""
        reads, writes = deque(reads), deque(writes)
        data = deque()

        async def testbench(ctx):
            axi, memory = self.bus.adapter, self.bus.memory
            word = 0
            for cycle in range(cycles):
                ctx.set(self.bus.now, cycle)
                ctx.set(memory.read_data, word)
                due = bool(reads) and reads[0][0] <= cycle
                ctx.set(axi.arvalid, due)
                if due:
                    _, id_, address, beats, size, kind = reads[0]
                    for name, value in (
                        ("id", id_),
                        ("addr", address),
                        ("len", beats - 1),
                        ("size", size),
                        ("burst", kind),
                    ):
                        ctx.set(getattr(axi, f"ar{name}"), value)
                write = bool(writes) and writes[0][0] <= cycle
                ctx.set(axi.awvalid, write)
                if write:
                    _, id_, address, words = writes[0]
                    for name, value in (
                        ("id", id_),
                        ("addr", address),
                        ("len", len(words) - 1),
                        ("size", 4),
                        ("burst", 1),
                    ):
                        ctx.set(getattr(axi, f"aw{name}"), value)
                ctx.set(axi.wvalid, bool(data))
                if data:
                    ctx.set(axi.wdata, data[0][0])
                    ctx.set(axi.wlast, data[0][1])
                    ctx.set(axi.wstrb, 0xFFFF)
                ctx.set(axi.rready, not pause())
                ctx.set(axi.bready, not pause())
                if due and ctx.get(axi.arready):
                    reads.popleft()
                if data and ctx.get(axi.wready):
                    data.popleft()
                if write and ctx.get(axi.awready):
                    words = writes.popleft()[3]
                    data.extend((w, i == len(words) - 1) for i, w in enumerate(words))
                if ctx.get(axi.rvalid & axi.rready):
                    self.answers.append(
                        (cycle, "r", ctx.get(axi.rid), ctx.get(axi.rresp), ctx.get(axi.rdata))
                    )
                if ctx.get(axi.bvalid & axi.bready):
                    self.answers.append((cycle, "b", ctx.get(axi.bid), ctx.get(axi.bresp), 0))
                if ctx.get(memory.read):
                    at = ctx.get(memory.read_address)
                    word = int.from_bytes(self.memory[at : at + 16], "little")
                if ctx.get(memory.write):
                    at, strobe = ctx.get(memory.write_address), ctx.get(memory.strobe)
                    value = ctx.get(memory.write_data).to_bytes(16, "little")
                    for i in range(16):
                        if strobe >> i & 1:
                            self.memory[at + i] = value[i]
                await ctx.tick()

        m = Module()
        m.submodules.bus = self.bus
        simulator = Simulator(m)
        simulator.add_clock(1e-9)
        simulator.add_testbench(testbench)
        simulator.run()
        return self.answers


def test_a_read_takes_its_time_and_then_a_beat_a_cycle() -> None:
    bench = Bench(SystemBusTiming(read_cycles=7))
    expected = [int.from_bytes(bench.memory[at : at + 16], "little") for at in range(0x40, 0xA0, 16)]
    found = bench.run([(3, 2, 0x40, 4, 4, 1), (4, 1, 0x80, 2, 4, 1)], [], 30)
    assert [one[0] for one in found] == [10, 11, 12, 13, 14, 15]
    assert [one[4] for one in found] == expected
    assert [one[2] for one in found] == [2, 2, 2, 2, 1, 1]
    assert all(one[3] == OKAY for one in found)


def test_a_narrow_read_has_its_word_in_its_place() -> None:
    bench = Bench(SystemBusTiming(read_cycles=2))
    expected = [int.from_bytes(bench.memory[0x40:0x50], "little")] * 2
    found = bench.run([(0, 0, 0x44, 2, 2, 1)], [], 10)
    assert [one[4] for one in found] == expected


def test_a_write_is_answered_after_its_time() -> None:
    bench = Bench(SystemBusTiming(write_cycles=5))
    found = bench.run([], [(2, 3, 0x100, [11, 22])], 20)
    # The address is taken in cycle 2, the data in 3 and 4.
    assert found == [(9, "b", 3, OKAY, 0)]
    assert bench.memory[0x100:0x120] == (11).to_bytes(16, "little") + (22).to_bytes(16, "little")


@pytest.mark.parametrize(
    ("address", "kind", "response"), [(MEMORY_BYTES - 16, 1, (OKAY, DECERR)), (0, 0, (SLVERR, SLVERR))]
)
def test_what_is_not_there_is_refused(address: int, kind: int, response: tuple[int, int]) -> None:
    found = Bench(SystemBusTiming()).run([(0, 0, address, 2, 4, kind)], [], 40)
    assert [one[3] for one in found] == list(response)
    if DECERR in response:
        assert found[1][4] == (1 << 128) - 1


def test_a_write_beyond_memory_is_refused() -> None:
    found = Bench(SystemBusTiming()).run([], [(0, 0, MEMORY_BYTES - 16, [1, 2]), (0, 1, 0x40, [3])], 40)
    assert [(one[2], one[3]) for one in found] == [(0, DECERR), (1, OKAY)]


def test_random_bursts_both_ways_at_once_end_in_their_order() -> None:
    seed = 11
    print(f"seed {seed}")
    r = random.Random(seed)
    bench = Bench(SystemBusTiming(read_cycles=9, write_cycles=4))
    reads, writes, cycle = [], [], 0
    for n in range(60):
        cycle += r.randrange(4)
        reads.append((cycle, n % 16, 16 * r.randrange(200), r.randint(1, 8), 4, 1))
        words = [r.randrange(1 << 128) for _ in range(r.randint(1, 6))]
        writes.append((cycle, n % 16, 4096 + 16 * r.randrange(200), words))
    before = bytes(bench.memory)
    found = bench.run(reads, writes, 1500, pause=lambda: r.random() < 0.2)
    beats = [one for one in found if one[1] == "r"]
    expected = [
        (id_, int.from_bytes(before[at : at + 16], "little"))
        for _, id_, start, count, _, _ in reads
        for at in range(start, start + 16 * count, 16)
    ]
    assert [(one[2], one[4]) for one in beats] == expected
    assert [one[2] for one in found if one[1] == "b"] == [one[1] for one in writes]
    after = bytearray(before)
    for _, _, start, words in writes:
        for i, value in enumerate(words):
            after[start + 16 * i : start + 16 * i + 16] = value.to_bytes(16, "little")
    assert bench.memory == after


def test_memory_of_odd_pages_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^SystemBus: memory_bytes = 100: a positive multiple of 4096$"):
        SystemBus(SystemBusTiming(), data_bits=128, id_bits=4, memory_bytes=100)
