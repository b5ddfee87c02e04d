"""The link that fails against its model in plain Python, kind by kind."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.fault_link import FAULT_COUNTS, FaultKind, FaultLink, FaultSetup
from lanikai.hdl.link import FlitLayout
from support.hdl.fault_model import PlainFaultLink

CYCLES = 300


def run(config: LinkConfig, setup: FaultSetup, seed: int) -> dict[str, int]:
    """Drive a link at random, hold every wire of every cycle against the model; returns the counts."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut, model = FaultLink(config), PlainFaultLink(config, setup)
    counts = {}

    async def bench(ctx):
        ctx.set(dut.control.as_value(), setup.word() & ~0xF)  # kind NONE: the seed is taken
        ctx.set(dut.rx.valid, 0)
        await ctx.tick()
        model.now += 1
        ctx.set(dut.control.as_value(), setup.word())
        inside = [False] * config.vls
        for _ in range(CYCLES):
            flit = credit = None
            if rng.random() < 0.7:
                vl, tail = rng.randrange(config.vls), rng.random() < 0.2
                value = {
                    "data": rng.getrandbits(config.flit_bits),
                    "vl": vl,
                    "head": not inside[vl],
                    "tail": tail,
                }
                inside[vl] = not tail
                flit = FlitLayout(config).const(value).as_value().value
            if rng.random() < 0.6:
                credit = rng.randrange(config.vls)
            levels = (int(rng.random() < 0.1), int(rng.random() < 0.1)) if config.restart else (0, 0)
            # A wire without a flit or a credit has what it likes.
            ctx.set(dut.rx.payload.as_value(), rng.getrandbits(8) if flit is None else flit)
            ctx.set(dut.rx.valid, flit is not None)
            ctx.set(dut.tx.credit_valid, credit is not None)
            ctx.set(dut.tx.credit_vl, credit or 0)
            if config.restart:
                ctx.set(dut.rx.restart, levels[0])
                ctx.set(dut.tx.credit_restart, levels[1])
            out, back, out_levels = model.cycle(flit, credit, levels)
            assert ctx.get(dut.tx.valid) == (out is not None)
            if out is not None:
                assert ctx.get(dut.tx.payload.as_value()) == out
            assert ctx.get(dut.rx.credit_valid) == (back is not None)
            if back is not None:
                assert ctx.get(dut.rx.credit_vl) == back
            if config.restart:
                assert (ctx.get(dut.tx.restart), ctx.get(dut.rx.credit_restart)) == out_levels
            await ctx.tick()
        for name, _ in FAULT_COUNTS:
            counts[name] = ctx.get(dut.counts[name])

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert counts == model.counts
    return counts


DOES = {
    FaultKind.NONE: set(),
    FaultKind.ERRORS: {"altered", "packets_hit"},
    FaultKind.DROPS: {"dropped", "packets_hit"},
    FaultKind.LOST_CREDITS: {"credits_lost"},
    FaultKind.EXTRA_CREDITS: {"credits_invented"},
    FaultKind.STUCK: {"dropped", "packets_hit", "invented", "credits_lost", "cycles"},
    FaultKind.DEAD: {"dropped", "packets_hit", "credits_lost", "cycles"},
    FaultKind.BABBLE: {"dropped", "packets_hit", "invented", "cycles"},
}
"""Counts that a kind must have, and no others."""


@pytest.mark.parametrize(
    "link",
    [
        {"flit_bits": 64, "vls": 2, "restart": True},
        {"flit_bits": 32, "vls": 3},
        pytest.param({"flit_bits": 128, "vls": 16, "restart": True}, marks=pytest.mark.full),
        pytest.param({"flit_bits": 64, "vls": 1}, marks=pytest.mark.full),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", FaultKind)
def test_a_link_fails_as_its_model_does(kind, link):
    setup = FaultSetup(kind=kind, rate=1 << 29, start=50, length=200, seed=77)
    counts = run(LinkConfig(**link), setup, seed=3)
    did = {name for name, count in counts.items() if count} - {"flits"}
    assert did == DOES[kind]


def test_a_fault_hits_the_vls_it_is_for():
    config = LinkConfig(vls=2)
    assert run(config, FaultSetup(kind=FaultKind.DROPS, rate=(1 << 32) - 1, vls=4), seed=5)["dropped"] == 0
    whole = run(config, FaultSetup(kind=FaultKind.DROPS, rate=(1 << 32) - 1), seed=5)
    assert whole["dropped"] == whole["flits"] > 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"rate": 1 << 32}, "FaultSetup.rate = 4294967296: must be less than 4294967296"),
        (
            {"start": 1 << 31, "length": 1 << 31},
            "FaultSetup: start + length = 2147483648 + 2147483648: at most 4294967295",
        ),
    ],
)
def test_a_fault_that_cannot_be_is_refused(changes, error):
    with pytest.raises(ConfigError) as caught:
        FaultSetup(**changes)
    assert str(caught.value).startswith(error.split(":")[0])
    assert error.split(": ", 1)[1] in str(caught.value)
