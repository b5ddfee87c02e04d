"""The coroutines that tests of networks of hosts run in the simulator."""

import random
import time

from lanikai.hdl.traffic.ports import REQUEST, route_address
from lanikai.sim.inside import native_api
from lanikai.sim.inside.words import Fields


async def workload(network, spec):
    """Send random messages between all hosts, each checked. Returns [receiver, source, tag, posted, arrived] in the
    order of arrival.

    `disturb`: hosts dawdle on the wall clock, and coroutines that have nothing to do with them wake.
    """
    if spec.get("check"):
        native_api.check_quiet()
    await network.start()
    clock, link = network.clock, network.config.traffic.link
    dawdle = random.Random(spec["disturb"]) if spec["disturb"] else None
    under_way, found = {}, []
    wakeups = clock.count_wakeups()

    async def send(host):
        draw = random.Random(f"{network.seed} {host.node}")
        others = [node for node in range(len(network.hosts)) if node != host.node]
        for tag in range(spec["messages"]):
            if gap := int(draw.expovariate(1 / spec["gap_cycles"])):
                await host.sleep(gap)
            flits = draw.randint(link.header_flits, 3 * link.header_flits)
            to, vl = draw.choice(others), draw.randrange(link.vls)
            ahead = network.now + draw.choice([0, 0, 0, 20])
            if dawdle and dawdle.random() < 0.2:
                time.sleep(dawdle.random() * 1e-3)
            when = await host.send(to, flits, vl=vl, tag=tag, not_before=ahead)
            under_way[host.node, tag] = to, vl, flits, when

    async def receive(host):
        while True:
            message = await host.receive()
            to, vl, flits, when = under_way.pop((message.source, message.tag))
            assert (to, vl, flits) == (host.node, message.vl, message.flits)
            found.append([host.node, message.source, message.tag, when, message.cycle])

    async def nuisance(generator):
        while True:
            await clock.sleep(generator.randint(1, 30))

    for host in network.hosts:
        clock.spawn(send(host), "send")
        clock.spawn(receive(host), "receive")
    if dawdle:
        for _ in range(3):
            clock.spawn(nuisance(dawdle), "nuisance")
    while network.sent < spec["messages"] * len(network.hosts):
        await clock.sleep(500)
    await network.settle()
    assert not under_way
    return {
        "found": found,
        "wakeups": dict(wakeups),
        "deliveries": network.deliveries,
        "evaluated": native_api.evaluated(),
    }


async def ring_full(network, spec):
    """One host posts faster than its ring empties: nothing is lost, and it waits in between."""
    await network.start()
    host, tags = network.hosts[0], []
    for tag in range(spec["messages"]):
        await host.send(1, 8, tag=tag)
    waited = network.clock.cycle
    await network.settle()
    while network.hosts[1].inbox:
        tags.append((await network.hosts[1].receive()).tag)
    return {"tags": tags, "waited": waited, "end": network.clock.cycle}


async def bare(network, spec):
    """Messages for later cycles cross while Python stands still; times are the design's."""
    await network.start()
    host, clock = network.hosts[0], network.clock
    before, start = clock.cycle, network.now
    posted = [await host.send(1, 8, tag=tag, not_before=start + 100 * tag) for tag in range(5)]
    network.deafen()
    network.bare(600)
    assert clock.cycle == before and network.now == start + 600
    arrived = [(await network.hosts[1].receive()).cycle for _ in range(5)]
    network.listen()
    await clock.sleep(10)
    posted.append(await host.send(1, 8, tag=9))
    arrived.append((await network.hosts[1].receive()).cycle)
    return [end - begin for begin, end in zip(posted, arrived, strict=True)]


async def _set_route(network, route):
    """Another route from node 0 to node 1."""
    request = native_api.signal("request")
    address = route_address(1)
    request.set(Fields(REQUEST).pack(valid=1, write=1, node=0, address=address, data=route))
    await network.clock.sleep(1)
    request.set(0)
    await network.clock.sleep(2)


async def wrong_route(network, spec):
    """A message whose route leads to another node."""
    await network.start()
    await _set_route(network, network.config.network.source_route(0, 2))
    await network.hosts[0].send(1, 8)
    await network.settle()


async def refused(network, spec):
    """The words of `send` on messages that cannot be."""
    said = []
    for arguments in spec["arguments"]:
        try:
            await network.hosts[1].send(**arguments)
        except ValueError as error:
            said.append(str(error))
    return said


async def lost(network, spec):
    """A message does not arrive: it is kept back for longer than anybody waits."""
    await network.start()
    await network.hosts[0].send(1, 8, not_before=network.now + spec.get("ahead", 10_000))
    await network.settle(limit_cycles=2000)
