"""Faults between managers: lost, repeated and late messages, managers that are dead or come back, two masters.

Every call ends with an error or the right answer, and nothing is given twice.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from lanikai.sim.bandwidth.errors import (
    BandwidthError,
    ManagerSilentError,
    MasterConflictError,
    RefusedError,
)
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.wire import Envelope, Kind, Reply
from support.sim.fake_gm import WIRE_CYCLES, FakeCluster, lose
from support.sim.plain_manager import Plain

LONGEST = (1 << 30) - 1
SILENCE = 2_000_000
"""Cycles after which a call to a dead manager has failed, and more. 4 * 5 ms are 660,000; a master that waits for
another dead manager answers `WORKING` meanwhile."""
SILENT_CYCLES = 4 * 165_000
"""Cycles after which a call is given up: four times 5 ms."""
SETTLED = 20_000_000
"""Cycles after which the master has been told all that it was to be told."""


def plain(cluster: FakeCluster) -> Plain:
    node = cluster.master.ledger.capacity.node
    return Plain(cluster.network, node.curve, node.shared, cluster.master.ledger.capacity.port)


@pytest.mark.parametrize("reply", [Reply.CALL, Reply.ANSWER])
@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.STAND, Kind.UPDATE, Kind.PORT_CLOSED])
def test_a_lost_message_is_sent_again(kind, reply):
    """A best-effort flow joins, a premium flow comes and goes, ports are closed. With any message lost once or thrice
    all happens, once."""

    async def main(cluster):
        best, premium = await cluster.client(1), await cluster.client(2)
        await best.join(3, 0)
        cluster.fate = lose(kind, reply, 3)
        grant = await premium.request(3, 1, 60.0)
        assert cluster.master.ledger.premium == {grant.flow: 60_000_000}
        assert best.rate(3, 0) == pytest.approx(25.333, abs=0.001)
        member = await premium.release(grant, best_effort=True)
        await premium.leave(member)
        await cluster.gms[1].ports[0].close()
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.counters() == {} and not cluster.master.ledger.best_effort

    FakeCluster().run(main)


def test_a_lost_vote_is_asked_for_again():
    async def main(cluster):
        assert await (await cluster.client(1)).request(2, 0, 5.0)

    cluster = FakeCluster()
    cluster.fate = lose(Kind.VOTE, Reply.CALL, 6)
    cluster.run(main)


@pytest.mark.parametrize("reply", [Reply.CALL, Reply.ANSWER])
def test_a_request_given_up_leaves_nothing_behind(reply):
    """The master may have granted it, or not: the caller gets an error. The master is told, and grants the bandwidth to
    the next request, once."""

    async def main(cluster):
        client = await cluster.client(1)
        cluster.fate = lose(Kind.REQUEST, reply, 4)
        with pytest.raises(ManagerSilentError) as caught:
            await client.request(2, 0, 50.0)
        assert str(caught.value) == "the master, on node 0, does not answer: nothing is granted"
        assert (len(cluster.master.ledger.premium) == 1) is (reply is Reply.ANSWER)
        assert client.rate(2, 0) is None
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.counters() == {}
        # The same again, and the next request comes before the master has been told.
        cluster.fate = lose(Kind.REQUEST, reply, 4)
        with pytest.raises(ManagerSilentError):
            await client.request(2, 0, 50.0)
        grant = await client.request(2, 0, 70.0)
        assert cluster.master.ledger.premium == {grant.flow: 70_000_000}
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.premium == {grant.flow: 70_000_000} and client.rate(2, 0) == 70.0
        # And a refusal: what was granted in vain is nobody's.
        await client.release(grant)
        other = await cluster.client(3)
        await other.request(2, 0, 30.0)
        cluster.fate = lose(Kind.REQUEST, reply, 4)
        with pytest.raises(ManagerSilentError):
            await client.request(2, 0, 50.0)
        with pytest.raises(RefusedError) as refusal:
            await client.request(2, 0, 60.0)
        assert refusal.value.left_mb_per_s == pytest.approx(55.333, abs=0.001)
        assert list(cluster.master.ledger.premium) == [FlowId(3, 0, 2, 0)]

    FakeCluster().run(main)


def test_a_release_that_is_not_answered_is_told_later():
    async def main(cluster):
        client = await cluster.client(1)
        grant = await client.request(2, 0, 50.0)
        cluster.fate = lambda source, target, message: []
        with pytest.raises(ManagerSilentError) as caught:
            await client.release(grant)
        assert str(caught.value) == (
            "the master, on node 0, does not answer: the flow has no standing any more, and the master is told when it "
            "answers"
        )
        assert client.rate(2, 0) is None and cluster.master.ledger.premium
        await cluster.world.sleep(SETTLED)
        cluster.fate = lambda source, target, message: [WIRE_CYCLES]
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.counters() == {}

    FakeCluster().run(main)


@pytest.mark.parametrize("port_closed", [True, False], ids=["dead", "hung"])
def test_the_masters_death_is_survived_in_time(port_closed):
    """The first call finds out and has another one elected, within four silences. All that was promised still
    counts."""

    async def main(cluster):
        client = await cluster.client(1)
        grant = await client.request(2, 0, 50.0)
        if port_closed:
            await cluster.managers[0].stop()
        else:
            cluster.managers[0].ended = cluster.managers[0]._master.ended = True  # its port stays open
        started = cluster.world.cycle
        await client.request(3, 0, 1.0)
        assert cluster.world.cycle - started < 4 * SILENT_CYCLES
        started = cluster.world.cycle
        assert cluster.master is cluster.managers[1]._master and cluster.managers[1].master is not None
        await client.join(3, 1)
        with pytest.raises(RefusedError):
            await (await cluster.client(3)).request(2, 0, 80.0)
        await client.release(grant)
        await (await cluster.client(3)).request(2, 0, 80.0)
        assert cluster.world.cycle - started < SILENT_CYCLES  # everybody knows by now
        own = await cluster.client(0)
        with pytest.raises(ManagerSilentError, match=r"^the manager of node 0 has ended$"):
            await own.request(1, 0, 1.0)
        if port_closed:
            cluster.managers[0] = await cluster.start(0)
            await (await cluster.client(0)).join(1, 0)
            assert len(cluster.master.ledger.premium) == 2

    FakeCluster().run(main)


def test_two_of_five_managers_may_die_one_after_the_other():
    async def main(cluster):
        client = await cluster.client(2)
        for dead in (0, 1):
            await client.request(3, dead, 30.0)
            await cluster.managers[dead].stop()
            started = cluster.world.cycle
            with pytest.raises(RefusedError):
                await (await cluster.client(4)).request(3, dead, 80.0)
            assert cluster.world.cycle - started < 5 * SILENT_CYCLES
        assert len(cluster.master.ledger.premium) == 2
        await cluster.managers[2].stop()
        with pytest.raises(ManagerSilentError, match="does not answer: nothing is granted"):
            await (await cluster.client(4)).request(0, 0, 1.0)

    FakeCluster(5).run(main)


def test_a_dead_manager_whose_flows_would_have_to_slow_down_refuses_the_request():
    """Nobody can slow node 3's flood into node 2. The others' requests are granted; the master stays in one piece."""

    async def main(cluster):
        best, other, client = await cluster.client(3), await cluster.client(1, 1), await cluster.client(1)
        await best.join(2, 0)
        await other.join(0, 0)
        await cluster.managers[3].stop()
        before = cluster.master.ledger.counters(), dict(cluster.master.shares)
        started = cluster.world.cycle
        with pytest.raises(ManagerSilentError) as caught:
            await client.request(2, 1, 40.0)
        assert str(caught.value) == (
            "the manager of node 3 does not answer: its best-effort flows cannot be slowed down"
        )
        assert cluster.world.cycle - started < SILENCE
        assert (cluster.master.ledger.counters(), dict(cluster.master.shares)) == before
        await cluster.world.sleep(SETTLED)
        assert other.rate(0, 0) == pytest.approx(85.333, abs=0.001)  # slowed down for it, and given back
        grant = await client.request(0, 1, 40.0)
        assert cluster.master.ledger.premium == {grant.flow: 40_000_000}

    FakeCluster().run(main)


def test_a_best_effort_flow_whose_request_failed_has_all_of_its_share_later():
    """While it asks it is no faster than its request. That ends when it is told that nothing was done."""

    async def main(cluster):
        client = await cluster.client(1)
        flow = (await client.join(2, 0)).flow
        other = await (await cluster.client(3)).join(2, 0)
        await cluster.managers[3].stop()
        with pytest.raises(ManagerSilentError, match="the manager of node 3 does not answer"):
            await client.request(2, 0, 60.0)
        cluster.managers[3] = await cluster.start(3)
        await (await cluster.client(3)).leave(other)
        await cluster.world.sleep(SETTLED)
        assert client.rate(2, 0) == pytest.approx(85.333, abs=0.001)
        assert cluster.card_rate(flow) / 1e6 == pytest.approx(85.333, abs=0.001)
        assert not cluster.record(1).capped

    FakeCluster().run(main)


def test_a_flow_is_no_faster_than_any_request_whose_end_it_does_not_know():
    """The first one was granted, and the answer lost; the second one never came to the master."""

    async def main(cluster):
        client = await cluster.client(1)
        flow = (await client.join(2, 0)).flow
        lost = {(Kind.REQUEST, Reply.ANSWER), (Kind.REQUEST, Reply.WORKING)}

        def fate(source, target, message):
            envelope = Envelope.unpack(message)
            kind = envelope.kind, envelope.reply
            return [] if kind in lost or envelope.kind is Kind.STAND else [WIRE_CYCLES]

        cluster.fate = fate
        with pytest.raises(ManagerSilentError, match="nothing is granted"):
            await client.request(2, 0, 5.0)
        lost.add((Kind.REQUEST, Reply.CALL))
        with pytest.raises(ManagerSilentError, match="nothing is granted"):
            await client.request(2, 0, 60.0)
        assert cluster.master.ledger.premium == {flow: 5_000_000}
        assert cluster.card_rate(flow) < 5_010_000
        cluster.fate = lambda source, target, message: [WIRE_CYCLES]
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.premium == {} and not cluster.record(1).capped
        assert cluster.card_rate(flow) / 1e6 == pytest.approx(85.333, abs=0.001)

    FakeCluster().run(main)


def test_a_manager_that_comes_back_holds_what_it_held():
    """Its card went on sending meanwhile. A grant of its former self is neither lost nor granted again."""

    async def main(cluster):
        client, other = await cluster.client(1), await cluster.client(2)
        grant = await client.request(3, 0, 50.0)
        member = await client.join(0, 0)
        await other.request(3, 1, 20.0)
        await cluster.managers[1].stop()
        with pytest.raises(ManagerSilentError, match=r"^the manager of node 1 has ended$"):
            await client.release(grant)
        await cluster.world.sleep(10_000)
        cluster.managers[1] = await cluster.start(1)
        client = await cluster.client(1)
        with pytest.raises(RefusedError):
            await (await cluster.client(1, 2)).request(3, 2, 60.0)
        assert (client.rate(3, 0), client.rate(0, 0)) == (50.0, 28.0)
        assert cluster.gms[1].idts[0, 3, 0, 0] == grant.idt_ticks
        await client.release(grant)
        await client.leave(member)
        await (await cluster.client(1, 2)).request(3, 2, 60.0)

    FakeCluster().run(main)


def test_a_manager_that_ends_while_it_sets_the_card_has_granted_nothing():
    """The answer has come, and the command is on its way to the card (200 cycles). The program has an error, and the
    manager that takes over gives the grant back."""

    async def main(cluster):
        client = await cluster.client(1)

        async def ask():
            with pytest.raises(ManagerSilentError):
                await client.request(2, 0, 80.0)

        async def restart():
            while not cluster.master.ledger.premium:
                await cluster.world.sleep(10)
            await cluster.world.sleep(WIRE_CYCLES + 20)
            await cluster.managers[1].stop()
            cluster.managers[1] = await cluster.start(1)

        await (await cluster.client(1, 1)).join(3, 0)
        await cluster.world.gather(ask(), restart())
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.premium == {} and not cluster.record(1).premium

    FakeCluster().run(main)


def test_a_node_that_is_started_anew_holds_nothing():
    """The node is started with its driver and its card. All that its former self held goes back with its first call, or
    by itself."""

    async def main(cluster):
        for node, calls in ((1, True), (2, False)):
            await (await cluster.client(node)).request(3, 0, 50.0)
            cluster.reboot(node)
            cluster.managers[node] = await cluster.start(node)
            if calls:
                await (await cluster.client(node)).join(0, 0)
            else:
                await cluster.world.sleep(SETTLED)
            assert cluster.master.ledger.premium == {}

    FakeCluster().run(main)


def test_what_a_dead_node_held_is_free():
    """GM on the master's node finds the node dead. Bandwidth of flows to it stays with their senders."""

    async def main(cluster):
        await (await cluster.client(1)).request(2, 0, 80.0)
        into = await (await cluster.client(3)).request(1, 0, 4.0)
        await (await cluster.client(1)).join(3, 1)
        cluster.managers[1].ended = cluster.managers[1]._master.ended = True
        for gm in cluster.gms:
            for callback in gm.died:
                callback(1)
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.premium == {into.flow: 4_000_000}
        assert not cluster.master.ledger.best_effort
        await (await cluster.client(3)).request(2, 0, 70.0)

    FakeCluster().run(main)


