"""The promises of both structures of the rate control unit, with both disciplines, against the plain model."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle, pairwise

import pytest
from amaranth.hdl import Fragment, ResetInserter, Signal
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.rate.control import RateControl, make_rate_control
from lanikai.hdl.nic.rate.tree import RateTree
from support.hdl.rate_unit import MOST_WAIT, STRUCTURES, RateBench, small

DISCIPLINES = ["idt", "virtual_clock"]
both = pytest.mark.parametrize("structure", ["registers", "tree of 4"])


@dataclass(frozen=True)
class Step:
    commands: dict
    select: int
    idle: int
    wait: bool
    """Wait until the commands have acted; else the next ones come at once."""


@st.composite
def cases(draw):
    flows = draw(st.sampled_from([1, 2, 3, 4, 7, 16]))
    flow = st.integers(0, flows - 1)
    discipline = draw(st.sampled_from(DISCIPLINES))
    charge = draw(st.sampled_from(["packets", "bytes"])) if discipline == "idt" else "packets"
    lead = st.integers(-100, 200)
    steps = []
    for _ in range(draw(st.integers(5, 30))):
        commands = {}
        if draw(st.integers(0, 2)) == 0:
            commands["enqueue"] = draw(flow)
        take = draw(st.integers(0, 5))
        if take < 3:
            commands["dispatched"] = draw(flow) if take == 0 else "offer"
            commands["last"] = draw(st.booleans())
            if charge == "bytes":
                commands["bytes"] = draw(
                    st.sampled_from([0, 1, 88, 119, 120, 121, 16383]) | st.integers(0, 128)
                )
        rare = draw(st.integers(0, 9))
        if rare == 0:
            commands["clear"] = draw(flow)
        elif rare in (1, 2, 3):
            commands["idt"] = (draw(flow), draw(st.integers(0, 12) | st.integers(0, 1023)))
        elif rare == 4:
            commands["ndt"] = (draw(flow), draw(lead))
        steps.append(Step(commands, draw(flow), draw(st.sampled_from([0, 0, 1, 2, 30])), draw(st.booleans())))
    return (
        draw(st.sampled_from(sorted(STRUCTURES))),
        discipline,
        charge,
        flows,
        draw(st.integers(0, 4095)),
        draw(st.lists(st.integers(0, 1), min_size=1, max_size=5)),
        steps,
    )


@settings(max_examples=25, deadline=None, print_blob=True)
@given(cases())
def test_agrees_with_the_model(case):
    """Random commands, several at a time, back to back or not: the model's integers do not wrap."""
    structure, discipline, charge, flows, start, ticks, steps = case
    # An MTU that is no power of two.
    config = small(structure, flows, discipline, rate_charge=charge, mtu_bytes=120)
    bench = RateBench(structure, config, start=start)

    async def script(b):
        tick = cycle(ticks)
        for flow in range(flows):
            await b.do(ndt=(flow, start))
        await b.decided()
        for step in steps:
            commands = dict(step.commands)
            for _ in range(step.idle):
                await b.cycle(next(tick), select=step.select)
            if commands.get("dispatched") == "offer":
                if b.offer is None:
                    await b.decided(tick)
                commands["dispatched"] = b.offer
                if b.offer is None:
                    del commands["dispatched"], commands["last"]
                    commands.pop("bytes", None)
            if "ndt" in commands:
                commands["ndt"] = (commands["ndt"][0], b.rtc + commands["ndt"][1])
            await b.do(tick, select=step.select, **commands)
            if step.wait:
                await b.decided(tick)
        await b.decided()
        for flow in range(flows):
            await b.state(flow)

    bench.run(script)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_smallest_ndt_first_and_of_equal_ones_the_lower_flow(structure):
    """All flows of a unit compete whose number is no power of two, in a mixed order, across the wrap."""
    flows = 13
    config = small(structure, flows)
    start = (1 << config.rtc_bits) - 5

    async def script(b):
        order = [(5 * flow) % flows for flow in range(flows)]
        ndts = {flow: start + (place // 3) for place, flow in enumerate(order)}
        for flow, ndt in ndts.items():
            await b.do(ndt=(flow, ndt))
        for flow in order:
            await b.do(enqueue=flow)
        for _ in range(flows):
            await b.cycle(1)
        found = []
        while len(found) < flows:
            await b.decided()
            found.append(b.offer)
            await b.do(dispatched=b.offer, last=True)
        await b.decided()
        assert b.offer is None
        # `enqueue` moved up what the clock had passed: it stood still meanwhile.
        assert found == sorted(range(flows), key=lambda flow: (max(ndts[flow], start), flow))

    RateBench(structure, config, start=start).run(script)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_flow_becomes_valid_in_the_cycle_in_which_another_is_dispatched(structure, discipline):
    async def script(b):
        await b.do(idt=(2, 5))
        await b.do(enqueue=2)
        await b.decided()
        assert b.offer == 2
        await b.do(dispatched=2, enqueue=0)
        await b.decided()
        assert b.offer == 0
        await b.do(dispatched=0, last=True)
        await b.decided()
        assert b.offer == (2 if discipline == "virtual_clock" else None)
        for _ in range(5):
            await b.cycle(1)
        assert b.offer == 2

    RateBench(structure, small(structure, 4, discipline)).run(script)


@both
def test_enqueue_with_the_last_dispatch_keeps_the_flow_and_its_pace(structure):
    async def script(b):
        await b.do(idt=(1, 10))
        await b.do(enqueue=1)
        await b.decided()
        await b.do(dispatched=1, last=True, enqueue=1)
        await b.decided()
        assert b.offer is None and await b.state(1) == (10, 110, 1)
        while b.rtc < 110:
            assert b.offer is None
            await b.cycle(1)
        assert b.offer == 1

    RateBench(structure, small(structure), start=100).run(script)


@both
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_change_of_idt_acts_from_the_next_packet_on(structure, discipline):
    async def script(b):
        await b.do(idt=(0, 20))
        await b.do(enqueue=0)
        await b.decided()
        first = 20 if discipline == "virtual_clock" else 0
        await b.do(dispatched=0)
        await b.do(idt=(0, 4))
        assert await b.state(0) == (4, first + 20, 1)
        for _ in range(30):
            await b.cycle(1)
        await b.do(dispatched=0)
        assert await b.state(0) == (4, first + 24, 1)

    RateBench(structure, small(structure, 4, discipline)).run(script)


@both
@pytest.mark.parametrize("wraps", [0.3, 0.55, 1.0, 1.4])
def test_an_idle_flow_of_any_age_is_not_taken_for_a_future_one(structure, wraps):
    config = small(structure)

    async def script(b):
        await b.do(ndt=(1, 17))
        await b.skip(round((1 << config.rtc_bits) * wraps))
        await b.do(enqueue=1)
        await b.decided()
        assert b.offer == 1 and (await b.state(1))[1] == b.rtc % (1 << config.rtc_bits)

    RateBench(structure, config, start=17).run(script)


@both
def test_a_flow_that_waits_for_ages_stays_on_offer_with_arrears_up_to_the_limit(structure):
    config = small(structure)

    async def script(b):
        await b.do(idt=(2, 1))
        await b.do(enqueue=2)
        await b.decided()
        hidden = 0
        for _ in range(3 << (config.rtc_bits - 1)):
            await b.skip(1)
            hidden = 0 if b.offer == 2 else hidden + 1
            assert hidden < b.latency
        count = 0
        while b.offer == 2:
            await b.do(dispatched=2)
            await b.decided()
            count += 1
        slack = config.flows if structure == "registers" else (config.flows + 2) * config.rate_scan_cycles
        assert config.max_lag_ticks < count <= config.max_lag_ticks + slack + 1

    RateBench(structure, config).run(script)


@both
def test_no_burst_after_an_idle_time(structure):
    """A flow that had nothing to send gets one packet at once, then its pace: NDT = max(NDT, RTC)."""

    async def script(b):
        await b.do(idt=(3, 50))
        await b.do(enqueue=3)
        await b.decided()
        await b.do(dispatched=3, last=True)
        await b.skip(400)
        await b.do(enqueue=3)
        times = []
        while len(times) < 4:
            await b.decided()
            while b.offer is None:
                await b.cycle(1)
            times.append(b.rtc)
            await b.do(dispatched=3)
        assert [later - earlier for earlier, later in pairwise(times)] == [50, 50, 50]

    RateBench(structure, small(structure)).run(script)


@both
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("idts", [[0, 40], [40, 0], [0, 0, 80, 50]])
def test_a_flow_that_is_not_regulated_leaves_the_others_their_rates(structure, discipline, idts):
    """All flows always have packets, each of which takes the link for 12 ticks. An NDT to which nothing was added once
    stayed the smallest. No other flow was ever served."""
    window, packet = 2400, 12

    async def script(b):
        for flow, idt in enumerate(idts):
            await b.do(idt=(flow, idt))
        for flow in range(len(idts)):
            await b.do(enqueue=flow)
        counts = [0] * len(idts)
        start = b.rtc
        while b.rtc < start + window:
            sent = b.rtc
            await b.decided(cycle([1]))
            counts[b.offer] += 1
            await b.do(cycle([1]), dispatched=b.offer)
            while b.rtc < sent + packet:
                await b.cycle(1)
        for flow, idt in enumerate(idts):
            if idt:
                assert abs(counts[flow] - window / idt) <= 1.5, counts
        free = [counts[flow] for flow, idt in enumerate(idts) if not idt]
        # One from the tie in the first tick, one from the end of the window.
        assert max(free) - min(free) <= 2 and sum(counts) >= window // packet - 1, counts

    RateBench(structure, small(structure, len(idts), discipline)).run(script)


@both
@pytest.mark.parametrize(
    ("bytes_", "charged"),
    [([77], 77), ([128], 128), ([1], 1), ([0], 128), ([500], 120), ([3, 119, 5, 0], 255)],
)
def test_bytes_are_charged_exactly_however_many_packets(structure, bytes_, charged):
    """NDT += IDT x bytes / 128, on a clock that wraps. After each packet it is less than a tick from the exact sum, and
    shown rounded up.

    `charged`: the charge of a round of `bytes_`, with packets of 120 bytes at most.
    """
    config = small(structure, 2, rate_charge="bytes", mtu_bytes=120 if bytes_ == [500] else 128)
    idt, start, rounds = 37, (1 << config.rtc_bits) - 100, 40 // len(bytes_)

    async def script(b):
        await b.do(ndt=(1, start))
        await b.do(idt=(1, idt))
        await b.do(enqueue=1)
        for done in range(1, rounds * len(bytes_) + 1):
            await b.decided(cycle([1]))
            while b.offer is None:
                await b.cycle(1)
            await b.do(cycle([1]), dispatched=1, bytes=bytes_[(done - 1) % len(bytes_)])
            assert (await b.state(1))[1] == b.model.shown(1) % (1 << b.config.rtc_bits)
        assert b.model.ndt[1] == start + Fraction(rounds * idt * charged, 128)

    RateBench(structure, config, start=start).run(script)


@both
def test_flows_of_long_and_of_short_packets_get_the_same_bytes(structure):
    """Both flows have the same IDT. By packets the flow of 32 bytes gets a quarter of what the flow of 128 gets; by
    bytes they get the same."""
    sizes, idt, window = [32, 128], 60, 900

    def served(charge):
        got = [0, 0]

        async def script(b):
            for flow in range(2):
                await b.do(idt=(flow, idt))
                await b.do(enqueue=flow)
            while b.rtc < window:
                await b.decided(cycle([1]))
                if (flow := b.offer) is None:
                    await b.cycle(1)
                    continue
                got[flow] += sizes[flow]
                charged = {"bytes": sizes[flow]} if charge == "bytes" else {}
                await b.do(cycle([1]), dispatched=flow, **charged)

        RateBench(structure, small(structure, 2, rate_charge=charge)).run(script)
        return got

    exact = window // idt * 128
    assert served("bytes") == [pytest.approx(exact, abs=64), pytest.approx(exact, abs=128)]
    assert served("packets") == [pytest.approx(exact / 4, abs=64), pytest.approx(exact, abs=128)]


def test_bytes_are_not_charged_by_virtual_clock():
    with pytest.raises(ConfigError, match=r"rate_charge = 'bytes': needs rate_discipline = 'idt'"):
        preset(NicConfig, "tiny", rate_charge="bytes", rate_discipline="virtual_clock")
    # The unit is the MTU where it can be.
    assert preset(NicConfig, "lanai4").charge_unit_bytes == 4096
    assert preset(NicConfig, "iba").charge_unit_bytes == 1024


@both
def test_virtual_clock_stamps_as_the_thesis_says(structure):
    """nagar-thesis-2001 5.3.3: auxVC = max(now, auxVC) + Vtick; in the order of stamps, without waiting."""

    async def script(b):
        for flow, vtick in ((0, 30), (1, 10), (2, b.config.max_idt_ticks)):
            await b.do(idt=(flow, vtick))
        for flow in (2, 0, 1):
            await b.do(enqueue=flow)
        served = []
        for _ in range(8):
            await b.decided()
            served.append(b.offer)
            await b.do(dispatched=b.offer)
        # Stamps 10, 20, 30 of flow 1; 30, 60 of flow 0, which is the lower; best effort comes last.
        assert served == [1, 1, 0, 1, 1, 1, 0, 1]
        assert (await b.state(2))[1] == b.config.max_idt_ticks
        for flow in (0, 1):
            await b.do(clear=flow)
        await b.decided()
        assert b.offer == 2

    RateBench(structure, small(structure, 4, "virtual_clock")).run(script)


@both
def test_commands_for_a_flow_that_does_not_exist_do_nothing(structure):
    config = small(structure, 3)
    bench = RateBench(structure, config)

    async def script(b):
        await b.do(enqueue=2)
        await b.decided()
        dut, ctx = b.dut, b.ctx
        b.drive({"enqueue": 3, "clear": 3, "dispatched": 3, "last": True, "ndt": (3, 9), "idt": (3, 9)}, 0)
        for _ in range(MOST_WAIT):
            await ctx.tick()
        b.drive({}, 3)
        for _ in range(MOST_WAIT):
            await ctx.tick()
            if ctx.get(dut.settled):
                assert (ctx.get(dut.ndt), ctx.get(dut.idt), ctx.get(dut.valid)) == (0, 0, 0)
        assert b.offer == 2
        for flow in range(3):
            await b.state(flow)

    bench.run(script)


def test_tree_takes_a_command_every_decision_time_and_shows_its_state_two_cycles_later():
    """The latencies that the docstring states."""
    # The scan comes every 256 cycles, so not meanwhile.
    bench = RateBench("tree of 4", preset(NicConfig, "tiny", flows=16, rate_structure="tree"))
    assert bench.latency == 7

    async def script(b):
        await b.do(idt=(7, 3))
        while not b.ctx.get(b.dut.settled):
            await b.cycle(select=7)
        await b.do(select=7, enqueue=7)
        # The cycle that took it is the first of them.
        cycles = 1
        while "enqueue" not in b.ready:
            await b.cycle(select=7)
            cycles += 1
        assert cycles == 7 and b.offer == 7 and not b.ctx.get(b.dut.settled)
        await b.cycle(select=7)
        await b.cycle(select=7)
        assert b.ctx.get(b.dut.settled)

    bench.run(script)


@pytest.mark.parametrize("cycles", range(0, 9, 2))
def test_reset_at_any_time_leaves_no_flow_behind(cycles):
    """The reset comes in the middle of a command. A tree's memories keep what they hold, unless the unit clears
    them."""
    bench = RateBench("tree of 4", small("tree of 4", 16))
    reset = Signal()
    dut = ResetInserter(reset)(bench.dut)

    async def script(b):
        for flow in (3, 9, 15):
            await b.do(idt=(flow, 50))
            await b.do(ndt=(flow, 100))
            await b.do(enqueue=flow)
        await b.decided()
        b.ctx.set(b.dut.enqueue.payload, 5)
        b.ctx.set(b.dut.enqueue.valid, 1)
        for _ in range(cycles):
            await b.ctx.tick()
        b.ctx.set(reset, 1)
        await b.ctx.tick()
        b.ctx.set(reset, 0)
        b.drive({}, 0)
        b.model.idt, b.model.ndt, b.model.valid = [0] * 16, [0] * 16, [False] * 16
        b.since = b.latency
        for flow in range(16):
            assert await b.state(flow) == (0, 0, 0)
        await b.do(enqueue=9)
        await b.decided()
        assert b.offer == 9

    bench.run(script, dut)


def test_the_structure_follows_from_the_flows_or_the_field():
    def made(**fields):
        unit = make_rate_control(preset(NicConfig, "lanai4", **fields))
        Fragment.get(unit, None)
        return type(unit)

    assert made() is made(flows=16) is made(rate_structure="registers") is RateControl
    assert made(flows=17) is made(flows=1024) is made(flows=4, rate_structure="tree") is RateTree
    with pytest.raises(ConfigError, match=r"flows = 17: at most 16 with rate_structure = 'registers'"):
        preset(NicConfig, "lanai4", flows=17, rate_structure="registers")
    with pytest.raises(ConfigError, match=r"rtc_bits = 17: at least 18 for a tree of 1024 flows"):
        preset(NicConfig, "lanai4", flows=1024, rtc_bits=17)
    assert preset(NicConfig, "lanai4", flows=1024, rtc_bits=18).rate_scan_cycles == 16
    with pytest.raises(ConfigError, match="flows"):
        preset(NicConfig, "lanai4", flows=1025)
