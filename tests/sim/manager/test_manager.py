"""The managers' calls from a program's side: grants, refusals, releases; bad input; nothing left over."""

from __future__ import annotations

import pytest
from lanikai.sim.bandwidth.errors import (
    AlreadyHeldError,
    BadRequestError,
    BandwidthError,
    NotHeldError,
    RefusedError,
)
from lanikai.sim.host.errors import ClosedPortError
from lanikai.sim.manager.flows import FlowId
from support.sim.fake_gm import FakeCluster

LONGEST = (1 << 30) - 1
LONG = 200_000
"""Cycles in which every message that is under way arrives."""


def idts(cluster: FakeCluster, node: int) -> dict:
    """IDT by (port, target node) of a node's flows."""
    return {(port, target): idt for (port, target, _, _), idt in cluster.gms[node].idts.items()}


async def fails(kind, message, call, cluster) -> None:
    """Check that the call fails with exactly this, and changes nothing anywhere."""
    before = (
        cluster.master.ledger.counters(),
        dict(cluster.master.shares),
        [dict(g.idts) for g in cluster.gms],
    )
    with pytest.raises(kind) as caught:
        await call
    assert str(caught.value) == message and type(caught.value) is kind
    await cluster.world.sleep(LONG)
    after = cluster.master.ledger.counters(), dict(cluster.master.shares), [dict(g.idts) for g in cluster.gms]
    assert after == before


def test_the_life_of_a_reservation():
    async def main(cluster):
        client = await cluster.client(1)
        grant = await client.request(2, 0, 40.0)
        assert grant.flow == FlowId(1, 0, 2, 0) and grant.mb_per_s == 40.0 and grant.idt_ticks == 204
        assert client.rate(2, 0) == 40.0 and idts(cluster, 1) == {(0, 2): 204}
        assert cluster.master.ledger.counters() == {
            "incoming": {2: 40_000_000},
            "outgoing": {1: 40_000_000},
            "flows": {1: 1},
            "targets": {(1, 2): 1},
            "ports": {(0, 2): 40_000_000},
        }
        assert await client.release(grant) is None
        assert client.rate(2, 0) is None and idts(cluster, 1) == {(0, 2): 0}
        assert cluster.master.ledger.counters() == {}

    FakeCluster().run(main)


@pytest.mark.parametrize("master", [0, 3])
def test_best_effort_flows_follow_what_premium_flows_leave(master):
    """5.6's first experiment, as the manager decides it: peak, 38, 18, and back. It holds from the master's own node,
    too."""

    async def main(cluster):
        best, first, second = [await cluster.client(0, port) for port in range(3)]
        member = await best.join(1, 0)
        assert best.rate(1, 0) == pytest.approx(85.333, abs=0.001) and idts(cluster, 0) == {(0, 1): 0}
        one = await first.request(2, 0, 40.0)
        assert best.rate(1, 0) == 38.0 and idts(cluster, 0) == {(0, 1): 216, (1, 2): 204}
        two = await second.request(3, 0, 20.0)
        assert best.rate(1, 0) == 18.0 and idts(cluster, 0)[0, 1] == 456
        await first.release(one)
        await cluster.world.sleep(LONG)
        assert best.rate(1, 0) == 58.0
        await second.release(two)
        await cluster.world.sleep(LONG)
        assert best.rate(1, 0) == pytest.approx(85.333, abs=0.001) and idts(cluster, 0)[0, 1] == 0
        await best.leave(member)
        assert best.rate(1, 0) is None and cluster.master.ledger.counters() == {}
        assert cluster.master.shares == {}

    FakeCluster(master=master).run(main)


def test_a_premium_flow_is_granted_only_when_best_effort_flows_of_other_nodes_are_slow():
    """A best-effort flow goes into the node of the premium flow. Its manager has set the IDT before the grant
    arrives."""

    async def main(cluster):
        best, premium = await cluster.client(3), await cluster.client(1)
        await best.join(2, 0)
        assert idts(cluster, 3) == {(0, 2): 0}
        await premium.request(2, 1, 80.0)
        # Node 2 takes 85.33 MB/s: 5.33 are left.
        assert idts(cluster, 3) == {(0, 2): 1537}

    FakeCluster().run(main)


def test_a_refusal_names_the_place_and_what_is_left_and_changes_nothing():
    async def main(cluster):
        client, other = await cluster.client(0), await cluster.client(1)
        await client.request(2, 0, 60.0)
        await client.join(3, 0)
        await fails(
            RefusedError,
            "19 MB/s for the flow from port 0 of node 0 to port 1 of node 2 are refused: node 0 has 18 MB/s left for "
            "it",
            client.request(2, 1, 19.0),
            cluster,
        )
        # A best-effort flow that is refused stays best-effort.
        before = client.rate(3, 0)
        with pytest.raises(RefusedError) as caught:
            await client.request(3, 0, 19.0)
        assert (caught.value.where, caught.value.left_mb_per_s) == ("node 0", 18.0)
        assert client.rate(3, 0) == before == 18.0
        with pytest.raises(RefusedError) as caught:
            await other.request(2, 2, 30.0)
        assert caught.value.where == "node 2" and caught.value.left_mb_per_s == pytest.approx(
            25.333, abs=0.001
        )
        await other.request(2, 2, caught.value.left_mb_per_s)

    FakeCluster().run(main)


