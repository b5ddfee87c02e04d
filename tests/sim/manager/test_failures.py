"""What goes wrong between managers: lost, repeated and late messages, managers that are dead or come back, two masters.
Every call ends with an error or the right answer, and nothing is given twice."""

from __future__ import annotations

import random

import pytest
from fake_gm import WIRE_CYCLES, FakeCluster, lose
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.errors import (
    BandwidthError,
    ManagerSilentError,
    MasterConflictError,
    RefusedError,
)
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.wire import Envelope, Kind, Reply
from plain_model import Plain

LONGEST = (1 << 30) - 1
SILENCE = 2_000_000
"""Cycles after which a call to a dead manager has failed, and more: 4 * 5 ms are 660,000; a master that waits for
another dead manager answers `WORKING` meanwhile."""
SETTLED = 20_000_000
"""Cycles after which the master has been told what it was to be told."""


def plain(cluster: FakeCluster) -> Plain:
    node = cluster.master.ledger.capacity.node
    return Plain(cluster.network, node.curve, node.shared, cluster.master.ledger.capacity.port)


@pytest.mark.parametrize("reply", [Reply.CALL, Reply.ANSWER])
@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.STAND, Kind.UPDATE, Kind.PORT_CLOSED])
def test_a_lost_message_is_sent_again(kind, reply):
    """A best-effort flow joins, a premium flow comes and goes, ports are closed: with any message lost once or thrice
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
    """The master may have granted it, or not: the caller gets an error; the master is told, and grants it to the next
    request, once."""

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
def test_a_dead_master_is_an_error_in_time(port_closed):
    async def main(cluster):
        client = await cluster.client(1)
        grant = await client.request(2, 0, 50.0)
        if port_closed:
            await cluster.managers[0].stop()
        else:
            cluster.managers[0].ended = True  # its port stays open, nobody answers
        started = cluster.world.cycle
        for call in (client.request(3, 0, 1.0), client.join(3, 0), client.release(grant)):
            with pytest.raises(ManagerSilentError, match=r"^the master, on node 0, does not answer: "):
                await call
        assert cluster.world.cycle - started < 3 * SILENCE
        own = await cluster.client(0)
        with pytest.raises(ManagerSilentError, match=r"^the manager of node 0 has ended$"):
            await own.request(1, 0, 1.0)

    FakeCluster().run(main)


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


def test_a_manager_that_comes_back_holds_nothing():
    """A manager that is started again knows of no flow: what its former self held goes back with its first call."""

    async def main(cluster):
        client, other = await cluster.client(1), await cluster.client(2)
        await client.request(3, 0, 50.0)
        kept = await other.request(3, 1, 20.0)
        await cluster.managers[1].stop()
        await cluster.world.sleep(10_000)
        cluster.managers[1] = await cluster.start(1)
        grant = await (await cluster.client(1, 2)).request(3, 2, 60.0)
        assert cluster.master.ledger.premium == {kept.flow: 20_000_000, grant.flow: 60_000_000}
        assert cluster.master.votes == {0, 2, 3}  # it has to vote again; three of four are most
        await other.release(kept)

    FakeCluster().run(main)


def test_a_master_that_comes_back_is_not_trusted():
    """It does not know what its former self granted: granting more might be too much."""

    async def main(cluster):
        client = await cluster.client(1)
        await client.request(2, 0, 80.0)
        await cluster.managers[0].stop()
        await cluster.world.sleep(10_000)
        cluster.managers[0] = await cluster.start(0)
        with pytest.raises(MasterConflictError) as caught:
            await (await cluster.client(3)).request(2, 0, 80.0)
        assert str(caught.value) == (
            "the manager of node 0 may not grant: it is not the one master that most nodes vote for (1 of 4 have)"
        )

    FakeCluster().run(main)


@pytest.mark.parametrize(
    ("masters", "granting"),
    [((0, 0, 1, 1), None), ((0, 0, 0, 3), 0), ((0, 1, 1, 1), 1), ((0, 1, 2, 3), None), ((1, 0, 1, 0), None)],
)
def test_of_two_masters_at_most_one_grants(masters, granting):
    """Each node votes for the master it is configured with. 80 MB/s into node 2 are given once or not at all."""

    async def main(cluster):
        async def ask(node):
            client = await cluster.client(node)
            try:
                return await client.request(2, node, 80.0)
            except (MasterConflictError, RefusedError) as error:
                return error

        first = await ask(0)
        answers = [first, *await cluster.world.gather(*(ask(node) for node in (1, 3)))]
        granted = [answer for answer in answers if not isinstance(answer, BandwidthError)]
        assert len(granted) == (granting is not None)
        for node, answer in zip((0, 1, 3), answers, strict=True):
            if masters[node] != granting:
                assert isinstance(answer, MasterConflictError) and "may not grant" in str(answer)
        # Whoever is master by its own configuration alone holds nothing.
        held = [m.master.ledger.premium for m in cluster.managers if m.master is not None]
        assert sum(map(len, held)) == len(granted)

    FakeCluster(config=lambda node: ManagerConfig(master=masters[node])).run(main)


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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(ACTIONS, min_size=4, max_size=14),
    st.integers(0, 1 << 30),
    st.sampled_from([0, 10, 30, 60]),
    st.booleans(),
)
def test_whatever_the_network_does_nothing_is_given_twice(actions, seed, loss_percent, chained):
    """Programs on all nodes, two calls at a time, on a network that loses, repeats and delays messages. At all times
    what is promised fits by the plain model, and includes all that programs hold; every call ends; when the network
    is whole again and everything has been given back, nothing is left."""
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
            promised = cluster.master.ledger.premium
            shares = {flow: rate for flow, rate in cluster.master.shares.items() if rate}
            assert model.fits(promised | shares)
            for manager in cluster.managers:
                for flow, grant in manager._premium.items():
                    assert promised[flow] == round(grant.mb_per_s * 1e6)
            if not any(manager._untold_flows or manager._untold_ports for manager in cluster.managers):
                # What the cards are set to: at no time more than there is (IDTs are whole ticks: 1%).
                going = {flow: rate_of(flow) / 1.01 for m in cluster.managers for flow in m._best_effort}
                assert model.fits(promised | {flow: rate for flow, rate in going.items() if rate > 100})

        def rate_of(flow):
            """By its IDT."""
            idt = cluster.gms[flow.source].idts.get(
                (flow.source_port, flow.target, flow.target_port, 0), LONGEST
            )
            return 4096 * 2_000_000 / idt if idt else 85_333_333

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
