"""Every switch allocator: a matching of the requests, its model, its bound on waiting, what it leaves unused."""

from itertools import product
from random import Random

import pytest
from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.router.allocators import ALLOCATORS, allocator_class
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.scheduler import weighs_outputs
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from support.hdl.allocator_models import THROW, IslipModel, SeparableModel, WavefrontModel

ITERATIONS = 2
MODELS = {
    "separable": SeparableModel,
    "wavefront": WavefrontModel,
    "islip": lambda *size: IslipModel(*size, iterations=ITERATIONS),
}
SIZES = ((2, 1), (3, 2), (4, 16), (5, 3))
"""Pairs of ports and VLs: with 16 VLs there is a control VL."""


def configuration(name, ports, vls, iterations=ITERATIONS):
    link = LinkConfig(vls=vls, hop_bits=3)
    return RouterConfig(link=link, ports=ports, allocator=name, allocator_iterations=iterations)


def play(config, cycles, next_wants, check):
    """Run an allocator. `next_wants(moves)` gives the next wants (as the models take them) after the moves of the cycle
    before, `check(wants, moves)` judges them. That the answer is a matching is always checked."""
    dut = allocator_class(config)(config)
    ports = range(config.ports)

    async def bench(ctx):
        moves = [None] * config.ports
        if hasattr(dut, "output_vl"):
            for i, vl in product(ports, range(config.link.vls)):
                ctx.set(dut.output_vl[i][vl], vl)
        for _ in range(cycles):
            wants = next_wants(moves)
            for i in ports:
                for p in ports:
                    ctx.set(dut.request[i][p], sum(1 << vl for vl, out in wants[i].items() if out == p))
                ctx.set(dut.alone[i], sum(1 << vl for vl, out in wants[i].items() if out == THROW))
            await ctx.delay(1e-8)
            if weighs_outputs(config):
                # Every VL keeps its number.
                for i in ports:
                    ctx.set(dut.offer_vl[i], ctx.get(dut.offer[i]))
                await ctx.delay(1e-8)
            grants = [ctx.get(dut.grant[p]) for p in ports]
            outputs = {}
            for p, grant in enumerate(grants):
                assert grant & (grant - 1) == 0, f"output {p} is given to several inputs"
                if grant:
                    assert grant.bit_length() - 1 not in outputs, "an input is given several outputs"
                    outputs[grant.bit_length() - 1] = p
            moves = []
            for i in ports:
                select = ctx.get(dut.select[i])
                if not ctx.get(dut.accepted[i]):
                    assert i not in outputs
                    moves.append(None)
                    continue
                assert select and select & (select - 1) == 0
                vl = select.bit_length() - 1
                assert wants[i].get(vl) == outputs.get(i, THROW), f"input {i} VL {vl} did not ask that"
                moves.append((vl, outputs.get(i, THROW)))
            check(wants, moves)
            await ctx.tick()

    # Some have no register, and so no clock domain of their own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def random_wants(random, config):
    """Wants that come and go as they please, their density changing all the time."""
    ports, vls, density = config.ports, config.link.vls, 0.5

    def draw(moves):
        nonlocal density
        if random.random() < 0.1:
            density = random.choice([0.05, 0.3, 0.7, 1.0])
        return [
            {
                vl: THROW if random.random() < 0.05 else random.randrange(ports)
                for vl in range(vls)
                if random.random() < density
            }
            for _ in range(ports)
        ]

    return draw


def owned(wants):
    """`wants` without those of a VL of an output that an earlier input has: it has one owner."""
    owners = set()
    for want in wants:
        for vl, output in list(want.items()):
            if (vl, output) in owners:
                del want[vl]
            elif output != THROW:
                owners.add((vl, output))
    return wants


def lasting_wants(random, config, chance):
    """Wants that stay until they are served, as in the router; then another comes with a chance a cycle."""
    ports = range(config.ports)
    wants = [{} for _ in ports]

    def draw(moves):
        for i in ports:
            if moves[i]:
                del wants[i][moves[i][0]]
            for vl in range(config.link.vls):
                if vl not in wants[i] and vl != config.control_vl and random.random() < chance:
                    wants[i][vl] = random.choice(ports)
        return [dict(want) for want in wants]

    return draw


def test_every_allocator_has_a_model():
    assert MODELS.keys() == ALLOCATORS.keys()


@pytest.mark.parametrize("name", sorted(ALLOCATORS))
@settings(max_examples=6, deadline=None, derandomize=True)
@given(size=st.sampled_from(SIZES), random=st.randoms(use_true_random=False))
def test_matches_follow_the_model(name, size, random):
    config = configuration(name, *size)
    model = MODELS[name](*size, config.control_vl)

    def check(wants, moves):
        assert moves == model.step(wants)

    play(config, 60, random_wants(random, config), check)