def test_a_switch_port_refuses_by_name():
    """The network is a row of switches, with three nodes' flows across one link of 159 MB/s."""

    async def main(cluster):
        for node in (0, 1):
            await (await cluster.client(node)).request(3 + node, 0, 70.0)
        with pytest.raises(RefusedError) as caught:
            await (await cluster.client(2)).request(5, 0, 30.0)
        assert caught.value.where == "port 1 of switch 2"
        assert caught.value.left_mb_per_s == pytest.approx(159.067 - 140, abs=0.01)

    FakeCluster(6, chained=True).run(main)


def test_bad_input_is_refused_in_one_clear_line():
    async def main(cluster):
        client = await cluster.client(0)
        grant = await client.request(1, 0, 10.0)
        member = await client.join(2, 0)
        range_text = "above 0 (at least 8e-06) and at most 85.333, the peak of a flow"

        async def check(kind, message, call):
            await fails(kind, message, call, cluster)

        for bad in (0, 0.0, -1.0, 85.34, 1e12, 10**400, 1e-9, float("nan"), float("inf"), True, "40", None):
            await check(
                BadRequestError, f"a request of {bad!r} MB/s: {range_text}", client.request(3, 0, bad)
            )
        await check(BadRequestError, "there is no node 4: nodes are 0 to 3", client.request(4, 0, 1.0))
        await check(BadRequestError, "there is no node -1: nodes are 0 to 3", client.join(-1, 0))
        await check(
            BadRequestError,
            "the flow from port 0 of node 0 to port 3 of node 0 does not leave its node: it uses no bandwidth of the "
            "network",
            client.request(0, 3, 1.0),
        )
        for bad in (0, 256, -1, 1.5, True):
            await check(
                BadRequestError, f"weight = {bad!r}: a whole number, 1 to 255", client.join(3, 0, weight=bad)
            )
        flow = "flow from port 0 of node 0 to port 0 of node"
        await check(
            AlreadyHeldError,
            f"the {flow} 1 holds 10 MB/s already: release them first",
            client.request(1, 0, 5.0),
        )
        await check(AlreadyHeldError, f"the {flow} 1 is premium already", client.join(1, 0))
        await check(AlreadyHeldError, f"the {flow} 2 is best-effort already", client.join(2, 0))
        await client.release(grant)
        await client.leave(member)
        gone = "does not hold this reservation (any more)"
        await check(NotHeldError, f"the {flow} 1 {gone}", client.release(grant))
        await check(
            NotHeldError,
            f"the {flow} 2 is not best-effort by this membership (any more)",
            client.leave(member),
        )
        again = await client.request(1, 0, 10.0)
        await check(NotHeldError, f"the {flow} 1 {gone}", client.release(grant))
        await client.release(again)
        assert cluster.master.ledger.counters() == {}
        assert issubclass(RefusedError, BandwidthError)

    FakeCluster().run(main)


def test_a_released_flow_may_go_on_as_best_effort():
    async def main(cluster):
        client, other = await cluster.client(0), await cluster.client(0, 1)
        grant = await client.request(1, 0, 40.0)
        await other.join(2, 0)
        member = await client.release(grant, best_effort=True)
        assert member.flow == grant.flow and member.weight == 1
        assert client.rate(1, 0) == 39.0 and idts(cluster, 0) == {(0, 1): 211, (1, 2): 211}
        grant = await client.request(1, 0, 20.0)
        await cluster.world.sleep(LONG)
        assert idts(cluster, 0) == {(0, 1): 409, (1, 2): 142}
        with pytest.raises(NotHeldError):
            await client.leave(member)

    FakeCluster().run(main)


@pytest.mark.parametrize("policy", ["set_aside", "max_min"])
def test_weights_and_the_policy_count(policy):
    async def main(cluster):
        clients = [await cluster.client(0, port) for port in range(2)]
        await clients[0].join(1, 0, weight=2)
        await clients[1].join(2, 0)
        await cluster.world.sleep(LONG)
        assert [clients[0].rate(1, 0), clients[1].rate(2, 0)] == [52.0, 26.0]
        await (await cluster.client(3)).request(1, 1, 70.0)
        await cluster.world.sleep(LONG)
        other = 26.0 if policy == "set_aside" else pytest.approx(62.667, abs=0.001)
        assert [clients[0].rate(1, 0), clients[1].rate(2, 0)] == [pytest.approx(15.333, abs=0.001), other]

    FakeCluster(best_effort=policy).run(main)


