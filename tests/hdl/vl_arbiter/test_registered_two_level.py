# amaranth: UnusedElaboratable=no
"""The table arbiter with registers in its decision: the model's choices, a flit in five cycles, and nothing lost."""

import random
from itertools import pairwise

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.vl_arbiter.base import NO_LIMIT
from lanikai.hdl.vl_arbiter.registered_two_level import DECISION_CYCLES, RegisteredTwoLevelArbiter
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.hdl.vl_models import ControlFirst, TwoLevelModel, write_tables

POINTERS = ("fast", "slow")


class Play:
    """The arbiter with the model beside it: each decision is the model's for the requests that were looked at."""

    def __init__(self, dut, *, high=(), low=(), limit=NO_LIMIT):
        self.dut = dut
        self.model = TwoLevelModel(dut.vls, pointer=dut.pointer)
        self.chooser = ControlFirst(self.model, dut.control_vl) if dut.control_vl >= 0 else self.model
        self.tables = high, low, limit
        self.history = []
        self.sample = None
        self.order = []  # (cycle, VL) of each flit
        self.dropped = 0
        self.gone = 0  # the VL whose flit went in the cycle before

    def run(self, script):
        async def bench(ctx):
            self.ctx = ctx
            high, low, limit = self.tables
            if high or low:
                await write_tables(ctx, self.dut, high, low, limit)
                self.model.load(high, low, limit)
            await script(self)

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    async def cycle(self, requests, go=True):
        """One cycle in which these VLs ask; a flit goes if the decision stands and `go` is set.

        Requests that have fallen since the cycle before, and not by a flit, are told by `drop`.
        """
        ctx, dut = self.ctx, self.dut
        drop = bool((self.history or [0])[-1] & ~requests & ~self.gone)
        self.gone = 0
        ctx.set(dut.requests, requests)
        ctx.set(dut.drop, drop)
        self.history.append(requests)
        went = False
        if ctx.get(dut.decided):
            if self.sample is None:
                self.sample = self.history[-DECISION_CYCLES]
            grant, vl = ctx.get(dut.grant), self.chooser.grant(self.sample, 0)
            assert vl is not None and grant == 1 << vl
            if drop:
                self.dropped += 1
                self.sample = None
            elif go:
                went = True
                self.gone = grant
                self.order.append((len(self.history), vl))
        else:
            assert self.sample is None
        ctx.set(dut.advance, went)
        await ctx.tick()
        ctx.set(dut.advance, 0)
        if went:
            self.chooser.go(self.sample, 0, 1)
            self.sample = None


def random_table(rng, vls, entries):
    return [(rng.randrange(vls), rng.randint(0, 4)) for _ in range(rng.randint(0, entries))]


