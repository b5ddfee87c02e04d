# amaranth: UnusedElaboratable=no
"""The SRAM against a plain list of bytes, and the fairness of its arbitration."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.sram import Sram

TINY = preset(NicConfig, "tiny")
CONFIGS = [
    TINY,
    TINY.replace(link=LinkConfig(flit_bits=64)),
    TINY.replace(link=LinkConfig(flit_bits=128)),
    TINY.replace(pipelined=True),
]


def run(dut: Sram, bench: Any) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.link.flit_bits}{'-pipelined' * c.pipelined}")
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), ports=st.integers(1, 5), load=st.floats(0.05, 1))
def test_every_port_reads_what_was_written_last(
    config: NicConfig, seed: int, ports: int, load: float
) -> None:
    """Reads and masked writes are random on every port. No cycle with a request goes without a grant, and nobody waits
    for more than the other ports. Pipelined, this comes a cycle later."""
    rng = random.Random(seed)
    dut = Sram(config, ports=ports)
    # Few words, so that ports meet; the last one shows that the whole depth is there.
    places = [0, 1, 2, config.sram_words - 1]
    memory = {place: bytearray(config.word_bytes) for place in places}

    async def bench(ctx: Any) -> None:
        members = [getattr(dut, f"port_{i}") for i in range(ports)]
        wanted: list[dict[str, int] | None] = [None] * ports
        waited = [0] * ports
        expected: tuple[int, int] | None = None
        asked_before = False
        for _ in range(120):
            for i, port in enumerate(members):
                if wanted[i] is None and rng.random() < load:
                    wanted[i] = {
                        "write": rng.randrange(2),
                        "address": rng.choice(places),
                        "data": rng.getrandbits(8 * config.word_bytes),
                        "mask": rng.getrandbits(config.word_bytes),
                    }
                request = wanted[i]
                ctx.set(port.valid, request is not None)
                # Values without a request count for nothing.
                idle = {"write": 1, "address": rng.choice(places), "data": 0, "mask": -1}
                for name, value in (request or idle).items():
                    ctx.set(getattr(port, name), value)
            if expected is not None:
                i, word = expected
                assert ctx.get(members[i].rdata) == word
                expected = None
            ready = [ctx.get(port.ready) for port in members]
            granted = [i for i in range(ports) if ready[i]]
            asked = any(request is not None for request in wanted)
            assert len(granted) == (asked_before if config.pipelined else asked)
            asked_before = asked
            for i in granted:
                request = wanted[i]
                if request is None:
                    # Its request of the cycle before was granted in that cycle.
                    assert config.pipelined
                    continue
                word = memory[request["address"]]
                if request["write"]:
                    for byte in range(config.word_bytes):
                        if request["mask"] >> byte & 1:
                            word[byte] = request["data"] >> 8 * byte & 0xFF
                else:
                    expected = i, int.from_bytes(word, "little")
                wanted[i] = None
                waited[i] = 0
            for i in range(ports):
                waited[i] += wanted[i] is not None
                assert waited[i] < ports + config.pipelined
            await ctx.tick()

    run(dut, bench)


def test_turns_are_equal_under_contention() -> None:
    dut = Sram(TINY, ports=3)
    order = []

    async def bench(ctx: Any) -> None:
        for i in (0, 2):
            ctx.set(getattr(dut, f"port_{i}").valid, 1)
        for cycle in range(9):
            ctx.set(dut.port_1.valid, cycle >= 3)
            order.append([ctx.get(getattr(dut, f"port_{i}").ready) for i in range(3)].index(1))
            await ctx.tick()

    run(dut, bench)
    assert order == [0, 2, 0, 1, 2, 0, 1, 2, 0]


def test_a_pipelined_port_that_goes_on_asking_loses_no_cycle_to_itself_and_half_to_another() -> None:
    """A port that comes to an SRAM that another port streams from is served in the cycle after; then both take
    turns."""
    dut = Sram(TINY.replace(pipelined=True), ports=3)
    order: list[int | None] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.port_2.valid, 1)
        for cycle in range(10):
            ctx.set(dut.port_0.valid, 4 <= cycle < 8)
            ready = [ctx.get(getattr(dut, f"port_{i}").ready) for i in range(3)]
            order.append(ready.index(1) if any(ready) else None)
            await ctx.tick()

    run(dut, bench)
    assert order == [None, 2, 2, 2, 2, 0, 2, 0, 2, 2]


def test_no_port_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Sram(TINY, ports=0)
    assert str(caught.value) == "Sram: ports = 0: at least 1"
