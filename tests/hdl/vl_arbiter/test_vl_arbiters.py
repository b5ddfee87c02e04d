"""Every VL arbiter: the common contract, its model, and its bound on waiting."""

import pytest
from amaranth.hdl import Module
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.vl_arbiter.base import VlArbiter
from lanikai.hdl.vl_arbiter.deficit_round_robin import DeficitRoundRobinVlArbiter
from lanikai.hdl.vl_arbiter.fcfs import FcfsVlArbiter
from lanikai.hdl.vl_arbiter.fixed_priority import FixedPriorityVlArbiter
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from lanikai.hdl.vl_arbiter.round_robin import RoundRobinVlArbiter
from support.hdl.vl_models import (
    ControlFirst,
    DeficitModel,
    FcfsModel,
    FixedPriorityModel,
    RoundRobinModel,
    play,
)

MODELS = {
    "round_robin": RoundRobinModel,
    "fixed_priority": FixedPriorityModel,
    "fcfs": FcfsModel,
    "fcfs_packet": lambda vls: FcfsModel(vls, by_packet=True),
    "deficit": DeficitModel,
}
"""A model of each arbiter whose tables, if any, do not order entries. The others have theirs in other files."""
BOUNDS = {
    "round_robin": lambda vls, patient, packet: RoundRobinVlArbiter.wait_bound(vls),
    "fixed_priority": lambda vls, patient, packet: FixedPriorityVlArbiter.wait_bound(patient),
    "fcfs": lambda vls, patient, packet: FcfsVlArbiter.wait_bound(vls),
    "fcfs_packet": lambda vls, patient, packet: FcfsVlArbiter.wait_bound(vls, packet_flits=packet),
    "deficit": lambda vls, patient, packet: DeficitRoundRobinVlArbiter.wait_bound(
        patient, quanta=[1] * vls, packet_flits=packet
    ),
}
"""The longest wait of VL `patient` among `vls`, in flits of others, with packets of `packet` flits; or None."""


@st.composite
def traffic(draw, vls):
    random = draw(st.randoms(use_true_random=False))
    busy = random.choice([0.2, 0.6, 0.95])
    return [
        (
            sum((random.random() < busy) << v for v in range(vls)),
            random.getrandbits(vls),
            random.random() < 0.8,
        )
        for _ in range(80)
    ]


@pytest.mark.parametrize("name", sorted(VL_ARBITERS))
@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.data())
def test_one_grant_only_to_a_requester_and_control_first(name, data):
    vls = data.draw(st.sampled_from([1, 2, 5, 16]))
    control = data.draw(st.integers(-1, vls - 1))
    stimulus = data.draw(traffic(vls))

    def check(requests, tails, advance, grant):
        assert grant & (grant - 1) == 0
        assert grant & ~requests == 0
        assert bool(grant) == bool(requests)
        if control >= 0 and requests >> control & 1:
            assert grant == 1 << control

    play(make_vl_arbiter(name, vls=vls, control_vl=control, entries=4), stimulus, check)


def without(lines):
    """The registered arbiters that need a line in `lines` and have none."""
    return sorted(
        name
        for name, one in VL_ARBITERS.items()
        if name not in lines and (one.sparse_tables or not one.has_tables)
    )


def test_every_arbiter_has_a_model_and_a_bound():
    assert without(MODELS) == without(BOUNDS) == []
    for name, one in VL_ARBITERS.items():
        assert callable(getattr(one, "wait_bound", None)), f"{name} has no wait_bound"


def test_an_arbiter_without_a_model_is_found(monkeypatch):
    class Other(RoundRobinVlArbiter):
        """Round robin by another name."""

    monkeypatch.setitem(VL_ARBITERS, "other", Other)
    assert without(MODELS) == without(BOUNDS) == ["other"]


@pytest.mark.parametrize("name", sorted(MODELS))
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_arbiter_is_its_model(name, data):
    vls = data.draw(st.sampled_from([1, 2, 5, 16]))
    stimulus = data.draw(traffic(vls))
    dut = make_vl_arbiter(name, vls=vls)
    model = ControlFirst(MODELS[name](vls), dut.control_vl)

    def check(requests, tails, advance, grant):
        vl = model.grant(requests, tails)
        assert grant == (0 if vl is None else 1 << vl)
        model.go(requests, tails, advance)

    play(dut, stimulus, check)


