"""Round robin against a plain model, and the promises of its docstring."""

import pytest
from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.arbiter import ARBITERS, Arbiter, arbiter_class
from lanikai.hdl.config import ConfigError


def drive(dut, cycles, check):
    """Plays (requests, advance) a cycle; `check(requests, advance, grant)` each cycle."""

    async def bench(ctx):
        for requests, advance in cycles:
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            check(requests, advance, ctx.get(dut.grant))
            await ctx.tick()

    # A single requester has no register, and so no clock domain of its own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@st.composite
def cases(draw):
    size = draw(st.sampled_from([1, 2, 3, 5, 16]))
    cycle = st.tuples(st.integers(0, (1 << size) - 1), st.integers(0, 1))
    return size, draw(st.lists(cycle, min_size=30, max_size=60))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases())
def test_round_robin_is_the_model(case):
    size, cycles = case
    last = size - 1

    def check(requests, advance, grant):
        nonlocal last
        turns = [(last + 1 + i) % size for i in range(size)]
        winner = next((i for i in turns if requests >> i & 1), None)
        assert grant == (0 if winner is None else 1 << winner)
        if advance and winner is not None:
            last = winner

    drive(ARBITERS["round_robin"](size=size), cycles, check)


@pytest.mark.parametrize("name", sorted(ARBITERS))
@settings(max_examples=15, deadline=None, derandomize=True)
@given(cases())
def test_every_arbiter_grants_one_requester(name, case):
    """The contract of `Arbiter`: one-hot, only to a requester, and to one whenever anybody asks."""
    size, cycles = case

    def check(requests, advance, grant):
        assert grant & (grant - 1) == 0
        assert grant & ~requests == 0
        assert bool(grant) == bool(requests)

    drive(ARBITERS[name](size=size), cycles, check)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(cases(), st.integers(0, 15))
def test_round_robin_keeps_its_bound_on_waiting(case, patient):
    """A requester that keeps asking is passed over at most size - 1 times."""
    size, cycles = case
    patient %= size
    passed = 0

    def check(requests, advance, grant):
        nonlocal passed
        passed = 0 if grant >> patient & 1 else passed + advance
        assert passed <= size - 1

    drive(ARBITERS["round_robin"](size=size), [(r | 1 << patient, a) for r, a in cycles], check)


def test_unknown_arbiter_is_refused_with_the_valid_ones():
    assert issubclass(arbiter_class("round_robin"), Arbiter)
    with pytest.raises(ConfigError) as error:
        arbiter_class("no_such_arbiter")
    assert (
        str(error.value) == f"RouterConfig.arbiter = 'no_such_arbiter': one of {', '.join(sorted(ARBITERS))}"
    )
