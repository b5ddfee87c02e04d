"""Virtual networks from end to end on cards and firmware: coroutines of `test_am_library.py`, in the simulator."""

import random

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.sim.experiments.measure.hosts import start_hosts
from lanikai.sim.host.am import amii
from lanikai.sim.host.am.config import AmHostConfig
from lanikai.sim.host.am.errors import AmError
from lanikai.sim.host.am.process import EventMask

from support.sim.am_processes import Party, serve


async def overcommit(cluster, spec):
    """Servers on node 1 that answer requests of a process on node 0: more of them than frames. Then one of them dies.

    Half of them poll, the others sleep until a message comes.
    """
    config = VirtualNetworkConfig.for_nic(cluster.config.nic, scan_us=200)
    costs = AmHostConfig(patience_us=20_000)
    drivers = start_hosts(cluster, "am", config=config, costs=costs)
    clock, rng = cluster.clock, random.Random(spec["seed"])
    client = await Party.open(drivers[0], 1)
    servers = [await Party.open(drivers[1], 20 + place) for place in range(spec["servers"])]
    for place, server in enumerate(servers):
        await client.map(server, place)
        clock.spawn(serve(server) if place % 2 else sleeps(server), f"server[{place}]")
    places = [place for place in range(len(servers)) for _ in range(spec["messages"])]
    rng.shuffle(places)
    for word, place in enumerate(places):
        await client.send(place, word, index=place)
    await client.until(lambda: len(client.answers) == len(places))
    heard = [words for server in servers for words in server.heard]
    same = [await bulk(client, servers[place], place) for place in (0, 3, 7)]

    await drivers[1].kill(servers[2].process)
    for word in range(3):
        await client.send(2, 1000 + word, index=2)
    await client.until(lambda: client.credits_home)
    loads = drivers[1].pager.loads
    for driver in drivers:
        for process in list(driver.processes):
            await driver.kill(process)
    return {
        "sent": sorted([place, word] for word, place in enumerate(places)),
        "answered": sorted(list(words) for words in client.answers[: len(places)]),
        "twice": len(heard) - len(set(heard)),
        "loads": loads,
        "same": same,
        "returned": len(client.back),
        "unreached": 3,
        "left": [
            value
            for driver in drivers
            for value in (len(driver.endpoints), sum(one is not None for one in driver.pager.frames.values()))
        ],
    }


async def sleeps(server):
    """Serve a bundle by its semaphore."""
    try:
        while True:
            await amii.AM_SetEventMask(server.bundle, EventMask.AM_NOTEMPTY)
            await amii.AM_WaitSema(server.bundle)
            await amii.AM_SetEventMask(server.bundle, EventMask.AM_NOEVENTS)
            while await amii.AM_Poll(server.bundle):
                pass
    except AmError:
        pass


async def bulk(client, server, place):
    """Whether bulk data of 8 KB arrive at their offset of the segment."""
    most = amii.AM_MaxLong(server.endpoint.driver)
    memory = server.process.allocate(2 * most)
    await amii.AM_SetSeg(server.endpoint, memory)
    came = []
    await amii.AM_SetHandler(server.endpoint, 9, lambda token, pointer, length: came.append(length))
    content = random.Random(place).randbytes(most - 4)
    await amii.AM_RequestXfer(client.endpoint, place, 1000, 9, content)
    await client.until(lambda: came)
    return came == [most - 4] and memory.read(most - 4, 1000) == content