def test_wavefront_exchanges_follow_the_model():
    """There are so many inputs and wants that a maximal matching is often not the largest."""
    config = configuration("wavefront", 8, 8)
    model = WavefrontModel(8, 8)

    def check(wants, moves):
        assert moves == model.step(wants)

    play(config, 150, lasting_wants(Random(4), config, 1.0), check)
    assert model.exchanges > 10, model.exchanges


@pytest.mark.parametrize("name", sorted(ALLOCATORS))
@pytest.mark.parametrize("selection", ["same", "service_level"])
@settings(max_examples=4, deadline=None, derandomize=True)
@given(size=st.sampled_from(SIZES), random=st.randoms(use_true_random=False))
def test_outputs_choose_the_vl_that_their_vl_arbiter_picks(name, selection, size, random):
    """The choice is by fixed priority.

    Where packets keep their VL, every output picks the first VL that asks for it. Then every input picks the first of
    those that were picked. Elsewhere every input offers its first VL, and every output picks the first of those. The
    wavefront's additions leave no pair.
    """
    config = configuration(name, *size).replace(vl_arbiter="fixed_priority", vl_selection=selection)
    draw, control = random_wants(random, config), config.control_vl

    def first(vls):
        return min(vls, key=lambda vl: (vl != control, vl))

    def outputs_first(wants, moves):
        picked = {
            p: first(vls) for p in range(config.ports) if (vls := {v for w in wants for v in w if w[v] == p})
        }
        for want, move in zip(wants, moves, strict=True):
            if won := [vl for vl, output in want.items() if output == THROW or picked[output] == vl]:
                assert move == (first(won), want[first(won)])

    def check(wants, moves):
        if selection == "same":
            outputs_first(wants, moves)
        else:
            inputs_first(wants, moves)
        if name == "wavefront":
            assert not left_over(wants, moves)

    def inputs_first(wants, moves):
        offers = {i: first(want) for i, want in enumerate(wants) if want}
        for p in (THROW, *range(config.ports)):
            coming = {vl: i for i, vl in offers.items() if wants[i][vl] == p}
            if p == THROW:
                assert all(moves[i] == (vl, THROW) for i, vl in offers.items() if wants[i][vl] == THROW)
            elif coming:
                assert moves[coming[first(coming)]] == (first(coming), p)

    play(config, 60, lambda moves: owned(draw(moves)), check)


@pytest.mark.parametrize("vl_arbiter", ["table_fast", "table_iba", "fcfs_packet"])
def test_an_output_whose_choice_does_not_go_keeps_turn_and_share(vl_arbiter):
    """Input 0 has VL 0 for output 0 and VL 1 for output 1, which both pick it in the same cycle: one of them waits.

    Inputs 1 and 2 have another VL for each. All send packets of one flit, so that turns at each output are equal. The
    VL that was picked in vain is the next to go.
    """
    config = configuration("separable", 3, 3).replace(vl_arbiter=vl_arbiter)
    dut = allocator_class(config)(config)
    wants = {(0, 0): 1 << 0, (0, 1): 1 << 1, (1, 0): 1 << 1, (2, 1): 1 << 2}
    went = {0: [], 1: []}

    async def bench(ctx):
        for i in range(3):
            ctx.set(dut.tail[i], 1)
        # Without requests, until the tables have their weights of 1 each.
        await ctx.tick().repeat(2 * config.vl_table_entries + 2)
        for (i, p), vls in wants.items():
            ctx.set(dut.request[i][p], vls)
        for _ in range(60):
            await ctx.delay(1e-8)
            for p, order in went.items():
                grant = ctx.get(dut.grant[p])
                if grant:
                    order.append(ctx.get(dut.select[grant.bit_length() - 1]))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for p, order in went.items():
        assert len(order) >= 40
        counts = [order.count(wants[i, p]) for i in range(3) if (i, p) in wants]
        assert max(counts) - min(counts) <= 1, (p, order)


def test_stand_ins_of_a_vl_between_packets_take_turns_and_the_control_vl_has_none():
    """The choice is by fixed priority, without look-ahead.

    In the two cycles after VL 0's tail VLs 2 and 5 go in turn, in its place. After the control VL's tail VL 2 goes, as
    if nothing had been.
    """
    config = configuration("separable", 3, 16).replace(
        vl_arbiter="fixed_priority", vl_selection="service_level"
    )
    dut = allocator_class(config)(config)
    # VL of input 1, whose flits are tails, and the input that goes; inputs 0 and 2 always have VL 2 and VL 5.
    cycles = [(15, 1), (None, 0), (None, 0), (0, 1), (None, 0), (None, 2), (None, 0)]

    async def bench(ctx):
        ctx.set(dut.tail[1], 1)
        for i, vl in product(range(3), range(16)):
            ctx.set(dut.output_vl[i][vl], vl)
        for cycle, (vl, goes) in enumerate(cycles):
            for i, mine in enumerate((2, vl, 5)):
                ctx.set(dut.request[i][0], 0 if mine is None else 1 << mine)
            await ctx.delay(1e-8)
            for i in range(3):
                ctx.set(dut.offer_vl[i], ctx.get(dut.offer[i]))
            await ctx.delay(1e-8)
            assert ctx.get(dut.grant[0]) == 1 << goes, cycle
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def bound(config):
    """Cycles within which a VL that asks is served, by the docstrings."""
    ports, vls = config.ports, config.link.vls
    if config.allocator == "islip":
        return 2 * vls * ports * ports
    return vls * ports + (vls - 1) * (ports - 1)


