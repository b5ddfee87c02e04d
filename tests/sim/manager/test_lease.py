"""Nodes that are cut off from the others, and go on sending: their flows rest before a master gives others what they
held."""

from __future__ import annotations

import pytest
from lanikai.sim.bandwidth.errors import BandwidthError, ManagerSilentError, NotHeldError, RefusedError
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.lease import Lease
from lanikai.sim.manager.master import Master
from support.sim.fake_gm import WIRE_CYCLES, FakeCluster
from support.sim.manager_history import NODES, History

LEASE_CYCLES = 6_600_000
GM_CYCLES = 3_300_000
"""Cycles after which GM finds a node dead that answers nothing: 100 ms."""


def cut_off(*nodes: int):
    """A network that has these nodes alone."""

    def fate(source: int, target: int, message: bytes) -> list[int]:
        return [] if (source in nodes) != (target in nodes) else [WIRE_CYCLES]

    return fate


def whole(source: int, target: int, message: bytes) -> list[int]:
    return [WIRE_CYCLES]


async def cut_until_granted(cluster, node: int, other: int, rate: float, most: int = 30):
    """Cut a node off until another one's flow into node 2 has `rate`, then 1 ms more.

    Returns the cycles that it took, and the bandwidth that the first one's card let its flow send before.
    """
    flow = FlowId(node, 0, 2, 0)
    start = cluster.world.cycle
    cluster.fate = cut_off(node)
    await cluster.world.sleep(GM_CYCLES)
    for at in range(4):
        if at != node:
            cluster.found_dead(at, node)
    client = await cluster.client(other, 5)
    for _ in range(most):
        before = cluster.card_rate(flow)
        try:
            grant = await client.request(2, 5, rate)
        except BandwidthError:
            await cluster.world.sleep(500_000)
            continue
        return grant, cluster.world.cycle - start, before
    return None, cluster.world.cycle - start, before


def test_a_node_that_is_cut_off_rests_before_others_have_its_bandwidth():
    async def main(cluster):
        client = await cluster.client(1)
        held = await client.request(2, 0, 60.0)
        member = await client.join(3, 1)
        await cluster.world.sleep(2 * LEASE_CYCLES)
        assert cluster.card_rate(held.flow) > 59e6  # it is renewed
        grant, took, before = await cut_until_granted(cluster, 1, 3, 60.0)
        assert grant is not None and before < 1000
        # The last renewal may be a quarter of a lease old, and a request that was refused comes again after 15 ms.
        assert 0.7 * LEASE_CYCLES < took < LEASE_CYCLES + 1_000_000
        assert cluster.card_rate(member.flow) < 1000
        # Back again it hears that its flows have lost what they had. They rest until their program takes note.
        cluster.fate = whole
        await cluster.world.sleep(LEASE_CYCLES)
        assert client.rate(2, 0) is None and client.rate(3, 1) is None
        assert cluster.card_rate(held.flow) < 1000
        with pytest.raises(NotHeldError):
            await client.release(held)
        assert cluster.gms[1].idts[0, 2, 0, 0] == 0
        with pytest.raises(RefusedError):
            await client.request(2, 0, 60.0)
        again = await client.join(3, 1)
        assert cluster.card_rate(again.flow) > 20e6
        assert cluster.master.ledger.premium == {grant.flow: 60_000_000}

    FakeCluster().run(main)


