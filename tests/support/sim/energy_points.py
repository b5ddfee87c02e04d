"""The coroutine that the test of energy runs in the simulator."""

import random

from .adapter_points import workload


async def random_messages(network, spec):
    """Send random messages between all hosts, and read the activity every `spec["interval_cycles"]`.

    Returns the messages, [source, destination, flits], and each reading: the activity of every router.
    """
    await network.start()
    clock, link = network.clock, network.config.traffic.link
    messages, readings = [], []
    meter = network.activity_meter()

    async def send(host):
        draw = random.Random(f"{network.seed} {host.node}")
        others = [node for node in range(len(network.hosts)) if node != host.node]
        for tag in range(spec["messages"]):
            await host.sleep(draw.randint(1, 2 * spec["gap_cycles"]))
            to, flits = draw.choice(others), draw.randint(link.header_flits, 12)
            await host.send(to, flits, vl=draw.randrange(link.vls), tag=tag)
            messages.append([host.node, to, flits])

    async def receive(host):
        while True:
            await host.receive()

    def read():
        readings.append([router.as_list() for router in meter.read().routers])

    for host in network.hosts:
        clock.spawn(send(host), "send")
        clock.spawn(receive(host), "receive")
    while network.sent < spec["messages"] * len(network.hosts):
        await clock.sleep(spec["interval_cycles"])
        read()
    await network.settle()
    read()
    await clock.sleep(10)
    read()
    return {"messages": messages, "readings": readings}


async def no_counters(network, spec):
    """Ask for a meter where no counters are."""
    network.activity_meter()


async def read_too_late(network, spec):
    """Let a meter believe that its last reading was so long ago that counters may have gone round."""
    meter = network.activity_meter()
    meter._read -= (1 << 32) // (4 * network.config.network.router.ports) + 1
    meter.read()


async def adapter_messages(system, spec):
    """Send random messages between all hosts by way of their adapters (`workload`).

    Returns the activity of every router and of every adapter: as their counters have it, and as links and buses say.
    """
    routers, adapters, flits = system.activity_meter(), system.adapter_meter(), system.flit_meter()
    await workload(system, spec)
    await system.settle()
    seen_routers, seen_adapters = flits.read()
    return {
        "routers": [one.as_list() for one in routers.read().routers],
        "adapters": [one.as_list() for one in adapters.read()],
        "seen_routers": [one.as_list() for one in seen_routers],
        "seen_adapters": [one.as_list() for one in seen_adapters],
    }
