"""Endpoints that move between host memory and frames: faults, deaths, attacks, the bound on a wait."""

from __future__ import annotations

import pytest
from lanikai.firmware.am.words import COUNT_MODULUS
from lanikai.sim.host.am import amii
from lanikai.sim.host.am.errors import AmCode, AmStatus
from lanikai.sim.host.am.mmu import Place
from lanikai.sim.host.am.policies import POLICIES
from support.sim.am_processes import ECHO, Party, code_of, left, pair, run, serve

SMALL = {"memory_bytes": 1 << 21, "endpoints": 64}


@pytest.mark.parametrize("policy", POLICIES)
def test_more_endpoints_than_frames_all_get_their_messages(make, policy):
    """Seven endpoints of a host share two frames. Each message arrives once, and no endpoint starves."""
    net = make(2, policy=policy, **SMALL)

    async def test():
        client = await Party.open(net.drivers[0])
        servers = [await Party.open(net.drivers[1], 20 + i) for i in range(7)]
        for place, server in enumerate(servers):
            await client.map(server, place)
            net.world.spawn(serve(server), "serve")
        for word in range(6):
            for place in range(7):
                await client.send(place, word, index=place)
        await client.until(lambda: len(client.answers) == 42)
        for place, server in enumerate(servers):
            assert sorted(server.heard) == [(place, word) for word in range(6)]
        pager = net.drivers[1].pager
        assert pager.loads > 7 and client.credits_home
        # The bound of `pager`: every other endpoint may be served first.
        residency = net.drivers[1].cycles(net.drivers[1].costs.residency_ns(net.config))
        move = net.drivers[1].cycles(60_000) + 4 * 3000 + 2000
        assert pager.longest_wait_cycles <= 7 * move + 4 * residency
        assert pager.pinned == 2 * sum(one is not None for one in pager.frames.values())

    run(net, test)


def test_endpoints_stay_for_their_residency(make):
    net = make(2, residency_us=700, **SMALL)

    async def test():
        parties = [await Party.open(net.drivers[0]) for _ in range(3)]
        start = net.world.cycle
        for party in parties[:2]:
            await party.endpoint.page.write_all([(12, 1)])
        await parties[2].endpoint.page.write_all([(12, 1)])
        assert net.world.cycle - start >= net.drivers[0].cycles(700_000)

    run(net, test)


