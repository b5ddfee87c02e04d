"""Sums of a sink against sums in Python, over their wrap, and its last packet."""

import os
import random

import pytest
from amaranth import Value
from amaranth.sim import Simulator
from lanikai.hdl.traffic import arrivals
from lanikai.hdl.traffic.arrivals import Arrivals, watched_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.packet import BORN_BITS

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
CYCLES = 600
NARROW = {"flits": 5, "packets": 5, "latency": 28}
"""Widths at which every sum wraps several times in `CYCLES`; latencies are below 2^27."""


@pytest.mark.parametrize("classes", [1, 3, 4])
def test_sums_of_each_class_and_the_last_packet(monkeypatch, classes):
    monkeypatch.setattr(arrivals, "SUM_BITS", NARROW)
    config = TrafficConfig(classes=classes, watched=True)
    dut = Arrivals(config)
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    sums = {name: [0] * classes for name in NARROW}

    async def bench(ctx):
        last, toggle, wraps = None, 0, dict.fromkeys(NARROW, 0)
        for _ in range(CYCLES):
            of_class, flits, done = rng.randrange(classes), rng.choice([0, 1, 2]), rng.random() < 0.4
            latency, length = rng.getrandbits(BORN_BITS), rng.randrange(1, 1024)
            ctx.set(dut.flits, flits)
            ctx.set(dut.done, done)
            ctx.set(dut.packet.identity, {"traffic_class": of_class, "source": rng.randrange(16)})
            ctx.set(dut.packet.latency, latency)
            ctx.set(dut.packet.flits, length)
            packet = ctx.get(Value.cast(dut.packet))
            await ctx.tick()
            for name, amount in (("flits", flits), ("packets", done), ("latency", latency * done)):
                whole = sums[name][of_class] + amount
                wraps[name] += whole >> NARROW[name]
                sums[name][of_class] = whole % (1 << NARROW[name])
                expected = sum(one << NARROW[name] * i for i, one in enumerate(sums[name]))
                assert ctx.get(getattr(dut, f"sum_{name}")) == expected
            if done:
                last, toggle = packet, 1 - toggle
            if last is not None:
                assert ctx.get(Value.cast(dut.last)) == last
            assert ctx.get(dut.toggle) == toggle
        assert all(wraps.values()), wraps

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_signals_are_watched_only_if_asked():
    assert watched_signals(TrafficConfig()) == []
    names = watched_signals(TrafficConfig(watched=True))
    assert names == [
        "watched_sum_flits",
        "watched_sum_packets",
        "watched_sum_latency",
        "watched_last",
        "watched_toggle",
    ]
