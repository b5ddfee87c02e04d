"""The admission criteria (gulati-thesis-2001 3.3.1) against a plain model, and the counters."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import NicConfig, RouterConfig, preset
from lanikai.hdl.network import chain, single_router
from lanikai.sim.manager.capacity import ClusterCapacity, cluster_capacity, node_capacity
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.ledger import Ledger, Where
from support.sim.plain_manager import Plain, largest

NIC = preset(NicConfig, "lanai4")
ROUTER = preset(RouterConfig, "lanai4")
POINTS = [(16_000_000, 70_000_000), (64_000_000, 44_000_000), (85_333_333, 20_000_000)]
PEAK = 85_333_333
NETWORKS = {
    "one switch": single_router(4, router=ROUTER.replace(ports=4)),
    "a row of switches": chain(4, router=ROUTER.replace(ports=3)),
}
PORT = 100_000_000
"""Capacity of a port: less than a link, so that a port between switches is the place that refuses often enough."""

FLATTEST = min((y0 - y1) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(POINTS) if y0 > y1)
"""Least fall of the curve: bytes a second out of a node for each one into it."""
ROUNDING = {Where.SOURCE: 2, Where.PORT: 2, Where.TARGET: 1 + 2 / FLATTEST}
"""Distance of the ledger's whole bytes a second from the plain model's at most.

The ledger rounds down twice, the curve and what turns cost: less than 2 of what goes out. What may come in is off by
that over the curve's fall, and by 1 as it is whole.
"""


def capacity(network) -> ClusterCapacity:
    full = cluster_capacity(network, NIC, node_capacity(NIC, curve=POINTS))
    return ClusterCapacity(nodes=full.nodes, node=full.node, port=PORT, path=full.path)


def plain(network) -> Plain:
    return Plain(network, [(0, PEAK), *POINTS], 78e6, PORT)


def flow(source: int, target: int, port: int = 0) -> FlowId:
    return FlowId(source, port, target, port)


flows = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)).filter(
    lambda one: one[0] != one[2]
)
steps = st.lists(
    st.tuples(
        flows,
        st.one_of(st.just(0), st.integers(1, PEAK), st.sampled_from([PEAK, 39_000_000, 20_000_000])),
        st.integers(0, 2),
    ),
    max_size=24,
)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_order_of_requests_breaks_a_criterion(network, data):
    """A rate of 0 is a release (to best-effort with a weight, or to nothing). A request is admitted just when the plain
    model finds room for it. A refusal changes nothing and says how much is left at the tightest place."""
    ledger, model = Ledger(capacity(network)), plain(network)
    held: dict[FlowId, int] = {}
    for (source, port, target), rate, weight in data.draw(steps):
        one = flow(source, target, port)
        if not rate:
            ledger.stand(one, weight)
            held.pop(one, None)
            continue
        if one in held:
            continue
        before = ledger.counters()
        refusal = ledger.check(one, rate)
        assert ledger.counters() == before
        if refusal is None:
            ledger.admit(one, rate)
            held[one] = rate
            assert model.fits(held)
            continue
        assert not model.fits(held | {one: rate}, slack=-2.0), refusal
        places = {
            Where.SOURCE: [source],
            Where.PORT: [(refusal.place, refusal.port)],
            Where.TARGET: [target],
        }[refusal.where]
        assert refusal.where is Where.PORT or refusal.place in places
        left = largest(lambda most, one=one, at=places[0]: model.excess(held | {one: most})[at] <= 0, PEAK)
        assert abs(refusal.left - left) <= ROUNDING[refusal.where] and refusal.left < rate
    assert ledger.premium == held
    for one in [*held, *ledger.best_effort]:
        ledger.stand(one, 0)
    assert ledger.counters() == {} and not ledger.premium and not ledger.best_effort


@pytest.mark.parametrize(
    ("held", "asked", "where", "place", "left"),
    [
        # The source: two flows share 78 MB/s, however much one alone may have.
        ([(0, 1, 40)], (0, 2, 39), Where.SOURCE, 0, 38),
        # A switch output port: the one between switches 0 and 1 carries two nodes' flows... to other nodes.
        ([(0, 2, 60)], (1, 2, 45), Where.TARGET, 2, 85.333333 - 60),
        # The target: what it sends bounds what may come in (the curve: 70 out beside 16 in).
        ([(2, 1, 70)], (0, 2, 17), Where.TARGET, 2, 16),
        # The source's own incoming traffic counts: 16 in leave 70.
        ([(3, 0, 16)], (0, 1, 71), Where.SOURCE, 0, 70),
    ],
)
def test_the_place_that_refuses_is_named_with_what_is_left(held, asked, where, place, left):
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    for number, (source, target, mb) in enumerate(held):
        assert ledger.check(flow(source, target, number), mb * 1_000_000) is None
        ledger.admit(flow(source, target, number), mb * 1_000_000)
    source, target, mb = asked
    refusal = ledger.check(flow(source, target, 7), mb * 1_000_000)
    assert (refusal.where, refusal.place) == (where, place)
    assert refusal.left == pytest.approx(left * 1e6, abs=2)
    # Just that much is granted.
    assert ledger.check(flow(source, target, 7), refusal.left) is None
    assert ledger.check(flow(source, target, 7), refusal.left + 1) is not None


def test_a_port_between_switches_refuses():
    """Nodes 0 and 1 send to 2 and 3: all of it crosses port 1 of switch 1."""
    ledger = Ledger(capacity(NETWORKS["a row of switches"]))
    ledger.admit(flow(0, 2), 60_000_000)
    refusal = ledger.check(flow(1, 3), 50_000_000)
    assert (refusal.where, refusal.place, refusal.port, refusal.left) == (Where.PORT, 1, 1, 40_000_000)


def test_every_further_destination_costs_the_source():
    """Four destinations in the worst order leave 4096 bytes every 1584 + 3 * 68 cycles: 75.6 MB/s, not 78."""
    ledger = Ledger(cluster_capacity(single_router(6, router=ROUTER.replace(ports=6)), NIC))
    for target in (1, 2, 3):
        ledger.admit(flow(0, target), 20_000_000)
    assert ledger.check(flow(0, 4), 18_000_000).left == pytest.approx(15_597_000, abs=1000)
    assert ledger.check(flow(0, 3, port=1), 18_000_000) is None


def test_a_flow_that_holds_a_reservation_is_not_admitted_twice():
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    ledger.admit(flow(0, 1), 1)
    with pytest.raises(ValueError, match="flow from port 0 of node 0 to port 0 of node 1 has a reservation"):
        ledger.admit(flow(0, 1), 1)


def test_a_copy_is_another_ledger():
    ledger = Ledger(capacity(NETWORKS["one switch"]))
    ledger.admit(flow(0, 1), 5)
    ledger.stand(flow(0, 2), 3)
    copy = ledger.copy()
    assert copy.counters() == ledger.counters() and copy.held(0) == ledger.held(0)
    copy.stand(flow(0, 1), 0)
    copy.stand(flow(0, 2), 0)
    assert ledger.counters() != {} and ledger.best_effort == {flow(0, 2): 3}
    assert ledger.held(0) == [flow(0, 1), flow(0, 2)] and ledger.held(0, 5) == [] and copy.held(0) == []
