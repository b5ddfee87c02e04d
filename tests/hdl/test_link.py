"""The wire: flit layout, link signature and pacing."""

from fractions import Fraction

import pytest
from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.link import FlitLayout, LinkPacer, LinkSignature


@pytest.mark.parametrize(("vls", "vl_bits"), [(1, 1), (2, 1), (3, 2), (16, 4)])
@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_flit_has_its_fields(flit_bits, vls, vl_bits):
    config = LinkConfig(flit_bits=flit_bits, vls=vls)
    layout = FlitLayout(config)
    assert {name: field.width for name, field in layout} == {
        "data": flit_bits,
        "vl": vl_bits,
        "head": 1,
        "tail": 1,
    }
    assert layout["data"].offset == 0
    members = LinkSignature(config).members
    assert {name: members[name].flow.name for name in members} == {
        "payload": "Out",
        "valid": "Out",
        "credit_vl": "In",
        "credit_valid": "In",
    }


def paced(config, wishes):
    """Cycles in which a flit went, for a transmitter that wants to send in the cycles where `wishes` is
    true."""
    dut, sent = LinkPacer(config), []

    async def bench(ctx):
        for cycle, wish in enumerate(wishes):
            go = bool(wish and ctx.get(dut.slot))
            ctx.set(dut.sent, go)
            if go:
                sent.append(cycle)
            await ctx.tick()

    # At a rate of 1 the pacer has no register, and so no clock domain of its own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return sent


rates = st.integers(1, 40).flatmap(lambda den: st.tuples(st.integers(1, den), st.just(den)))


def model(rate, wishes):
    """The model of pacing: a flit may begin once the wire has carried all but a part of the last one that is shorter
    than a cycle."""
    free, sent = Fraction(0), []
    for cycle, wish in enumerate(wishes):
        if wish and free < cycle + 1:
            sent.append(cycle)
            free = max(free, Fraction(cycle)) + 1 / rate
    return sent


@settings(max_examples=25, deadline=None, derandomize=True)
@given(rates, st.lists(st.booleans(), min_size=60, max_size=120))
def test_pacer_is_the_model_and_never_faster_than_its_rate(rate, wishes):
    num, den = rate
    config = LinkConfig(rate_num=num, rate_den=den)
    sent = paced(config, wishes)
    assert sent == model(config.rate, wishes)
    for i, first in enumerate(sent):
        for j, last in enumerate(sent[i:]):
            assert j + 1 <= config.rate * (last - first + 1) + 1


@settings(max_examples=10, deadline=None, derandomize=True)
@given(rates)
def test_pacer_reaches_its_rate(rate):
    """A transmitter that always wants to send gets exactly the rate, over any whole number of periods."""
    num, den = rate
    cycles = 3 * den
    assert len(paced(LinkConfig(rate_num=num, rate_den=den), [True] * cycles)) == 3 * num


def test_pacer_lets_the_first_flit_go_at_once():
    config = LinkConfig(rate_num=1, rate_den=10)
    assert paced(config, [0] * 25 + [1] * 21) == [25, 35, 45]