@pytest.mark.parametrize("name", sorted(ALLOCATORS))
@pytest.mark.parametrize("chance", [0.15, 1.0])
def test_nobody_waits_longer_than_the_bound(name, chance):
    config = configuration(name, 4, 3)
    waits, longest = {}, 0

    def check(wants, moves):
        nonlocal longest
        for i, want in enumerate(wants):
            for vl in want:
                waits[i, vl] = waits.get((i, vl), 0) + 1
                assert waits[i, vl] <= bound(config), f"input {i} VL {vl}"
                longest = max(longest, waits[i, vl])
            if moves[i]:
                del waits[i, moves[i][0]]

    play(config, 400, lasting_wants(Random(1), config, chance), check)
    # It was not too easy.
    assert longest > config.link.vls


def left_over(wants, moves):
    """Pairs of an input and an output, both free, of which the first asks for the second."""
    inputs = [i for i, move in enumerate(moves) if move is None]
    outputs = set(range(len(moves))) - {move[1] for move in moves if move}
    return [(i, p) for i in inputs for p in outputs & set(wants[i].values())]


ARBITERS_AND_ALLOCATORS = list(product(sorted(VL_ARBITERS), sorted(ALLOCATORS)))


def check_nothing_left(vl_arbiter, name, selection, *, cycles, seed=2):
    """Random wants, iSLIP with one iteration."""
    config = configuration(name, 3, 3, 1).replace(
        vl_arbiter=vl_arbiter, vl_selection=selection, vl_table_entries=2
    )
    waited = 0

    def check(wants, moves):
        nonlocal waited
        assert not left_over(wants, moves)
        waited += sum(bool(want) and move is None for want, move in zip(wants, moves, strict=True))

    draw = random_wants(Random(seed), config)
    play(config, cycles, lambda moves: owned(draw(moves)), check)
    # Not everybody went, so there was something to choose.
    assert waited > cycles // 10


@pytest.mark.parametrize(("vl_arbiter", "name"), ARBITERS_AND_ALLOCATORS)
def test_no_output_that_a_free_input_asks_for_is_idle(vl_arbiter, name):
    check_nothing_left(vl_arbiter, name, "same", cycles=60)


@pytest.mark.full
@pytest.mark.parametrize("selection", ["same", "service_level", "any"])
@pytest.mark.parametrize(("vl_arbiter", "name"), ARBITERS_AND_ALLOCATORS)
def test_no_output_that_a_free_input_asks_for_is_idle_at_length(vl_arbiter, name, selection):
    check_nothing_left(vl_arbiter, name, selection, cycles=300, seed=3)


@pytest.mark.parametrize(
    ("name", "iterations"), [("separable", 1), ("wavefront", 1), ("islip", 1), ("islip", 5)]
)
def test_round_robin_leaves_nothing(name, iterations):
    config = configuration(name, 5, 4, iterations)

    def check(wants, moves):
        assert not left_over(wants, moves)

    play(config, 200, random_wants(Random(2), config), check)


def outputs_used(config, cycles, chance=1.0):
    """Share of the outputs' cycles, with wants that stay until they are served."""
    counts = []
    play(
        config,
        cycles,
        lasting_wants(Random(3), config, chance),
        lambda wants, moves: counts.append(sum(move is not None for move in moves)),
    )
    return sum(counts) / len(counts) / config.ports


def test_the_wavefronts_exchange_uses_more_outputs():
    """One figure shows the reason for the better allocator. First choices alone would use 1 - 0.8^5 = 0.67."""
    used = {
        name: outputs_used(configuration(name, 5, 8), 300) for name in ("separable", "wavefront", "islip")
    }
    assert used["wavefront"] > used["separable"], used
    assert min(used.values()) > 0.85, used


def test_more_iterations_of_islip_match_more():
    few, more = (outputs_used(configuration("islip", 5, 4, iterations), 150, 0.5) for iterations in (1, 3))
    assert more > few, (few, more)


def test_unknown_allocator():
    with pytest.raises(ConfigError) as caught:
        Router(configuration("best", 4, 1))
    text = "RouterConfig.allocator = 'best': one of islip, separable, wavefront"
    assert str(caught.value) == text
