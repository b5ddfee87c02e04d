"""The ledger of a router: sums, weights, limits, refusals, and that what is given back is what was taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.ledger import Reason, RouterLedger, power_units
from lanikai.sim.admission.tables import link_tables, real_time_weights

CONFIG = AdmissionConfig(link_units=100, real_time_vls=(0, 1, 2))
CONNECTIONS = st.lists(
    st.fixed_dictionaries(
        {
            "in_port": st.integers(0, 2),
            "out_port": st.integers(0, 2),
            "vl": st.integers(0, 2),
            "units": st.integers(1, 60),
            "peak": st.integers(60, 200),
        }
    ),
    max_size=12,
)


def state(ledger):
    ports = range(ledger.ports)
    return (
        [ledger.used_word(port) for port in ports],
        [ledger.tables(port, crossbar_input=side) for port in ports for side in (False, True)],
        ledger.power_left,
    )


@given(CONNECTIONS, st.randoms(use_true_random=False), st.sampled_from(["small", "large"]))
def test_what_is_given_back_leaves_everything_as_it_was(connections, chance, frame):
    """Each is added if it fits, and all are taken off in another order. Meanwhile sums are those of plain Python."""
    ledger = RouterLedger(CONFIG.replace(frame=frame), 3, power=150)
    before, held = state(ledger), []
    for one in connections:
        ways = {name: one[name] for name in ("in_port", "out_port", "units")}
        sent = sum(h["units"] for h in held if h["out_port"] == one["out_port"])
        received = sum(h["units"] for h in held if h["in_port"] == one["in_port"])
        power = sum(h["units"] for h in held)
        reason = Reason.NONE
        if max(sent, received) + one["units"] > 100:
            reason = Reason.LINK
        elif power + one["units"] > 150:
            reason = Reason.POWER
        assert ledger.refusal(**ways) is reason
        if reason is Reason.NONE:
            ledger.add(**one)
            held.append(one)
    for port in range(3):
        sent = sum(h["units"] for h in held if h["out_port"] == port)
        received = sum(h["units"] for h in held if h["in_port"] == port)
        assert ledger.used_word(port) == sent | received << 16
    assert ledger.power_left == 150 - sum(h["units"] for h in held)
    chance.shuffle(held)
    for one in held:
        ledger.remove(**one)
    assert state(ledger) == before


@given(st.lists(st.integers(0, 1000), min_size=11, max_size=11), st.sampled_from(["small", "large"]))
def test_weights_are_proportional_to_the_bandwidth_of_their_vl(sums, frame):
    total = sum(sums)
    config = AdmissionConfig(frame=frame, link_units=max(total, 1))
    weights = real_time_weights(config, [*sums, 0, 0, 0, 0])
    flits = {"small": 44, "large": 255 * 54}[frame]
    for units, weight in zip(sums, weights, strict=False):
        share = units * flits / max(total, 1)
        # A flit up or down, and at least one.
        assert (weight == 0) == (units == 0)
        assert weight in (1, pytest.approx(share, abs=1))
    tables = link_tables(config, [*sums, 0, 0, 0, 0], 0)
    assert len(tables.high) <= 64
    assert {vl: sum(w for v, w in tables.high if v == vl) for vl in range(11) if weights[vl]} == {
        vl: weight for vl, weight in enumerate(weights) if weight
    }
    # All others are served in turn.
    assert tables.low == tuple((vl, 1) for vl in range(15) if not weights[vl])


def test_both_ways_together_are_one_bandwidth_if_asked_for():
    """A port that sends 60 has room for 40 that come in; with each way by itself, for 100."""
    for link_sum, room in (("each_way", 100), ("both_ways", 40)):
        ledger = RouterLedger(CONFIG.replace(link_sum=link_sum), 3)
        ledger.add(in_port=0, out_port=1, vl=0, units=60, peak=60)
        assert ledger.refusal(in_port=1, out_port=2, units=room) is Reason.NONE
        assert ledger.refusal(in_port=1, out_port=2, units=room + 1) is Reason.LINK


def test_only_the_large_frame_leaves_the_weights_of_other_vls_alone():
    sums = [100, 200, *[0] * 13]
    more = [100, 300, *[0] * 13]
    small, large = (AdmissionConfig(frame=frame, link_units=1000) for frame in ("small", "large"))
    # 44 flits in 1 : 2, then in 1 : 3.
    assert real_time_weights(small, sums)[:2] == [15, 29]
    assert real_time_weights(small, more)[:2] == [11, 33]
    # 13,770 flits are the whole link's.
    assert real_time_weights(large, sums)[:2] == [1377, 2754]
    assert real_time_weights(large, more)[:2] == [1377, 4131]


@pytest.mark.parametrize(("peak", "limit"), [(0, 1), (50, 2), (90, 10), (99, 100), (100, 255), (400, 255)])
def test_the_limit_of_high_priority_is_the_documents(peak, limit):
    assert link_tables(CONFIG, [0] * 15, peak).limit == limit


def test_a_budget_of_watts_is_whole_units_of_bandwidth():
    """With k = 0.8 of a link of 12.5 million flits a second: 816 of 1020 units, whatever a flit takes."""
    joules, hertz = 126.7e-12, 12.5e6
    budget = {"flit_joules": joules, "flit_hz": hertz, "link_units": 1020}
    assert power_units(watts=joules * hertz * 0.8001, **budget) == 816
    assert power_units(watts=joules * hertz * 0.7999, **budget) == 815
    assert power_units(watts=0, **budget) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"watts": -1}, "power_units: watts = -1: at least 0"),
        ({"flit_joules": 0}, "power_units: flit_joules = 0: above 0"),
        ({"flit_hz": 0}, "power_units: flit_hz = 0: above 0"),
        ({"link_units": 0}, "power_units: link_units = 0: above 0"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        power_units(**{"watts": 1, "flit_joules": 1, "flit_hz": 1, "link_units": 1} | changes)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"admitted_units": 101},
            "AdmissionConfig: admitted_units = 101: at most link_units = 100",
        ),
        (
            {"real_time_vls": (1, 1)},
            "AdmissionConfig: real_time_vls = (1, 1): at least one data VL, 0 to 14, in rising order",
        ),
        (
            {"real_time_vls": (15,)},
            "AdmissionConfig: real_time_vls = (15,): at least one data VL, 0 to 14, in rising order",
        ),
        ({"table_entries": 14}, "AdmissionConfig.table_entries = 14: must be 15 to 64"),
        (
            {"lease_cycles": 400_000},
            "AdmissionConfig: lease_cycles = 400000: at least 500000, (refresh_misses + 2) x refresh_cycles, so that a "
            "source gives up before its lease ends",
        ),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        CONFIG.replace(**changes)
    assert str(error.value) == message