def test_a_write_to_a_page_on_its_way_waits_and_is_not_lost(make):
    """A thread writes all the while that its page is thrown out again and again: no word is lost, none is elsewhere."""
    net = make(2, residency_us=0, **SMALL)

    async def test():
        parties = [await Party.open(net.drivers[0]) for _ in range(5)]
        size = net.config.page_bytes

        async def scribble(place):
            page = parties[place].endpoint.page
            for turn in range(40):
                at = 64 + 4 * ((turn * 7 + place) % ((size - 64) // 4))
                await page.write_all([(at, place << 16 | turn)])
                await net.world.sleep(1 + net.rng.randrange(2000))
                assert await page.read(at) == place << 16 | turn

        await net.world.gather(*(scribble(place) for place in range(5)))
        assert net.drivers[0].pager.unloads > 5
        assert sum(party.endpoint.page.endpoint.faults for party in parties) > 5

    run(net, test)


def test_a_process_may_write_anything_into_its_page(make):
    """Random words into a page and random doorbell words: another process' messages arrive as ever, in their time."""
    net = make(2, **SMALL)

    async def test():
        a, b = await pair(net)
        rogue = await Party.open(net.drivers[0], 99)
        stop = []

        async def attack():
            page, size = rogue.endpoint.page, net.config.page_bytes
            while not stop:
                at = 4 * net.rng.randrange(size // 4)
                word = net.rng.choice([0, 1, 0xFFFFFFFF, net.rng.getrandbits(32)])
                await page.write_all([(at, word)], ring=net.rng.getrandbits(31))
                await net.world.sleep(1 + net.rng.randrange(100))

        net.world.spawn(attack(), "attack")
        for word in range(60):
            await a.send(word)
            if word % 7 == 0:
                await net.world.sleep(5000)
        await a.until(lambda: len(a.answers) == 60)
        stop.append(1)
        assert sorted(b.heard) == sorted(a.answers) == [(word,) for word in range(60)] and a.credits_home
        await net.world.sleep(2000)
        # The library of a process that has broken its page makes no sense of it, and ends.
        for _ in range(20):
            await code_of(amii.AM_Poll(rogue.bundle))

    run(net, test)


@pytest.mark.parametrize("place", ["HOST", "LOADING", "RESIDENT", "UNLOADING", "waits"])
def test_a_process_that_dies_with_its_page_anywhere_gives_everything_back(make, place):
    """Its threads' calls end, frames and memory are free, and messages for it come back."""
    net = make(2, residency_us=0 if place != "waits" else 10**6, **SMALL)

    async def test():
        a, b = await pair(net, serves=False)
        codes = []
        others = [await Party.open(net.drivers[1], 50 + i) for i in range(2)]

        async def write(party, offset=12):
            codes.append(await code_of(party.endpoint.page.write_all([(offset, 5)])))

        async def sleeper():
            codes.append(await code_of(amii.AM_WaitSema(b.bundle)))

        net.world.spawn(sleeper(), "sleeper")
        if place == "waits":
            await write(others[0])
            await write(others[1])
        if place != "HOST":
            net.world.spawn(write(b), "write")
        if place in ("RESIDENT", "UNLOADING"):
            await b.endpoint.page.endpoint.changed.until(
                lambda: b.endpoint.page.endpoint.place is Place.RESIDENT
            )
        if place == "UNLOADING":
            net.world.spawn(write(others[0]), "write")
            net.world.spawn(write(others[1]), "write")
        if place not in ("HOST", "RESIDENT", "waits"):
            await b.endpoint.page.endpoint.changed.until(
                lambda: b.endpoint.page.endpoint.place is Place[place]
            )
        before = net.world.cycle
        await net.drivers[1].kill(b.process)
        assert net.world.cycle - before < 200_000
        await net.world.sleep(30_000)
        assert codes.count(AmCode.AM_ERR_NOT_INIT) >= 1 and b.endpoint.page.endpoint not in list(
            net.drivers[1].pager.queue
        )
        await a.send(1)
        await a.until(lambda: a.back)
        assert a.back[0][0] is AmStatus.EBADENDPOINT and a.credits_home
        assert await code_of(amii.AM_Poll(b.bundle)) is AmCode.AM_ERR_NOT_INIT
        assert await code_of(amii.AM_AllocateBundle(b.process)) is AmCode.AM_ERR_NOT_INIT
        await net.drivers[1].kill(b.process)

    run(net, test)


def test_an_endpoint_that_is_freed_with_messages_under_way(make):
    """Requests that it never took are credits that come home: the library asks, and hears that it is gone."""
    net = make(2, **SMALL)

    async def test():
        a, b = await pair(net, serves=False)
        for word in range(4):
            await a.send(word)
        to = a.endpoint.ledger.destination(b.endpoint.name)
        await net.world.sleep(20_000)
        assert to.credits == 0
        await amii.AM_FreeEndpoint(b.endpoint)
        assert await code_of(amii.AM_FreeEndpoint(b.endpoint), "it is no more") is AmCode.AM_ERR_NOT_INIT
        await a.send(5)
        await a.until(lambda: a.credits_home)
        assert len(a.back) + a.endpoint.unanswered == 5 and a.endpoint.unanswered == 4
        assert (to.credits, a.back[0][2].words) == (4, (5,))

    run(net, test)


def test_a_reply_to_a_dead_requester_comes_back(make):
    net = make(2, **SMALL)

    async def test():
        a, b = await pair(net, serves=False)
        await a.send(1, 2)
        held = []

        async def slow(token, *words):
            held.append(words)
            await net.drivers[0].kill(a.process)
            await amii.AM_Reply(token, 2, 3, 4)

        await amii.AM_SetHandler(b.endpoint, ECHO, slow)
        await b.until(lambda: b.back)
        ((status, opcode, token),) = b.back
        assert held == [(1, 2)] and status is AmStatus.EBADENDPOINT and opcode.name == "AM_REPLY_M"
        assert token.words == (3, 4) and token.destination.node == 0 and not token.is_request

    run(net, test)


def test_more_endpoints_than_the_host_has_memory_for(make):
    net = make(2, memory_bytes=1 << 17, endpoints=64)

    async def test():
        process = await amii.AM_Init(net.drivers[0])
        bundle = await amii.AM_AllocateBundle(process)
        made = 0
        while True:
            code = await code_of(amii.AM_AllocateEndpoint(bundle))
            if code is not AmCode.AM_OK:
                break
            made += 1
        assert code is AmCode.AM_ERR_RESOURCE and made > 2
        says = f"node 0: no memory for another endpoint beside {made}"
        assert await code_of(amii.AM_AllocateEndpoint(bundle), says) is AmCode.AM_ERR_RESOURCE
        await amii.AM_FreeBundle(bundle)
        bundle = await amii.AM_AllocateBundle(process)
        await amii.AM_AllocateEndpoint(bundle)

    run(net, test)


def test_all_numbers_in_use(make):
    net = make(2, endpoints=4)

    async def test():
        process = await amii.AM_Init(net.drivers[0])
        bundle = await amii.AM_AllocateBundle(process)
        for _ in range(3):
            await amii.AM_AllocateEndpoint(bundle)
        says = "all 3 endpoints of the host are in use"
        assert await code_of(amii.AM_AllocateEndpoint(bundle), says) is AmCode.AM_ERR_RESOURCE

    run(net, test)


def test_counts_wrap(make):
    """Doorbell counts wrap at 128, those of a record at 65536: they begin just below, and messages go over both."""
    net = make(2, **SMALL)

    async def test():
        a, b = await pair(net)
        start = (1 << 16) - 3
        for party in (a, b):
            paged = party.endpoint.page.endpoint
            record = paged.record
            for name in ("posted", "taken", "delivered", "consumed"):
                setattr(record, name, (start, start))
            paged.set_record(record)
            paged.words[0] = paged.words[1] = start | start << 16
            end = party.endpoint
            end.posted, end.taken, end.claimed, end.consumed = ([start, start] for _ in range(4))
            end.ledger.reference = (1 << 32) - 20
        for word in range(2 * COUNT_MODULUS):
            await a.send(word)
        await a.until(lambda: len(a.answers) == 2 * COUNT_MODULUS)
        assert sorted(a.answers) == sorted(b.heard) == [(word,) for word in range(2 * COUNT_MODULUS)]
        assert a.endpoint.posted[0] == 2 * COUNT_MODULUS - 3 and a.endpoint.ledger.reference < 1000

    run(net, test)


def test_raw_packets_for_the_mapper(make):
    """The driver sends a packet by a route, and hears packets: more than the ring of notices has entries."""
    net = make(2, config={"notice_entries": 8}, **SMALL)
    heard = []

    async def test():
        net.drivers[1].hear_raw = lambda notice, payload: heard.append((notice.node, payload))
        for word in range(40):
            await net.drivers[0].send_raw(1, bytes([word, 1, 2, 3, 4, 5]))
            await net.world.sleep(2000)  # raw packets that find half of the ring full are lost
        await net.world.sleep(20_000)
        assert [payload[0] for _, payload in heard] == list(range(40))
        assert heard[0] == (0, bytes([0, 1, 2, 3, 4, 5]))
        size = net.drivers[0].layout.raw_bytes + 1
        assert await code_of(net.drivers[0].send_raw(1, bytes(size)), "at most") is AmCode.AM_ERR_BAD_ARG

    run(net, test)
    assert left(net)
