"""A server with many more endpoints than its card has frames: each has a message taken within a bound.

All clients ask for more all the while. The bound on a fault is that of `pager`.
"""

from __future__ import annotations

import pytest
from lanikai.sim.host.am import amii
from lanikai.sim.host.am.errors import AmError
from lanikai.sim.host.am.pager import Pager
from lanikai.sim.host.am.process import EventMask
from support.sim.am_nodes import AmNodes
from support.sim.am_processes import Party, run

NODES = 8
PAGE_CYCLES, PAGE_US = 6000, 30
"""Most time of a page's move: on the bus of either card, and of the host's system."""


async def sleeps(party, net):
    """A thread of one endpoint: it takes in what has come, and sleeps until more comes."""
    try:
        while True:
            await amii.AM_SetEventMask(party.bundle, EventMask.AM_NOTEMPTY)
            await amii.AM_WaitSema(party.bundle)
            await amii.AM_SetEventMask(party.bundle, EventMask.AM_NOEVENTS)
            while await amii.AM_Poll(party.bundle):
                pass
    except AmError:
        pass


async def polls(bundle):
    """The single thread of all endpoints."""
    try:
        while True:
            await amii.AM_Poll(bundle)
    except AmError:
        pass


def longest_wait(endpoints: int, *, threads: bool, turns: int) -> tuple[int, int, int]:
    """The longest time in which one of so many endpoints takes no message, the bound on a fault, in cycles, and loads.

    `turns`: of all endpoints in the frames, for which it is measured.
    """
    net = AmNodes(NODES, memory_bytes=1 << 22, endpoints=64)
    driver = net.drivers[0]
    move = 2 * PAGE_CYCLES + driver.cycles(2000 * PAGE_US)
    residency = driver.cycles(driver.costs.residency_ns(net.config))
    bound = endpoints * move + -(-endpoints // net.config.frames) * residency
    taken: dict[int, list[int]] = {}

    async def test():
        process = await amii.AM_Init(driver)
        servers = [await Party.open(driver, 7, process) for _ in range(endpoints)]
        clients = [await Party.open(other, 7) for other in net.drivers[1:] for _ in range(net.config.frames)]

        async def hear(token, *words):
            taken[token.endpoint.name.number].append(net.world.cycle)
            await amii.AM_Reply(token, 2, *words)

        async def flood(client, index):
            try:
                while True:
                    await client.send(1, index=index)
            except AmError:
                pass

        for place, server in enumerate(servers):
            taken[server.endpoint.name.number] = [0]
            await amii.AM_SetHandler(server.endpoint, 1, hear)
            client = clients[place % len(clients)]
            await client.map(server, place)
            net.world.spawn(flood(client, place), "flood")
            if threads:
                net.world.spawn(sleeps(server, net), "thread")
            elif place:
                await amii.AM_MoveEndpoint(server.endpoint, server.bundle, servers[0].bundle)
        if not threads:
            net.world.spawn(polls(servers[0].bundle), "server")
        await net.world.sleep(turns * endpoints // net.config.frames * (residency + 10_000))
        return net.world.cycle

    ended = run(net, test, limit=100_000_000)
    waits = [
        later - earlier
        for cycles in taken.values()
        for earlier, later in zip(cycles, [*cycles[1:], ended], strict=True)
    ]
    return max(waits), bound, driver.pager.loads


def test_no_client_of_a_server_with_a_thread_an_endpoint_starves():
    """12 times as many endpoints as frames. Each has its page within the bound on a fault, and then a message."""
    longest, bound, loads = longest_wait(24, threads=True, turns=3)
    print(f"longest wait {longest}, bound {bound}")
    assert longest <= bound and loads > 48


def test_no_client_of_a_server_with_one_thread_starves():
    """Each endpoint may stop the thread for a fault, once in a turn of its polls."""
    longest, bound, loads = longest_wait(6, threads=False, turns=10)
    print(f"longest wait {longest}, bound {6 * bound}")
    assert longest <= 6 * bound and loads > 12


def serves_the_newest_fault_first(patch: pytest.MonkeyPatch) -> None:
    def newest(self):
        return next((one for one in reversed(self.queue) if self._can_come(one) or self._is_here(one)), None)

    patch.setattr(Pager, "_next", newest)


def forgets_faults_of_a_long_queue(patch: pytest.MonkeyPatch) -> None:
    right = Pager.request

    def request(self, endpoint):
        if len(self.queue) < 3:
            right(self, endpoint)

    patch.setattr(Pager, "request", request)


@pytest.mark.full
@pytest.mark.parametrize(
    ("mutation", "endpoints", "threads", "turns"),
    [(serves_the_newest_fault_first, 6, False, 20), (forgets_faults_of_a_long_queue, 24, True, 3)],
)
def test_where_faults_are_not_served_in_their_order_a_client_starves(
    mutation, endpoints, threads, turns, monkeypatch
):
    mutation(monkeypatch)
    longest, bound, _ = longest_wait(endpoints, threads=threads, turns=turns)
    assert longest > (bound if threads else endpoints * bound)
