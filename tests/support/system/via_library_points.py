"""VIPL over VIA's firmware on small cards: coroutines of `test_via_library.py`, run in the simulator."""

from __future__ import annotations

import random

from lanikai.firmware.via.config import design
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.sim.experiments.measure.hosts import start_hosts
from lanikai.sim.host.config import KitConfig

from ..sim.via_lives import live
from ..sim.via_processes import quiet

FREE = KitConfig(**dict.fromkeys(KitConfig.model_fields, 20))
"""Calls that cost next to nothing: the card's time is what a test is about."""


class World:
    """A cluster's clock with what `support.firmware.scheduler.World` has beside."""

    def __init__(self, cluster):
        self._clock = cluster.clock
        self.sleep, self.spawn = cluster.clock.sleep, cluster.clock.spawn
        self.flag = cluster.nodes[0].host.flag

    @property
    def cycle(self):
        return self._clock.cycle

    async def gather(self, *coroutines):
        results, done = [None] * len(coroutines), self.flag()
        left = len(coroutines)

        async def one(place, coroutine):
            nonlocal left
            results[place] = await coroutine
            left -= 1
            if not left:
                done.set()

        for place, coroutine in enumerate(coroutines):
            self.spawn(one(place, coroutine), f"gather[{place}]")
        await done.wait()
        return results


class ClusterNet:
    """A cluster as `support.sim.via_card.Net`: agents, a world, the programs."""

    def __init__(self, cluster, name, **choices):
        self.cluster, self.world, self.programs = cluster, World(cluster), []
        config = design(name, queue_entries=4, data_segments=2, **choices)
        self.agents = start_hosts(cluster, "via", config=config, costs=FREE, started=self.programs.append)

    async def left(self):
        """What each agent has given away, and which VIs its card has as connected."""
        found = []
        for agent in self.agents:
            open_words = [
                await agent.bus.read(agent.layout.record(channel) + 8 - SRAM_BASE)
                for channel in range(1, agent.nic.channels)
            ]
            found.append(
                [
                    agent.pages.free_bytes,
                    [agent.free(what) for what in ("owner", "channel", "completion queue")],
                    len(agent.regions._free),
                    len(agent.vis) + len(agent.nics) + len(agent.completion_queues) + len(agent._queues),
                    agent.admission.used_ns,
                    len(agent.connector.waiters) + len(agent.connector.requests),
                    len(agent.connector.handles) + len(agent.connector.peers),
                    [word >> 31 for word in open_words],
                ]
            )
        return found


async def lives(cluster, spec):
    """Random lives, one after another; returns what was left before and after each, and what they met."""
    net = ClusterNet(cluster, spec["design"])
    first, found, connected, codes = None, [], 0, set()
    for seed in spec["seeds"]:
        rng = random.Random(seed)
        # Everything has booted before what is left is counted.
        await net.world.sleep(20_000)
        first = first or await net.left()
        some = await live(net, rng)
        for agent in net.agents:
            for nic in list(agent.nics):
                await agent.kill(nic)
        await quiet(net)
        found.append(await net.left() == first)
        connected += sum(life.connected for life in some)
        codes |= {code.name for life in some for code in life.codes}
    return {
        "same": found,
        "connected": connected,
        "codes": sorted(codes),
        "cycle": net.world.cycle,
        "drops": [dict(program.drops) for program in net.programs],
    }
