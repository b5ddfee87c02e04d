"""The two-level table arbiter: against its model, and the promises of its docstring."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.vl_arbiter.base import NO_LIMIT, TableSignature
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.hdl.vl_models import ControlFirst, TwoLevelModel, play, ready_cycles, write_tables

POINTERS = ("fast", "slow")


def model_of(dut, control=True):
    model = TwoLevelModel(
        dut.vls,
        pointer=dut.pointer,
        by_packet=dut.by_packet,
        weight_flits=dut.weight_flits,
        limit_flits=dut.limit_flits,
    )
    return ControlFirst(model, dut.control_vl) if control else model


@st.composite
def tables(draw, vls, entries, weights=st.integers(0, 6)):
    entry = st.tuples(st.integers(0, vls - 1), weights)
    table = st.lists(entry, max_size=entries)
    limit = draw(st.sampled_from([0, 1, 2, 3, 5, NO_LIMIT]))
    return draw(table), draw(table), limit


@st.composite
def traffic(draw, vls, cycles):
    """Requests that come and go in long and short periods, so that frames end in all ways."""
    periods = draw(
        st.lists(st.tuples(st.integers(0, (1 << vls) - 1), st.integers(1, 12)), min_size=8, max_size=20)
    )
    random = draw(st.randoms(use_true_random=False))
    out = []
    for standing, length in periods:
        gaps = random.choice([0, 0, 0.3])
        for _ in range(length):
            requests = sum(1 << v for v in range(vls) if standing >> v & 1 and random.random() >= gaps)
            out.append((requests, random.getrandbits(vls), random.random() < 0.8))
    return out[:cycles]


@pytest.mark.parametrize(
    ("pointer", "units"), [("fast", "flit"), ("slow", "flit"), ("fast", "iba"), ("slow", "iba")]
)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_two_level_is_the_model(pointer, units, data):
    vls, entries = data.draw(st.sampled_from([(1, 1), (2, 2), (4, 4), (5, 3), (16, 8)]))
    high, low, limit = data.draw(tables(vls, entries))
    stimulus = data.draw(traffic(vls, 120))
    dut = TwoLevelArbiter(vls=vls, entries=entries, pointer=pointer, units=units)
    model = model_of(dut)
    if high or low:
        model.model.load(high, low, limit)

    def check(requests, tails, advance, grant):
        vl = model.grant(requests, tails)
        assert grant == (0 if vl is None else 1 << vl)
        model.go(requests, tails, advance)

    play(dut, stimulus, check, high=high, low=low, limit=limit)


@pytest.mark.parametrize("pointer", POINTERS)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.data())
def test_shares_are_exact_over_frames_for_any_active_vls(pointer, data):
    """The shares are within 1% of the weights over 50 frames. An idle VL's share goes to the others in proportion."""
    vls = 8
    weights = data.draw(st.lists(st.integers(1, 9), min_size=vls, max_size=vls))
    active = data.draw(st.integers(1, (1 << vls) - 1))
    frame = sum(weights[v] for v in range(vls) if active >> v & 1)
    counts = [0] * vls

    def check(requests, tails, advance, grant):
        counts[grant.bit_length() - 1] += advance

    dut = TwoLevelArbiter(vls=vls, entries=vls, pointer=pointer)
    play(dut, [(active, 0, 1)] * (50 * frame), check, high=list(enumerate(weights)))
    for v in range(vls):
        share = weights[v] / frame if active >> v & 1 else 0
        assert abs(counts[v] / (50 * frame) - share) <= 0.01 * share


