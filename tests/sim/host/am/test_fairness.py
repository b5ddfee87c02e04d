"""No client of a busy server starves: each has a message taken within a bound, measured while all ask for more."""

from __future__ import annotations

import random

import pytest
from lanikai.firmware.am.places import PATIENCE, Places
from lanikai.sim.host.am import amii
from lanikai.sim.host.am.errors import AmError
from lanikai.sim.host.am.pager import Pager
from support.sim.am_card import AmNet
from support.sim.am_nodes import AmNodes
from support.sim.am_processes import Party, run, serve

CLIENTS = 7
TURNS = 18
"""Scans for which the clients of one endpoint ask."""
MORE, LOCAL_CYCLES = 8, 700_000
"""Endpoints of a host beside a pair, and the time for which all send."""
PAGE_CYCLES, PAGE_US = 6000, 30
"""Most time of a page's move: on the bus of either card, and of the host's system."""


def longest_wait(seed: int) -> tuple[float, float, float]:
    """Clients on a node each flood an endpoint with requests. Returns the longest time that one of them has none taken,
    the bound of `Places`, both in scans, and the messages taken in a scan."""
    net = AmNodes(1 + CLIENTS, seed=seed, config={"scan_us": 400})
    scan = net.drivers[0].cycles(1000 * net.config.scan_us)
    taken: dict[int, list[int]] = {}

    async def test():
        server = await Party.open(net.drivers[0], 7)
        clients = [await Party.open(driver) for driver in net.drivers[1:]]

        async def hear(token, *words):
            taken.setdefault(token.source.node, [net.world.cycle]).append(net.world.cycle)
            await amii.AM_Reply(token, 2, *words)

        await amii.AM_SetHandler(server.endpoint, 1, hear)
        stop = []

        async def flood(client):
            await client.map(server)
            await net.world.sleep(1 + net.rng.randrange(scan))
            while not stop:
                await client.send(1, 2)
            await client.until(lambda: client.credits_home)

        async def serve():
            while not stop or not all(client.credits_home for client in clients):
                await amii.AM_Poll(server.bundle)

        async def end():
            await net.world.sleep(TURNS * scan)
            stop.append(net.world.cycle)

        await net.world.gather(serve(), end(), *(flood(client) for client in clients))
        return stop[0]

    ended = run(net, test)
    assert len(taken) == CLIENTS
    waits = [
        later - earlier
        for cycles in taken.values()
        for earlier, later in zip(cycles, [*cycles[1:], ended], strict=True)
        if earlier < ended
    ]
    entries = net.config.queue_entries
    bound = PATIENCE + 2 + (CLIENTS - 1) // (entries // 2)
    rate = sum(map(len, taken.values())) / (ended / scan)
    assert rate >= entries // 2, "the bound asks for so many taken in a scan"
    return max(waits) / scan, bound, rate


def test_no_client_of_one_endpoint_starves():
    """28 requests are under way for a queue of 4 entries. A try comes each scan, and 1 more scan passes in queues."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    longest, bound, rate = longest_wait(seed)
    print(f"longest wait {longest:.1f} scans, bound {bound}, {rate:.1f} messages a scan")
    assert longest <= bound + 1


def test_without_kept_places_a_client_starves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Places, "admits", lambda self, queue, flow, room, now: room > 0)
    # By luck nobody waits long in some runs.
    waits = (longest_wait(seed) for seed in range(1, 13))
    assert any(longest > bound + 1 for longest, bound, _ in waits)


def longest_local_wait(make, seed: int) -> tuple[float, float]:
    """Two endpoints of a host flood each other, and a client floods others of the same host, in two frames.

    Returns the longest time in which one of the two took no message of the other, and the bound of `pager`, cycles.
    """
    net = make(2, seed=seed, memory_bytes=1 << 21, endpoints=64)
    driver = net.drivers[0]
    taken: dict[int, list[int]] = {}

    async def test():
        pair = [await Party.open(driver, 7) for _ in range(2)]
        others = [await Party.open(driver, 7) for _ in range(MORE)]
        client = await Party.open(net.drivers[1], 7)
        stop = []

        async def hear(token, *words):
            end = token.endpoint.name.number
            taken.setdefault(end, [net.world.cycle]).append(net.world.cycle)
            await amii.AM_Reply(token, 2, *words)

        for party, other in zip(pair, reversed(pair), strict=True):
            await party.map(other)
            await amii.AM_SetHandler(party.endpoint, 1, hear)
        for place, party in enumerate(others):
            await client.map(party, place)

        async def flood(party):
            try:
                while True:
                    await party.send(1)
            except AmError:
                pass

        async def ask():
            try:
                while True:
                    for place in range(MORE):
                        await client.send(place, index=place)
            except AmError:
                pass

        for party in pair:
            net.world.spawn(flood(party), "flood")
        for party in others:
            net.world.spawn(serve(party), "serve")
        net.world.spawn(ask(), "ask")
        await net.world.sleep(LOCAL_CYCLES)
        stop.append(net.world.cycle)
        return stop[0]

    ended = run(net, test)
    move = 2 * PAGE_CYCLES + driver.cycles(2000 * PAGE_US)
    turn = driver.cycles(driver.costs.residency_ns(net.config)) + move
    # Drawn by lot before it has its place among `endpoints` faults, two loads for each, and the pair's own.
    endpoints = 2 + MORE
    bound = (endpoints + 2 * endpoints + 2) * turn
    if len(taken) < 2:
        return ended, bound
    waits = [
        later - earlier
        for cycles in taken.values()
        for earlier, later in zip(cycles, [*cycles[1:], ended], strict=True)
        if earlier < ended
    ]
    return max(waits), bound


def test_two_endpoints_of_a_host_that_send_to_each_other_go_on(make):
    seed = random.SystemRandom().randrange(1 << 30)
    longest, bound = longest_local_wait(make, seed)
    print(f"seed {seed}: longest wait {longest} cycles, bound {bound}")
    assert longest <= bound


def test_without_partners_two_endpoints_of_a_host_wait_by_luck(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Pager, "_bring_partner", lambda self, endpoint: None)
    longest, bound = longest_local_wait(AmNet, 1)
    assert longest > bound