def test_a_node_that_is_promised_whole_parks_best_effort_flows():
    async def main(cluster):
        best, premium = await cluster.client(0), await cluster.client(0, 1)
        await best.join(1, 0)
        grant = await premium.request(2, 0, 85.0)
        assert best.rate(1, 0) == 0.0 and idts(cluster, 0)[0, 1] == LONGEST
        await premium.release(grant)
        await cluster.world.sleep(LONG)
        assert idts(cluster, 0)[0, 1] == 0

    FakeCluster().run(main)


def test_a_closed_port_gives_everything_back():
    """This is as when a process dies without releasing: its driver closes the port."""

    async def main(cluster):
        client, other = await cluster.client(0), await cluster.client(0, 1)
        await client.request(1, 0, 40.0)
        await client.join(2, 0)
        await other.join(3, 0)
        await cluster.gms[0].ports[0].close()
        with pytest.raises(ClosedPortError, match=r"^port 0 of node 0 is not open: open it first$"):
            await client.request(1, 0, 1.0)
        await cluster.world.sleep(LONG)
        assert cluster.master.ledger.counters() == {}
        assert cluster.master.ledger.best_effort == {FlowId(0, 1, 3, 0): 1}
        assert other.rate(3, 0) == pytest.approx(85.333, abs=0.001)

    FakeCluster(master=2).run(main)


@pytest.mark.parametrize("delay", [1, 300, 900, 1500, 2200, 3000, 5000])
def test_a_port_that_is_closed_during_its_request_holds_nothing(delay):
    """The place in the call where it happens does not matter. The port's next owner starts with nothing, and is granted
    at once."""

    async def main(cluster):
        client = await cluster.client(0)

        async def close():
            await cluster.world.sleep(delay)
            await cluster.gms[0].ports[0].close()

        async def ask():
            try:
                await client.request(1, 0, 80.0)
            except ClosedPortError:
                return "closed"
            return "granted"

        ended, _ = await cluster.world.gather(ask(), close())
        assert ended == ("granted" if cluster.managers[0].rate(FlowId(0, 0, 1, 0)) else ended)
        successor = await cluster.client(0)
        grant = await successor.request(1, 0, 80.0)
        await cluster.world.sleep(LONG)
        assert cluster.master.ledger.premium == {grant.flow: 80_000_000}
        assert successor.rate(1, 0) == 80.0
        await successor.release(grant)
        assert cluster.master.ledger.counters() == {}

    FakeCluster(master=2).run(main)


def test_calls_made_at_once_are_all_answered():
    """Sixteen requests of 20 MB/s come from all nodes. Just those that fit are granted."""

    async def main(cluster):
        refused = []

        async def ask(node, port):
            client = await cluster.client(node, port)
            flow = FlowId(node, port, (node + 1 + port % 3) % 4, port)
            try:
                return await client.request(flow.target, port, 20.0)
            except RefusedError as error:
                assert error.left_mb_per_s < 20.0
                refused.append(flow)

        grants = await cluster.world.gather(*(ask(node, port) for node in range(4) for port in range(4)))
        held = [grant for grant in grants if grant is not None]
        ledger = cluster.master.ledger
        assert ledger.premium == {grant.flow: 20_000_000 for grant in held}
        assert held and refused and len(held) + len(refused) == 16
        assert all(ledger.check(flow, 20_000_000) is not None for flow in refused)

    FakeCluster().run(main)


@pytest.mark.parametrize("flows", [300, pytest.param(1024, marks=pytest.mark.full)])
def test_a_node_may_have_as_many_best_effort_flows_as_a_card_has(flows):
    """Node 1 has up to 1024 flows. Their shares go to their node in messages of 291 flows each. All have the same, and
    all of it is used."""

    async def main(cluster):
        names = [
            (port, target, target_port, priority)
            for port in range(6)
            for target in (0, 2, 3)
            for target_port in range(32)
            for priority in (0, 1)
        ][:flows]
        for port, target, target_port, priority in names:
            client = await cluster.client(1, port)
            await client.join(target, target_port, priority=priority)
        await cluster.world.sleep(20 * LONG)
        assert len(cluster.master.shares) == flows
        assert set(cluster.gms[1].idts) == set(names)
        share = cluster.master.shares[FlowId(1, 0, 0, 0)]
        assert set(cluster.master.shares.values()) == {share} and flows * share == pytest.approx(
            78e6, rel=0.001
        )
        assert set(cluster.gms[1].idts.values()) == {-(-4096 * 2_000_000 // share)}
        grant = await (await cluster.client(2)).request(3, 0, 60.0)
        assert grant.mb_per_s == 60.0

    FakeCluster().run(main, limit=10_000_000_000)