@pytest.mark.parametrize("restarted", [(0,), (0, 1, 2, 3), (0, 3)], ids=["master", "all", "two"])
def test_managers_that_are_started_again_go_on_with_what_was_promised(restarted):
    async def main(cluster):
        client = await cluster.client(1)
        grant = await client.request(2, 0, 80.0)
        for node in restarted:
            await cluster.managers[node].stop()
        await cluster.world.sleep(10_000)
        for node in restarted:
            cluster.managers[node] = await cluster.start(node)
        client = await cluster.client(1)
        with pytest.raises(RefusedError) as caught:
            await (await cluster.client(3)).request(2, 0, 80.0)
        assert caught.value.left_mb_per_s == pytest.approx(5.333, abs=0.001)
        await client.release(grant)
        await (await cluster.client(3)).request(2, 0, 80.0)

    FakeCluster().run(main)


@pytest.mark.parametrize("masters", [(0, 0, 1, 1), (0, 0, 0, 3), (0, 1, 1, 1), (0, 1, 2, 3), (1, 0, 1, 0)])
def test_of_several_masters_one_grants(masters):
    """Each node is told of another master when it starts. 80 MB/s into node 2 are given once."""

    async def main(cluster):
        async def ask(node):
            client = await cluster.client(node)
            try:
                return await client.request(2, node, 80.0)
            except BandwidthError as error:
                return error

        answers = [await ask(0), *await cluster.world.gather(*(ask(node) for node in (1, 3)))]
        granted = [answer for answer in answers if not isinstance(answer, BandwidthError)]
        assert len(granted) == 1
        assert all(
            isinstance(one, RefusedError | MasterConflictError) for one in answers if one not in granted
        )
        assert cluster.master.ledger.premium == {granted[0].flow: 80_000_000}
        assert sum(cluster.in_force().values()) < 81e6

    FakeCluster(config=lambda node: ManagerConfig(master=masters[node], receive_mb_per_s=4096 / 48)).run(main)