@pytest.mark.parametrize("pointer", POINTERS)
def test_vl_that_goes_idle_and_comes_back_neither_loses_nor_gains(pointer):
    """Away for part of a frame the VL still has its whole share in it. Away for many, it finds one share in the frame
    that is under way, and from then on its own share of each."""
    weights = [4, 6, 5]
    order = []

    def check(requests, tails, advance, grant):
        order.append(grant.bit_length() - 1)

    dut = TwoLevelArbiter(vls=3, entries=3, pointer=pointer)
    # A frame begins with VL 0; VL 1 is away from it until five flits of the others have gone.
    stimulus = [(0b101, 0, 1)] * 5 + [(0b111, 0, 1)] * 10
    # Then away for 10 frames of the other two (90 flits), and back for the rest of the tenth and three more.
    stimulus += [(0b101, 0, 1)] * 90 + [(0b111, 0, 1)] * (6 + 45)
    play(dut, stimulus, check, high=list(enumerate(weights)))
    assert [order[:15].count(v) for v in range(3)] == weights
    assert [order[15:105].count(v) for v in range(3)] == [40, 0, 50]
    assert order[105:111] == [1] * 6
    assert [order[111:].count(v) for v in range(3)] == [3 * weight for weight in weights]


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("limit", [1, 3, NO_LIMIT])
def test_limit_of_high_priority_gives_low_its_share(pointer, limit):
    counts = [0] * 4

    def check(requests, tails, advance, grant):
        counts[grant.bit_length() - 1] += 1

    dut = TwoLevelArbiter(vls=4, entries=2, pointer=pointer)
    play(dut, [(0b1111, 0, 1)] * 240, check, high=[(0, 1), (1, 2)], low=[(2, 3), (3, 1)], limit=limit)
    low = 0 if limit == NO_LIMIT else 240 // (limit + 1)
    assert counts == [(240 - low) // 3, 2 * (240 - low) // 3, 3 * low // 4, low // 4]


@pytest.mark.parametrize("pointer", POINTERS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_wait_is_never_longer_than_the_bound(pointer, data):
    vls = 4
    high, low, limit = data.draw(tables(vls, 4, st.integers(0, 4)))
    patient = data.draw(st.integers(0, vls - 1))
    bound = TwoLevelArbiter.wait_bound(patient, high=high, low=low, limit=limit)
    if bound is None or not high + low:
        return
    waited = 0

    def check(requests, tails, advance, grant):
        nonlocal waited
        waited = 0 if advance and grant >> patient & 1 else waited + advance
        assert waited <= bound

    stimulus = [(r | 1 << patient, t, a) for r, t, a in data.draw(traffic(vls, 200))]
    dut = TwoLevelArbiter(vls=vls, entries=4, pointer=pointer)
    play(dut, stimulus, check, high=high, low=low, limit=limit)


def test_wait_bound_in_numbers():
    bound = TwoLevelArbiter.wait_bound
    three = [(0, 2), (1, 3), (2, 4)]
    assert bound(0, high=three, low=[]) == 14
    assert bound(0, high=[(1, 1), (0, 2), (1, 2), (2, 4), (2, 0)], low=[]) == 14
    assert bound(0, high=three, low=[(2, 1)], limit=4) == 14 + 4
    assert bound(2, high=three[:2], low=[(2, 1)], limit=4) == 5 - 1
    assert bound(2, high=three[:2], low=[(2, 1)]) is None
    assert bound(1, high=[(0, 2)], low=[(2, 1)]) is None
    # Each entry may end in the midst of a packet.
    assert bound(0, high=[], low=[(1, 3), (0, 1), (1, 2)], unit=4, packet_flits=5) == 2 * (12 + 4 + 8 + 4)


def order_of(dut, stimulus, **tables):
    """The VLs that go, cycle by cycle."""
    order = []
    play(dut, stimulus, lambda *cycle: order.append(cycle[-1].bit_length() - 1), **tables)
    return order


def everyone(table):
    return sum(1 << vl for vl in {vl for vl, _ in table})


@pytest.mark.parametrize(
    ("pointer", "table", "frame"),
    [
        ("slow", [(0, 4), (1, 4), (0, 4), (1, 4)], "0000111100001111"),
        ("slow", [(0, 8), (1, 8)], "0000000011111111"),
        ("slow", [(0, 2), (1, 1), (0, 2), (2, 1)], "001002"),
        ("slow", [(2, 1), (0, 0), (0, 3), (0, 1), (1, 1), (2, 2)], "20000122"),
        ("fast", [(0, 2), (1, 1), (0, 2), (2, 1)], "010200"),
        ("fast", [(0, 4), (1, 4), (0, 4), (1, 4)], "0101" * 4),
        ("fast", [(0, 8), (1, 8)], "01" * 8),
        ("fast", [(2, 1), (0, 3), (1, 1)], "20100"),
        ("fast", [(0, 1), (1, 3), (0, 3), (1, 1)], "01010101"),
    ],
)
@pytest.mark.parametrize("high", [False, True])
def test_entries_are_served_in_the_order_of_the_table(pointer, table, frame, high):
    """The order is kept frame by frame, from the first flit on, with VLs that always ask."""
    dut = TwoLevelArbiter(vls=3, entries=6, pointer=pointer)
    tables = {"high": table} if high else {"low": table}
    order = order_of(dut, [(everyone(table), 0, 1)] * (3 * len(frame)), **tables)
    assert "".join(map(str, order)) == frame * 3


def test_64_entries_are_served_in_order():
    """The table is the whole of the largest one, for 16 VLs without the control VL, in both levels."""
    table = [(vl * 7 % 15, 1 + vl % 3) for vl in range(64)]
    dut = TwoLevelArbiter(vls=16, entries=64, pointer="slow")
    frame = [vl for vl, weight in table for _ in range(weight)]
    order = order_of(dut, [(0x7FFF, 0, 1)] * (2 * len(frame)), high=table, low=[(3, 1)])
    assert order == 2 * frame


def test_idle_vls_are_passed_over_and_the_order_of_the_others_stays():
    table = [(0, 2), (1, 3), (2, 1), (0, 1), (1, 1), (3, 2)]
    for active in range(1, 16):
        dut = TwoLevelArbiter(vls=4, entries=6, pointer="slow")
        frame = [vl for vl, weight in table for _ in range(weight) if active >> vl & 1]
        assert order_of(dut, [(active, 0, 1)] * (2 * len(frame)), low=table) == 2 * frame


def test_an_entry_that_was_passed_over_has_its_turn_when_its_vl_comes_back():
    """VL 0 is away until the second flit of VL 1's first entry.

    When that entry's turn is over VL 0 has the turn that it was passed over with. From then on the order is that of the
    table.
    """
    table = [(0, 2), (1, 3), (0, 2), (1, 3)]
    dut = TwoLevelArbiter(vls=2, entries=4, pointer="slow")
    order = order_of(dut, [(0b10, 0, 1)] * 2 + [(0b11, 0, 1)] * 18, low=table)
    assert "".join(map(str, order)) == "111" + "0000" + "111" + "0011100111"
    # An interrupted turn goes on where it stood.
    dut = TwoLevelArbiter(vls=2, entries=4, pointer="slow")
    order = order_of(dut, [(0b11, 0, 1)] + [(0b10, 0, 1)] * 2 + [(0b11, 0, 1)] * 7, low=table)
    assert "".join(map(str, order)) == "0" + "111" + "0" + "00" + "111"


def test_iba_entries_are_charged_one_by_one():
    """Weights of 3 are 192 bytes: two packets of 5 flits of 16 bytes, 128 bytes each when charged, at each entry."""
    position = [0, 0]
    order = []

    def stimulus():
        for _ in range(2 * 40):
            yield 0b11, sum((position[v] == 4) << v for v in range(2)), 1

    def check(requests, tails, advance, grant):
        vl = grant.bit_length() - 1
        order.append(vl)
        position[vl] = (position[vl] + 1) % 5

    dut = TwoLevelArbiter(vls=2, entries=4, pointer="slow", units="iba", flit_bytes=16)
    play(dut, stimulus(), check, low=[(0, 3), (1, 3), (0, 3), (1, 3)])
    assert order == 4 * ([0] * 10 + [1] * 10)


@pytest.mark.parametrize(("pointer", "units"), [("fast", "flit"), ("slow", "flit"), ("slow", "iba")])
@pytest.mark.parametrize("stuck", ["never goes", "frame without end"])
def test_tables_take_effect_within_the_bound_whatever_the_grants_do(pointer, units, stuck):
    """A grant is never used, and a packet never ends. `ready` is back after `wait_bound` cycles, not before, and then
    the new tables act."""
    if (stuck, units) == ("frame without end", "flit"):
        stuck = "one in 500"
    dut = TwoLevelArbiter(vls=2, entries=2, pointer=pointer, units=units)
    goes = {
        "never goes": lambda c: 0,
        "one in 500": lambda c: c % 500 == 7,
        "frame without end": lambda c: 1,
    }[stuck]
    bound = TableSignature.wait_bound(vls=2, entries=2)
    assert bound == 4 + 1 + 4 + 512
    waited = []

    async def bench(ctx):
        await write_tables(ctx, dut, [], [(0, 200), (1, 200)], NO_LIMIT)
        ctx.set(dut.requests, 0b11)
        ctx.set(dut.advance, 1)
        await ctx.tick()  # a frame has begun
        ctx.set(dut.advance, 0)
        for entry, vl in enumerate((1, 0)):
            for name, value in (("entry", entry), ("vl", vl), ("weight", 200), ("write", 1)):
                ctx.set(getattr(dut.table, name), value)
            await ctx.tick()
        ctx.set(dut.table.write, 0)
        for cycle in range(bound + 2):
            ctx.set(dut.advance, goes(cycle))
            ctx.set(dut.table.commit, cycle == 0)
            waited.append(ctx.get(dut.table.ready))
            await ctx.tick()
        assert waited == [1, *[0] * bound, 1]
        # A frame of the new tables begins at the first entry; a packet that was begun goes on.
        assert ctx.get(dut.grant) == (0b01 if units == "iba" else 0b10)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("units", ["flit", "iba"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_tables_rewritten_under_load_act_at_a_frames_start(units, data):
    """Tables are written and committed while traffic flows. The order is flit by flit the model's, so nothing in
    between acts."""
    vls, entries = 4, 4
    weights = st.integers(0, 5 if units == "flit" else 2)
    pointer = data.draw(st.sampled_from(POINTERS))
    old, new = data.draw(tables(vls, entries, weights)), data.draw(tables(vls, entries, weights))
    load = data.draw(traffic(vls, 150))
    dut = TwoLevelArbiter(vls=vls, entries=entries, pointer=pointer, units=units)
    model = model_of(dut, control=False)
    # Entries that the second set does not name keep what the first wrote.
    both = [[*late, *early[len(late) :]] for late, early in zip(new[:2], old[:2], strict=True)]
    if old[0] or old[1]:
        model.load(*old)
    writes = [
        {"write": 1, "high": 1 - side, "entry": entry, "vl": vl, "weight": weight}
        for side in range(2)
        for entry, (vl, weight) in enumerate(new[side])
    ]
    commit_at = 10 + len(writes)
    load = [(r or 1, t, a) for r, t, a in load * 3][: commit_at + ready_cycles(vls, entries) + 60]
    stimulus = [
        (
            *cycle,
            writes[i - 10]
            if 10 <= i < commit_at
            else {"commit": 1, "limit": new[2]}
            if i == commit_at
            else {},
        )
        for i, cycle in enumerate(load)
    ]
    cycle = 0

    def check(requests, tails, advance, grant):
        nonlocal cycle
        if cycle == commit_at + ready_cycles(vls, entries):
            model.pending = (*both, new[2])
        assert grant == 1 << model.grant(requests, tails)
        model.go(requests, tails, advance)
        cycle += 1

    if not (old[0] or old[1]):
        stimulus = [(0, 0, 0)] * (2 * entries) + stimulus  # the wipe after reset
        cycle = -2 * entries
        inner = check

        def check(requests, tails, advance, grant):
            nonlocal cycle
            if cycle < 0:
                cycle += 1
            else:
                inner(requests, tails, advance, grant)

    play(dut, stimulus, check, high=old[0], low=old[1], limit=old[2])


def test_writes_are_taken_only_when_ready():
    dut = TwoLevelArbiter(vls=2, entries=2)

    async def bench(ctx):
        ready = []
        for _ in range(4 + 3):
            ready.append(ctx.get(dut.table.ready))
            await ctx.tick()
        assert ready == [0] * 4 + [1] * 3
        ctx.set(dut.table.commit, 1)
        await ctx.tick()
        ctx.set(dut.table.commit, 0)
        for _ in range(ready_cycles(2, 2)):
            assert ctx.get(dut.table.ready) == 0
            await ctx.tick()
        assert ctx.get(dut.table.ready) == 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_iba_units_are_charged_by_the_packet():
    """With 16-byte flits a weight of 3 is 12 flits. Packets of 5 flits are charged 8, so two go (the second beyond the
    weight). A packet of 4 is charged 4, so three go. No packet is interrupted."""
    order = []
    lengths, position = [5, 4], [0, 0]

    def stimulus():
        for _ in range(2 * (10 + 12)):
            yield 0b11, sum((position[v] == lengths[v] - 1) << v for v in range(2)), 1

    def check(requests, tails, advance, grant):
        vl = grant.bit_length() - 1
        order.append(vl)
        position[vl] = (position[vl] + 1) % lengths[vl]

    dut = TwoLevelArbiter(vls=2, entries=2, pointer="slow", units="iba", flit_bytes=16)
    play(dut, stimulus(), check, low=[(0, 3), (1, 3)])
    assert order == 2 * ([0] * 10 + [1] * 12)


def test_iba_limit_is_in_4096_bytes_and_gives_low_a_packet():
    order = []
    position = [0, 0]

    def stimulus():
        for _ in range(2 * 300):
            yield 0b11, sum((position[v] == 39) << v for v in range(2)), 1

    def check(requests, tails, advance, grant):
        vl = grant.bit_length() - 1
        order.append(vl)
        position[vl] = (position[vl] + 1) % 40

    dut = TwoLevelArbiter(vls=2, entries=1, pointer="slow", units="iba", flit_bytes=16)
    play(dut, stimulus(), check, high=[(0, 255)], low=[(1, 1)], limit=1)
    # 4096 bytes are 256 flits: seven packets of 40 flits.
    assert order[:320] == [0] * 280 + [1] * 40


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vls": 0}, "TwoLevelArbiter: vls = 0: 1 to 16"),
        ({"entries": 65}, "TwoLevelArbiter: entries = 65: 1 to 64"),
        ({"control_vl": 4}, "TwoLevelArbiter: control_vl = 4: a VL from 0 to 3, or -1 for none"),
        ({"flit_bytes": 5}, "TwoLevelArbiter: flit_bytes = 5: 4, 8 or 16"),
        ({"pointer": "round"}, "TwoLevelArbiter: pointer = 'round': one of fast, slow"),
        ({"units": "byte"}, "TwoLevelArbiter: units = 'byte': one of flit, iba"),
    ],
)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ConfigError) as error:
        TwoLevelArbiter(**({"vls": 4} | wrong))
    assert str(error.value) == message