@pytest.mark.parametrize("pointer", POINTERS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_each_decision_is_that_of_the_model(pointer, seed):
    rng = random.Random(seed)
    vls, entries, control = rng.choice(
        [(1, 1, -1), (2, 2, -1), (3, 4, 2), (4, 4, -1), (5, 3, 0), (16, 8, 15)]
    )
    dut = RegisteredTwoLevelArbiter(vls=vls, entries=entries, pointer=pointer, control_vl=control)
    play = Play(
        dut,
        high=random_table(rng, vls, entries),
        low=random_table(rng, vls, entries),
        limit=rng.choice([0, 1, 2, 3, NO_LIMIT]),
    )

    async def script(p):
        requests = 0
        for _ in range(500):
            if rng.random() < 0.1:
                requests = rng.choice([0, rng.getrandbits(vls), (1 << vls) - 1])
            await p.cycle(requests, rng.random() < 0.6)

    play.run(script)
    assert len(play.order) > 20


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("stuck", [False, True], ids=["at a frame's end", "overdue"])
def test_tables_that_are_rewritten_under_load_take_effect_between_two_flits(pointer, stuck):
    """They do at the end of a frame, or when they are overdue as nothing goes. Nothing is charged to the wrong ones."""
    rng = random.Random(1)
    dut = RegisteredTwoLevelArbiter(vls=4, entries=2, pointer=pointer)
    play = Play(dut, high=[(0, 3), (1, 2)], low=[(2, 1)], limit=2)
    frames_ended = 0

    async def script(p):
        nonlocal frames_ended
        table = dut.table
        for _ in range(3 if stuck else 12):
            fresh = [(rng.randrange(4), rng.randint(1, 4)) for _ in range(4)]
            for number, (vl, weight) in enumerate(fresh):
                for name, value in {
                    "write": 1,
                    "high": number // 2,
                    "entry": number % 2,
                    "vl": vl,
                    "weight": weight,
                }.items():
                    p.ctx.set(getattr(table, name), value)
                assert p.ctx.get(table.ready)
                await p.cycle(0b1111)
            p.ctx.set(table.write, 0)
            p.ctx.set(table.limit, 1)
            p.ctx.set(table.commit, 1)
            await p.cycle(0b1111)
            p.ctx.set(table.commit, 0)
            waited = 0
            while True:
                begins = p.model.look(0b1111)[-1] == "frame"
                went = len(p.order)
                await p.cycle(0b1111, not stuck)
                waited += 1
                if p.ctx.get(table.ready):
                    break
                bound = table.signature.wait_bound(vls=4, entries=2) + DECISION_CYCLES
                assert waited < bound
            if begins:
                frames_ended += 1
            assert begins or stuck
            if len(p.order) == went:
                p.sample = None  # that decision was about the old tables
            p.model.load(fresh[2:], fresh[:2], 1)
            for _ in range(40):
                await p.cycle(0b1111)

    play.run(script)
    assert frames_ended >= (0 if stuck else 12)


@pytest.mark.parametrize(("vls", "standing"), [(2, 0b11), (16, 0xFFFF), (16, 0b100)])
def test_a_flit_goes_in_every_five_cycles_and_the_first_after_four(vls, standing):
    play = Play(RegisteredTwoLevelArbiter(vls=vls, entries=1))

    async def script(p):
        for _ in range(7):
            await p.cycle(0)
        for _ in range(200):
            await p.cycle(standing)

    play.run(script)
    cycles = [cycle for cycle, _ in play.order]
    assert cycles[0] == 7 + DECISION_CYCLES
    assert {after - before for before, after in pairwise(cycles)} == {DECISION_CYCLES}


@pytest.mark.parametrize("pointer", POINTERS)
def test_shares_are_exact_and_waits_bounded(pointer):
    weights = [1, 2, 5, 8]
    high = list(enumerate(weights))
    play = Play(RegisteredTwoLevelArbiter(vls=4, entries=4, pointer=pointer), high=high)

    async def script(p):
        for _ in range(16 * 10 * DECISION_CYCLES + 2):
            await p.cycle(0b1111)

    play.run(script)
    served = [vl for _, vl in play.order][:160]
    for vl, weight in high:
        assert served.count(vl) == 10 * weight
        turns = [i for i, one in enumerate(served) if one == vl]
        longest = max(after - before - 1 for before, after in pairwise(turns))
        assert longest <= TwoLevelArbiter.wait_bound(vl, high=high, low=[])


def test_a_decision_is_given_up_when_requests_have_fallen():
    play = Play(RegisteredTwoLevelArbiter(vls=3, entries=3))

    async def script(p):
        for turn in range(20):
            for _ in range(DECISION_CYCLES):
                await p.cycle(1 << turn % 3, False)
            for _ in range(2 * DECISION_CYCLES):
                await p.cycle(1 << (turn + 1) % 3)

    play.run(script)
    assert play.dropped == 20 and len(play.order) >= 20


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vls": 17}, "vls = 17: 1 to 16"),
        ({"vls": 4, "control_vl": 4}, "control_vl = 4: a VL from 0 to 3, or -1 for none"),
        ({"vls": 4, "entries": 65}, "entries = 65: 1 to 64"),
        ({"vls": 4, "pointer": "still"}, "pointer = 'still': one of fast, slow"),
    ],
)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ConfigError) as caught:
        RegisteredTwoLevelArbiter(**wrong)
    assert str(caught.value) == f"RegisteredTwoLevelArbiter: {message}"