@pytest.mark.parametrize("renewed", [False, True])
def test_a_node_that_comes_back_in_time_keeps_what_it_had(renewed):
    """It comes back before its lease is over, or after it, but before GM has found it dead."""

    async def main(cluster):
        client = await cluster.client(1)
        held = await client.request(2, 0, 60.0)
        cluster.fate = cut_off(1)
        await cluster.world.sleep(LEASE_CYCLES // 2 if renewed else 2 * LEASE_CYCLES)
        assert (cluster.card_rate(held.flow) > 59e6) == renewed
        if renewed:
            cluster.found_dead(0, 1)
        cluster.fate = whole
        await cluster.world.sleep(2 * LEASE_CYCLES)
        assert client.rate(2, 0) == 60.0 and cluster.card_rate(held.flow) > 59e6
        await client.release(held)

    FakeCluster().run(main)


def test_a_master_that_is_cut_off_with_a_node_confirms_no_lease():
    """Nodes 0, the master, and 1 see each other. So do 2 and 3, and in time 4 too: the old master is obeyed by two of
    five. The bandwidth that node 1 held is given to others; node 1 hears from a master all the while."""

    async def main(cluster):
        client = await cluster.client(1)
        held = await client.request(2, 0, 60.0)
        cluster.fate = cut_off(0, 1)
        await cluster.world.sleep(GM_CYCLES)
        other = await cluster.client(3)
        granted = None
        for at in (2, 3, 4):
            cluster.found_dead(at, 1)  # GM says it once, before there is another master
        for _ in range(60):
            before = cluster.card_rate(held.flow)
            try:
                granted = await other.request(2, 1, 60.0)
                break
            except BandwidthError:
                await cluster.world.sleep(500_000)
        assert granted is not None and before < 1000
        with pytest.raises(ManagerSilentError):
            await client.request(3, 1, 1.0)

    FakeCluster(5).run(main)


def test_a_manager_that_is_started_again_after_its_lease_asks_first():
    async def main(cluster):
        client = await cluster.client(1)
        held = await client.request(2, 0, 60.0)
        await cluster.managers[1].stop()
        cluster.fate = cut_off(1)
        await cluster.world.sleep(2 * LEASE_CYCLES)
        cluster.managers[1] = await cluster.start(1)
        await cluster.world.sleep(100_000)
        assert cluster.card_rate(held.flow) < 1000
        cluster.fate = whole
        await cluster.world.sleep(LEASE_CYCLES)
        assert (await cluster.client(1)).rate(2, 0) == 60.0 and cluster.card_rate(held.flow) > 59e6

    FakeCluster().run(main)


class CutHistory(History):
    """A history in which nodes are cut off, too: one or two, for times shorter and longer than GM and leases take."""

    def __init__(self, seed: int) -> None:
        self.alone: set[int] = set()
        self.cuts = self.under_way = 0
        super().__init__(seed)

    def _fate(self, source: int, target: int, message: bytes) -> list[int]:
        if (source in self.alone) != (target in self.alone):
            return []
        return super()._fate(source, target, message)

    async def _step(self) -> None:
        if not self.under_way and self.chance.random() < 0.3:
            self.cluster.world.spawn(self._cut(), "cut")
            self.cuts += 1
        await self.cluster.world.sleep(self.chance.choice([1, 1, 1_000_000, 3_000_000]))
        await super()._step()

    async def _cut(self) -> None:
        self.under_way += 1
        alive = [node for node in range(NODES) if not self.cluster.managers[node].ended]
        self.alone = set(self.chance.sample(alive, min(len(alive), self.chance.choice([1, 1, 2]))))
        length = self.chance.choice([1_000_000, GM_CYCLES + 1, 2 * LEASE_CYCLES, 4 * LEASE_CYCLES])
        await self.cluster.world.sleep(min(length, GM_CYCLES))
        if length > GM_CYCLES:
            for at in range(NODES):
                for node in range(NODES):
                    if (at in self.alone) != (node in self.alone):
                        self.cluster.found_dead(at, node)
            await self.cluster.world.sleep(length - GM_CYCLES)
        self.alone = set()
        self.under_way -= 1

    async def _restart(self, nodes) -> None:
        # A node that is cut off while its manager is dead goes on at its rates: nobody is there to let its flows rest.
        await super()._restart([node for node in nodes if node not in self.alone])

    async def _end(self) -> None:
        while self.under_way:
            await self.cluster.world.sleep(100_000)
        await super()._end()


def histories(first: int, number: int) -> None:
    cuts = grants = 0
    for seed in range(first, first + number):
        history = CutHistory(seed)
        try:
            history.run()
        except BaseException as error:
            raise AssertionError(f"history {seed}: {type(error).__name__}: {error}") from error
        cuts, grants = cuts + history.cuts, grants + history.grants
    assert cuts > number and grants > number


def test_no_history_of_nodes_that_are_cut_off_oversubscribes():
    histories(0, 10)


@pytest.mark.full
def test_no_history_of_hundreds_of_cuts_oversubscribes():
    histories(1000, 400)


def test_leases_without_an_end_are_found_out(monkeypatch):
    """The managers are as they were before there were any leases: a node goes on at its rates."""
    monkeypatch.setattr(Lease, "over", False)
    with pytest.raises(AssertionError, match=r"^history \d+: AssertionError: the cards send more"):
        histories(12, 12)


def test_a_master_that_does_not_wait_for_the_end_of_a_lease_is_found_out(monkeypatch):
    usual = Master.__init__

    def hasty(self, *args, lease_cycles, **more):
        usual(self, *args, lease_cycles=0, **more)

    monkeypatch.setattr(Master, "__init__", hasty)
    with pytest.raises(AssertionError):
        test_a_node_that_is_cut_off_rests_before_others_have_its_bandwidth()


def test_a_master_that_answers_without_asking_the_others_is_found_out(monkeypatch):
    async def sure(self):
        return self.leading

    monkeypatch.setattr(Master, "_confirm", sure)
    with pytest.raises(AssertionError):
        test_a_master_that_is_cut_off_with_a_node_confirms_no_lease()
