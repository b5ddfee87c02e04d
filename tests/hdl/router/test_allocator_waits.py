"""Every allocator under saturation: every VL that asks goes on asking for its output.

The tests look at who waits how long. They check that no output stands still because one VL of another input does.
"""

from itertools import product
from random import Random

import pytest
from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.allocators import ALLOCATORS, allocator_class
from lanikai.hdl.router.allocators.allocator import PAUSE_CYCLES, patience_cycles
from lanikai.hdl.router.allocators.waits import wait_bound
from lanikai.hdl.router.scheduler import has_tables, weighs_outputs
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS

PORTS, VLS, ENTRIES = 4, 4, 4
ALL = list(product(sorted(VL_ARBITERS), sorted(ALLOCATORS)))
WEIGHED = sorted(VL_ARBITERS.keys() - {"round_robin"})
# The others by `make test-full`.
TABLES = ["table_slow", *(pytest.param(name, marks=pytest.mark.full) for name in ("table_fast", "table_iba"))]

ALL_IN_FULL = ["separable", *(pytest.param(name, marks=pytest.mark.full) for name in ("islip", "wavefront"))]

# (input, VL): output. VL 1 wants what VL 0, of its input, keeps from it, and VL 2 waits behind it.
THREE_STREAMS = {(0, 0): 1, (0, 1): 2, (1, 2): 2}
# And VL 2's input is never free.
FOUR_STREAMS = THREE_STREAMS | {(1, 3): 3}


def configuration(vl_arbiter, name, selection="same", **changes):
    link = LinkConfig(vls=VLS, hop_bits=3, flit_bits=128)
    return RouterConfig(
        link=link,
        ports=PORTS,
        allocator=name,
        vl_arbiter=vl_arbiter,
        vl_selection=selection,
        vl_table_entries=ENTRIES,
        **changes,
    )


async def write(ctx, tables, *, high=(), low=(), limit=255, deficit):
    """The same tables everywhere, then time to take effect."""
    rows = [(1, e, vl, weight) for e, (vl, weight) in enumerate(high)]
    rows += [(0, e, vl, weight) for e, (vl, weight) in enumerate(low)]
    while not all(ctx.get(table.ready) for table in tables):
        await ctx.tick()
    for is_high, entry, vl, weight in rows:
        for table in tables:
            for name, value in (("high", is_high), ("entry", entry), ("vl", vl), ("weight", weight)):
                ctx.set(getattr(table, name), value)
            ctx.set(table.write, 1)
        await ctx.tick()
    for table in tables:
        ctx.set(table.write, 0)
        ctx.set(table.limit, limit)
        ctx.set(table.commit, not deficit)
    await ctx.tick()
    for table in tables:
        ctx.set(table.commit, 0)
    # Without requests tables take effect as soon as they are ready.
    await ctx.tick()
    while not all(ctx.get(table.ready) for table in tables):
        await ctx.tick()


def saturate(config, streams, cycles, **tables):
    """For each stream the cycles in which a flit of it crosses, while all always ask; packets of one flit."""
    dut = allocator_class(config)(config)
    went = {stream: [] for stream in streams}

    async def bench(ctx):
        if tables:
            members = [*dut.table, *dut.output_table]
            await write(ctx, members, deficit=config.vl_arbiter == "deficit", **tables)
        for i in range(PORTS):
            ctx.set(dut.tail[i], 1)
            if hasattr(dut, "output_vl"):
                for vl in range(VLS):
                    ctx.set(dut.output_vl[i][vl], vl)
            for p in range(PORTS):
                asking = sum(
                    1 << vl for (source, vl), output in streams.items() if (source, output) == (i, p)
                )
                ctx.set(dut.request[i][p], asking)
        for cycle in range(cycles):
            if weighs_outputs(config):
                await ctx.delay(1e-8)
                for i in range(PORTS):
                    ctx.set(dut.offer_vl[i], ctx.get(dut.offer[i]))
            await ctx.delay(1e-8)
            for i in range(PORTS):
                if ctx.get(dut.accepted[i]):
                    went[i, ctx.get(dut.select[i]).bit_length() - 1].append(cycle)
            await ctx.tick()

    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return went