def test_half_of_the_managers_are_not_most():
    """Two of four nodes have no manager: no master may know that nobody votes for another one."""

    async def main(cluster):
        with pytest.raises(MasterConflictError, match=r"\(2 of 4 have\)$"):
            await (await cluster.client(1)).request(0, 0, 1.0)

    FakeCluster(without=(2, 3)).run(main)


def test_what_is_no_message_is_ignored():
    async def main(cluster):
        for junk in (b"", b"junk", bytes(12), bytes([9]) * 40):
            cluster.deliver(0, 7, junk)
        cluster.deliver(
            0, 7, Envelope(kind=Kind.REQUEST, reply=Reply.CALL, sender=1, incarnation=99, sequence=9).pack()
        )
        assert await (await cluster.client(2)).request(1, 0, 1.0)

    FakeCluster().run(main)


ACTIONS = st.tuples(
    st.integers(0, 3),  # node
    st.integers(0, 1),  # port
    st.sampled_from(["request", "request", "join", "end", "end", "close"]),
    st.integers(1, 3),  # target, from the node on
    st.sampled_from([5.0, 20.0, 39.0, 60.0, 85.0]),
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@example(
    actions=[
        (3, 0, "request", 1, 60.0),
        (2, 1, "end", 2, 20.0),
        (1, 1, "close", 1, 5.0),
        (2, 0, "request", 2, 60.0),
        (0, 1, "end", 3, 85.0),
        (0, 0, "join", 1, 39.0),
        (1, 0, "end", 3, 20.0),
        (1, 1, "request", 3, 85.0),
        (3, 0, "end", 1, 39.0),
        (1, 0, "request", 3, 39.0),
        (3, 1, "close", 1, 85.0),
        (1, 0, "request", 1, 85.0),
        (1, 1, "request", 3, 20.0),
        (3, 1, "close", 2, 39.0),
    ],
    seed=238,
    loss_percent=10,
    chained=True,
)  # the answer to a release is lost, and another flow has the bandwidth before the node knows
@given(
    actions=st.lists(ACTIONS, min_size=4, max_size=14),
    seed=st.integers(0, 1 << 30),
    loss_percent=st.sampled_from([0, 10, 30, 60]),
    chained=st.booleans(),
)
def test_whatever_the_network_does_nothing_is_given_twice(actions, seed, loss_percent, chained):
    """Programs on all nodes, two calls at a time, are on a network that loses, repeats and delays messages.

    At all times the promises fit by the plain model, and include all that programs hold. Every call ends. When the
    network is whole again and everything has been given back, nothing is left.
    """
    chance = random.Random(seed)

    def fate(source, target, message):
        if chance.randrange(100) < loss_percent:
            return []
        copies = 1 + (chance.randrange(100) < loss_percent)
        return [WIRE_CYCLES + chance.randrange(1 + 5000 * loss_percent) for _ in range(copies)]

    async def main(cluster):
        cluster.fate = fate
        held: dict[FlowId, object] = {}
        model = plain(cluster)

        def check():
            newest = cluster.newest()
            # The rates that the cards are set to (IDTs are whole ticks: 1%). A flow that is being released has no
            # standing once the master has it out of its ledger, though the node waits for the answer.
            going = {
                flow: rate / 1.011
                for flow, rate in cluster.in_force().items()
                if rate > 100
                and (
                    flow in (*newest.premium, *newest.best_effort)
                    or flow != cluster.record(flow.source).calling
                )
            }
            assert model.fits(going)
            assert model.fits(newest.premium)
            for node in range(4):
                record = cluster.record(node)
                for flow, grant in record.premium.items():
                    assert flow == record.calling or newest.premium[flow] == round(grant.mb_per_s * 1e6)

        async def act(node, port, what, target, mb_per_s):
            client = await cluster.client(node, port)
            flow = FlowId(node, port, (node + target) % 4, port)
            try:
                if what == "request":
                    held[flow] = await client.request(flow.target, port, mb_per_s)
                elif what == "join":
                    held[flow] = await client.join(flow.target, port)
                elif what == "close":
                    await cluster.gms[node].ports[port].close()
                elif flow in held:
                    await end(client, held.pop(flow))
            except BandwidthError:
                pass
            check()

        async def end(client, what):
            await (client.release(what) if hasattr(what, "idt_ticks") else client.leave(what))

        for first, second in zip(actions[::2], actions[1::2], strict=False):
            if first[:2] == second[:2]:
                await act(*first)
                await act(*second)
            else:
                await cluster.world.gather(act(*first), act(*second))
        cluster.fate = lambda source, target, message: [WIRE_CYCLES]
        await cluster.world.sleep(SETTLED)
        last = await cluster.client(0, 2)
        await last.leave(await last.join(1, 2))  # somebody leads then
        await cluster.world.sleep(SETTLED)
        check()
        managers = [
            flow for manager in cluster.managers for flow in (*manager._premium, *manager._best_effort)
        ]
        assert sorted(managers) == sorted(
            [*cluster.master.ledger.premium, *cluster.master.ledger.best_effort]
        )
        # Every best-effort flow has been told what it may have by now.
        assert cluster.master.shares == {
            flow: share
            for manager in cluster.managers
            for flow, share in manager._shares.items()
            if flow in manager._best_effort
        }
        for gm in cluster.gms:
            for number in [number for number in gm.ports if number != 7]:
                await gm.ports[number].close()
        await cluster.world.sleep(SETTLED)
        assert cluster.master.ledger.counters() == {} and cluster.master.shares == {}
        assert not cluster.master.ledger.premium and not cluster.master.ledger.best_effort

    FakeCluster(chained=chained).run(main, limit=10_000_000_000)