@pytest.mark.parametrize("name", sorted(MODELS))
@settings(max_examples=3, deadline=None, derandomize=True)
@given(traffic(4))
def test_after_a_reset_in_the_midst_of_work_all_is_as_at_first(name, stimulus):
    """Memories keep what they have."""
    dut, seen = make_vl_arbiter(name, vls=4), []
    play(dut, stimulus + stimulus, lambda *cycle: seen.append(cycle[-1]), reset_at=len(stimulus) - 1)
    assert seen[: len(stimulus)] == seen[len(stimulus) :]


def quanta_writes(quanta):
    return [(0, 0, 0, {"write": 1, "vl": vl, "weight": quantum}) for vl, quantum in enumerate(quanta)]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 12), min_size=4, max_size=4), st.data())
def test_deficit_round_robin_is_its_model_with_quanta(quanta, data):
    stimulus = quanta_writes(quanta) + data.draw(traffic(4))
    model = DeficitModel(4, quanta)

    def check(requests, tails, advance, grant):
        vl = model.grant(requests, tails)
        assert grant == (0 if vl is None else 1 << vl)
        model.go(requests, tails, advance)

    play(DeficitRoundRobinVlArbiter(vls=4), stimulus, check)


def test_a_row_that_is_not_used_leaves_the_quantum():
    """An agent fills a table up with rows of weight 0, which name VL 0."""
    seen = []
    unused = (0, 0, 0, {"write": 1, "vl": 0, "weight": 0})
    stimulus = [*quanta_writes([3, 2]), unused, *[(0b11, 0b11, 1)] * 10]
    play(DeficitRoundRobinVlArbiter(vls=2), stimulus, lambda *cycle: seen.append(cycle[-1]))
    assert seen[3:] == [1, 1, 1, 2, 2] * 2


@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.data())
def test_deficit_round_robin_shares_follow_quanta_whatever_the_packets(data):
    """The shares are within 1% of the quanta over the rounds that are played, for packets of different lengths."""
    quanta = data.draw(st.lists(st.integers(16, 24), min_size=3, max_size=3))
    lengths = data.draw(st.lists(st.integers(1, 8), min_size=3, max_size=3))
    counts, position = [0] * 3, [0] * 3
    rounds = 50

    def stimulus():
        yield from quanta_writes(quanta)
        for _ in range(rounds * sum(quanta)):
            yield 0b111, sum((position[v] == lengths[v] - 1) << v for v in range(3)), 1

    def check(requests, tails, advance, grant):
        if grant:
            vl = grant.bit_length() - 1
            counts[vl] += 1
            position[vl] = (position[vl] + 1) % lengths[vl]

    play(DeficitRoundRobinVlArbiter(vls=3), stimulus(), check)
    for v in range(3):
        assert abs(counts[v] - rounds * quanta[v]) <= 0.01 * rounds * quanta[v]


@pytest.mark.parametrize("name", sorted(BOUNDS))
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_wait_is_never_longer_than_the_bound(name, data):
    """Packets of 3 flits; others come and go, one VL keeps asking."""
    vls, packet = 4, 3
    patient = data.draw(st.integers(0, vls - 1))
    bound = BOUNDS[name](vls, patient, packet)
    if bound is None:
        return
    base = data.draw(traffic(vls))
    position, waited = [0] * vls, 0

    def stimulus():
        for requests, _, advance in base * 2:
            tails = sum((position[v] == packet - 1) << v for v in range(vls))
            yield requests | 1 << patient, tails, advance

    def check(requests, tails, advance, grant):
        nonlocal waited
        if advance:
            vl = grant.bit_length() - 1
            position[vl] = (position[vl] + 1) % packet
            waited = 0 if vl == patient else waited + 1
        assert waited <= bound

    play(make_vl_arbiter(name, vls=vls), stimulus(), check)


def test_new_arbiter_is_one_class_and_one_line(monkeypatch):
    class Highest(VlArbiter):
        def pick(self, m: Module, requests, tails, grant, advance) -> None:
            for v in range(self.vls):
                with m.If(requests[v]):
                    m.d.comb += grant.eq(1 << v)

    monkeypatch.setitem(VL_ARBITERS, "highest", Highest)

    def check(requests, tails, advance, grant):
        assert grant == (1 << requests.bit_length() - 1 if requests else 0)

    play(make_vl_arbiter("highest", vls=4), [(r, 0, 1) for r in range(16)], check)


def test_unknown_arbiter_is_refused_with_the_valid_ones():
    with pytest.raises(ConfigError) as error:
        make_vl_arbiter("no_such_arbiter", vls=2)
    assert str(error.value) == f"vl_arbiter = 'no_such_arbiter': one of {', '.join(sorted(VL_ARBITERS))}"