def at_arbiter(vl_arbiter, vl, asking, *, high=(), low=None, limit=255):
    """Most flits of others that the VL arbiter lets go before `vl`, with packets of one flit: None without a bound.

    All tables have this in common: in two rounds of a table the others of it have twice their weights.
    """
    others = [other for other in asking if other != vl]
    high = dict(high)
    low = dict.fromkeys(range(VLS), 1) if low is None else dict(low)
    if vl_arbiter == "fixed_priority":
        return 0 if vl == min(asking) else None
    if vl_arbiter in ("fcfs", "fcfs_packet", "round_robin"):
        return len(others)
    if vl_arbiter == "deficit":
        return sum(low.get(other, 1) for other in others)
    above = [other for other in others if other in high]
    if vl in high:
        rounds = 2 * sum(high[other] for other in above)
        return rounds + (0 if limit == 255 else rounds // max(1, limit) + 1)
    if vl not in low:
        return None if others else 0
    rounds = 2 * sum(low[other] for other in others if other in low)
    if not above:
        return rounds
    # `table_iba` counts the limit in 4096 bytes: 256 flits.
    most = max(1, limit * (256 if vl_arbiter == "table_iba" else 1))
    return None if limit == 255 else rounds + (rounds + 1) * most


def bounds(config, streams, **tables):
    """The bound of each stream in cycles, by `wait_bound`."""
    name = config.vl_arbiter

    def asking(side, number):
        return [vl for (i, vl), p in streams.items() if (i, p)[side] == number]

    at_input = {(i, vl): at_arbiter(name, vl, asking(0, i), **tables) for i, vl in streams}
    at_output = {(i, vl): at_arbiter(name, vl, asking(1, p), **tables) for (i, vl), p in streams.items()}
    found = {}
    for i, vl in streams:
        others = list((at_input if config.vl_selection == "same" else at_output).values())
        slowest = None if None in others else max(others)
        found[i, vl] = wait_bound(
            config, at_input=at_input[i, vl], at_output=at_output[i, vl], slowest=slowest
        )
    return found


def longest_wait(cycles, end):
    """The most cycles from one of `cycles` (or the start) to the next (or the end, if none comes)."""
    return max(b - a for a, b in zip([-1, *cycles], [*cycles, end], strict=True))


def check_waits(config, streams, cycles, **tables):
    """Check that nobody waits longer than the bound, or than the run if that is shorter.

    Returns how many have a bound in it, and who went when.
    """
    went = saturate(config, streams, cycles, **tables)
    judged = 0
    for stream, bound in bounds(config, streams, **tables).items():
        if bound is not None:
            assert longest_wait(went[stream], cycles) <= bound, (stream, bound, went[stream][:10])
            judged += bound <= cycles
    return judged, went


def random_streams(random):
    """Streams of every VL of every input; each VL of an output has one owner."""
    outputs = [random.sample(range(PORTS), PORTS) for _ in range(VLS)]
    return {(i, vl): outputs[vl][i] for i in range(PORTS) for vl in range(VLS) if random.random() < 0.8}


@pytest.mark.parametrize(
    ("vl_arbiter", "name"),
    [one if one[1] == "separable" else pytest.param(*one, marks=pytest.mark.full) for one in ALL],
)
def test_under_saturation_nobody_waits_longer_than_the_bound(vl_arbiter, name):
    """Tables are as after reset, all weights 1. By fixed priority the VLs are those that it gives a bound."""
    streams = random_streams(Random(3))
    judged, _ = check_waits(configuration(vl_arbiter, name), streams, 160)
    assert judged >= (2 if vl_arbiter == "fixed_priority" else len(streams))


@pytest.mark.full
@pytest.mark.parametrize("selection", ["same", "service_level", "any"])
@pytest.mark.parametrize(("vl_arbiter", "name"), ALL)
def test_under_saturation_nobody_waits_longer_than_the_bound_at_length(vl_arbiter, name, selection):
    random = Random(f"{vl_arbiter} {name} {selection}")
    config = configuration(vl_arbiter, name, selection)
    streams = random_streams(random)
    check_waits(config, streams, 400)
    if has_tables(config):
        low = tuple((vl, random.choice((1, 2, 7, 40))) for vl in range(1, VLS))
        if vl_arbiter == "deficit":
            check_waits(config, streams, 400, low=low)
        else:
            for limit in (1, 9, 255):
                check_waits(config, streams, 400, high=((0, 5),), low=low, limit=limit)


@pytest.mark.parametrize("streams", [THREE_STREAMS, FOUR_STREAMS])
@pytest.mark.parametrize("name", sorted(ALLOCATORS))
@pytest.mark.parametrize("vl_arbiter", TABLES)
def test_nobody_waits_behind_a_vl_that_never_goes(vl_arbiter, name, streams):
    """VL 0 is in the high table, without limit: VL 1 never goes, and output 2, which has picked it, serves VL 2."""
    config = configuration(vl_arbiter, name)
    tables = {"high": ((0, 1),), "low": ((1, 1), (2, 1), (3, 1)), "limit": 255}
    assert bounds(config, streams, **tables)[0, 1] is None
    went = saturate(config, streams, 400, **tables)
    assert (len(went[0, 0]), went[0, 1]) == (400, [])
    if streams == THREE_STREAMS:
        assert len(went[1, 2]) == 400
        return
    # VL 2 and VL 3 share their input, but for the time until output 2 is overdue.
    patience = patience_cycles(PORTS)
    assert longest_wait(went[1, 2], 400) <= min(patience + 4, bounds(config, streams, **tables)[1, 2])
    assert len(went[1, 2]) + len(went[1, 3]) == 400
    assert abs(len(went[1, 2]) - (400 - patience) / 2) <= 3


# VL 3 is in the high table, so output 1 never picks VL 0, which is its input's offer; VL 1 wants to share output 2.
BEHIND_AN_OFFER = {(0, 0): 1, (0, 1): 2, (1, 3): 1, (2, 2): 2}
HIGH_3 = {"high": ((3, 1),), "low": ((0, 1), (1, 1), (2, 1)), "limit": 255}


@pytest.mark.parametrize("selection", ["service_level", pytest.param("any", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ALL_IN_FULL)
@pytest.mark.parametrize("vl_arbiter", TABLES)
def test_nobody_waits_behind_an_offer_that_never_goes(vl_arbiter, name, selection):
    """Inputs first. VL 0 is parked once, and then VL 1 and VL 2 share output 2 as if VL 0 were not there."""
    config, cycles = configuration(vl_arbiter, name, selection), 500
    found = bounds(config, BEHIND_AN_OFFER, **HIGH_3)
    assert found[0, 0] is None and found[0, 1] < cycles
    judged, went = check_waits(config, BEHIND_AN_OFFER, cycles, **HIGH_3)
    assert judged == 3
    assert (went[0, 0], len(went[1, 3])) == ([], cycles)
    assert len(went[0, 1]) + len(went[2, 2]) == cycles
    patience = patience_cycles(PORTS)
    assert went[0, 1][0] <= patience + 4
    assert abs(len(went[0, 1]) - (cycles - patience) / 2) <= 4


@pytest.mark.parametrize("name", ALL_IN_FULL)
def test_a_parked_vl_goes_when_its_output_lets_it(name):
    """VL 0 has 1 of 41 at output 1, so that it is parked: it goes in each frame, and keeps nobody waiting. Its own
    bound is longer than the run."""
    low = ((0, 1), (1, 1), (2, 1), (3, 40))
    config, cycles = configuration("table_slow", name, "service_level"), 41 * 10
    judged, went = check_waits(config, BEHIND_AN_OFFER, cycles, low=low)
    assert judged == len(BEHIND_AN_OFFER) - 1
    assert len(went[0, 0]) == pytest.approx(10, abs=1)
    assert longest_wait(went[0, 0], cycles) <= 2 * 41
    assert len(went[0, 0]) + len(went[1, 3]) == cycles
    assert len(went[0, 1]) + len(went[2, 2]) == cycles


@pytest.mark.parametrize("vl_arbiter", ["deficit", "table_fast", "table_slow"])
def test_what_a_vl_cannot_use_goes_to_the_others(vl_arbiter):
    """VL 0 has 250 times VL 1's weight at their input. So VL 1 has 1/251 of output 2, and VL 2 the rest."""
    config = configuration(vl_arbiter, "separable")
    went = saturate(config, THREE_STREAMS, 502, low=((0, 250), (1, 1), (2, 1)))
    assert len(went[0, 1]) == pytest.approx(2, abs=1)
    assert len(went[0, 1]) + len(went[1, 2]) == 502
    assert len(went[0, 0]) + len(went[0, 1]) == 502


@pytest.mark.parametrize("name", sorted(ALLOCATORS))
@pytest.mark.parametrize("selection", ["same", "service_level"])
def test_fixed_priority_does_not_stop_an_output(selection, name):
    """The input's offer, or the output's pick, never goes; the output, or the input, has another one."""
    config = configuration("fixed_priority", name, selection)
    went = saturate(config, THREE_STREAMS, 100)
    assert (len(went[0, 0]), len(went[1, 2])) == (100, 100)
    # Input 1 offers VL 1 for output 1, which VL 0 has for ever.
    went = saturate(config, {(0, 0): 1, (1, 1): 1, (1, 2): 2}, 100)
    assert (len(went[0, 0]), len(went[1, 2])) == (100, 100)


def test_the_bound_in_numbers():
    same = configuration("table_fast", "separable")
    assert wait_bound(configuration("round_robin", "separable")) == 4 * 4 + 3 * 3
    assert wait_bound(configuration("round_robin", "wavefront", "any")) == 4 * 4 + 3 * 3
    assert wait_bound(configuration("round_robin", "islip")) == 2 * 4 * 4 * 4
    assert wait_bound(same, at_input=2, at_output=3, slowest=6) == 4 * 7
    assert wait_bound(same, at_input=2, at_output=None, slowest=6) is None
    assert wait_bound(same, at_input=None, at_output=3, slowest=None) is None
    assert wait_bound(same, at_input=2, at_output=3, slowest=None) == 4 * (32 + 2 * (3 * 4 + 4))
    assert wait_bound(same, at_input=99, at_output=3, slowest=99) == 4 * 2 * (100 * 4 + 4)
    pauses = 1 + PAUSE_CYCLES
    blind = same.replace(header_lookahead=False)
    assert wait_bound(blind, at_input=2, at_output=3, slowest=6) == pauses * 4 * 7
    mapped = configuration("table_fast", "separable", "service_level")
    assert wait_bound(mapped, at_input=2, at_output=None, slowest=6) == 3 * (6 + 4 + PAUSE_CYCLES)
    assert wait_bound(mapped, at_input=None, at_output=2, slowest=6) is None
    assert wait_bound(mapped, at_input=2, at_output=None, slowest=None) is None
    parked = 4 * (4 + 1 + PAUSE_CYCLES)
    assert wait_bound(mapped, at_input=2, at_output=5, slowest=None) == 3 * 33 + 6 * parked
    assert wait_bound(mapped, at_input=2, at_output=5, slowest=26) == 3 * 32
    assert wait_bound(mapped, at_input=2, at_output=5, slowest=27) == 3 * 33 + 6 * parked
    assert patience_cycles(64) == 256
