"""How best-effort flows share: 4.3's rule and weighted max-min, against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.ledger import Ledger
from lanikai.sim.manager.sharing import POLICIES, max_min, set_aside
from plain_model import largest
from test_ledger import NETWORKS, PEAK, capacity, flow, flows, plain

members = st.dictionaries(flows, st.integers(1, 4), min_size=1, max_size=5)
premium = st.lists(st.tuples(flows, st.integers(1, PEAK)), max_size=5)


def filled(network, premium_flows, best_effort) -> Ledger:
    """A ledger with what of the premium flows is admitted, and best-effort flows on ports of their own."""
    ledger = Ledger(capacity(network))
    for (source, port, target), rate in premium_flows:
        one = flow(source, target, port)
        if one not in ledger.premium and ledger.check(one, rate) is None:
            ledger.admit(one, rate)
    for (source, port, target), weight in best_effort.items():
        ledger.stand(flow(source, target, port + 3), weight)
    return ledger


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(premium_flows=premium, best_effort=members)
def test_each_gets_the_least_of_its_fair_parts_of_the_surplus(network, premium_flows, best_effort):
    ledger, model = filled(network, premium_flows, best_effort), plain(network)
    weights = ledger.best_effort

    def at(place, level):
        """Over at a place, with all best-effort flows that touch it at a level times their weight."""
        touching = [
            one
            for one in weights
            if place in (one.source, one.target) or place in network.path(one.source, one.target)
        ]
        # Flows that only the other places touch do not count here.
        rates = ledger.premium | {one: min(PEAK, level * weights[one]) for one in touching}
        return model.excess(rates).get(place, -1.0)

    found = set_aside(ledger)
    for one, weight in weights.items():
        places = [one.source, one.target, *network.path(one.source, one.target)]
        parts = [largest(lambda level, at_=place: at(at_, level) <= 0, PEAK) for place in places]
        wanted = min(PEAK, min(parts) * weight)
        assert wanted - 2 * weight - 2 <= found[one] <= wanted + weight


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(premium_flows=premium, best_effort=members)
def test_by_either_policy_all_is_carried_and_max_min_gives_nobody_less(network, premium_flows, best_effort):
    ledger, model = filled(network, premium_flows, best_effort), plain(network)
    before = ledger.counters()
    found = {name: policy(ledger) for name, policy in POLICIES.items()}
    assert ledger.counters() == before
    for rates in found.values():
        assert rates.keys() == ledger.best_effort.keys()
        assert model.fits(ledger.premium | {one: rate for one, rate in rates.items() if rate})
    for one, rate in found["set_aside"].items():
        assert found["max_min"][one] >= rate - 2 * ledger.best_effort[one]


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(premium_flows=premium, best_effort=members)
def test_max_min_is_max_min(network, premium_flows, best_effort):
    """No flow can have more but at the cost of one that has no more for each unit of its weight: a flow below the
    peak passes a full place where nobody, by weight, has more."""
    ledger, model = filled(network, premium_flows, best_effort), plain(network)
    rates = max_min(ledger)
    weights = ledger.best_effort
    levels = {one: rate / weights[one] for one, rate in rates.items()}
    going = {one: rate for one, rate in rates.items() if rate}
    for one, rate in rates.items():
        if rate + 255 >= PEAK:
            continue
        more = {**going, one: rate + 4 * weights[one] + 1000}
        over = {
            place
            for place, excess in model.excess(ledger.premium | more).items()
            if excess > 0 and place in (one.source, one.target, *network.path(one.source, one.target))
        }
        assert over, f"{one} could have more than {rate}"
        bottleneck = [
            place
            for place in over
            if all(
                levels[other] <= levels[one] + 1000 * len(weights)
                or _spare(other, place, model, ledger, more)
                for other in going
                if place in (other.source, other.target) or place in network.path(other.source, other.target)
            )
        ]
        assert bottleneck or not rate, f"{one} has less than others everywhere"


def _spare(other, place, model, ledger, more) -> bool:
    """Whether `more`, which is too much for a place, were too much if another flow had half as much: then that flow
    holds nobody up (what a node sends does not matter where it can receive no more)."""
    less = {**more, other: more[other] // 2}
    return model.excess(ledger.premium | less).get(place, 0) > 0


def one_sender(weights=(1, 1), rate=0) -> Ledger:
    """Best-effort flows from node 0 to nodes 1 and 2, a premium flow from 3 to 1."""
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    for target, weight in enumerate(weights, 1):
        ledger.stand(flow(0, target), weight)
    if rate:
        ledger.admit(flow(3, 1), rate)
    return ledger


def shares(policy, ledger) -> list[float]:
    return [rate / 1e6 for rate in policy(ledger).values()]


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_published_shares(policy):
    """5.6: one flow has the peak, or what 40 and 20 MB/s leave of 78; two have half of it each."""
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    ledger.stand(flow(0, 1), 1)
    assert shares(policy, ledger) == [pytest.approx(85.333, abs=0.001)]
    ledger.admit(flow(0, 2), 40_000_000)
    assert shares(policy, ledger) == [38.0]
    ledger.admit(flow(0, 3), 20_000_000)
    assert shares(policy, ledger) == [18.0]
    assert shares(policy, one_sender()) == [39.0, 39.0]
    assert shares(policy, one_sender(weights=(3, 1))) == [58.5, 19.5]


def test_what_a_held_flow_leaves_goes_to_the_others_by_max_min_alone():
    """4.3's note: its arbitration is sub-optimal. Node 1 leaves the first flow 15.33 MB/s; of the 39 that node 0 sets
    aside for it 23.67 are nobody's, or the other flow's."""
    ledger = one_sender(rate=70_000_000)
    assert shares(set_aside, ledger) == [pytest.approx(15.333, abs=0.001), 39.0]
    assert shares(max_min, ledger) == [pytest.approx(15.333, abs=0.001), pytest.approx(62.667, abs=0.001)]


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_where_nothing_is_left_a_flow_is_parked(policy):
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    ledger.admit(flow(0, 1), 80_000_000)  # alone: with a second flow node 0 would have 78
    ledger.stand(flow(0, 2), 1)
    ledger.stand(flow(3, 2), 1)
    found = policy(ledger)
    assert found[flow(0, 2)] == 0 and found[flow(3, 2)] > 40_000_000


def test_no_best_effort_flow_no_shares():
    assert set_aside(Ledger(capacity(NETWORKS["one switch"]))) == {}
    assert max_min(Ledger(capacity(NETWORKS["one switch"]))) == {}
    assert isinstance(next(iter(set_aside(one_sender()))), FlowId)
