"""VIPL over VIA's firmware on small cards: coroutines of `test_via_library.py`, run in the simulator."""

from __future__ import annotations

import contextlib
import random

from lanikai.firmware.via.config import design
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.sim.experiments.measure.hosts import start_hosts
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.kit.errors import RefusedError
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import Reliability, ViState
from lanikai.sim.host.via.descriptor import Op, Segment
from lanikai.sim.host.via.errors import VipError

from ..sim.via_lives import live
from ..sim.via_processes import MEMORY_BYTES, End, join, pair, quiet

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
        """The things that each agent has given away, and the VIs that its card has as connected."""
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


async def lives(net, spec):
    """Random lives, one after another; returns what was left before and after each, and what they met."""
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


async def hostile(net, spec):
    """Two processes exchange messages. A third one writes random words all over its pages, its ring and its shadows,
    and rings what it likes, `tries` times. Returns how the messages fared, and what the card refused."""
    rng = random.Random(spec["seed"])
    a, b = await pair(net, queues=8)
    third = await End.open(net.agents[0])
    other = await End.open(net.agents[1])
    await join(net, third, other)
    refused, over, same = 0, False, 0
    other.memory.write(b"Z" * MEMORY_BYTES)

    async def attack():
        nonlocal refused, over
        page, ring = third.nic.page, third.vi.ring.data
        for _ in range(spec["tries"]):
            place = rng.randrange(len(ring) - 8)
            ring[place : place + 8] = list(rng.randbytes(8))
            if rng.random() < 0.3:
                # A descriptor that is almost a good one.
                slot = third.descriptor(rng.randrange(9000), rng.randrange(300)).request
                content = slot.pack(third.vi.send.form)
                ring[: len(content)] = list(content)
            number, word = rng.randrange(8), rng.randrange(1 << 20)
            call = rng.choice(
                [
                    lambda: page.ring(third.vi.channel, word),  # noqa: B023
                    lambda: page.ring(third.vi.channel, word, receive=True),  # noqa: B023
                    lambda: page.ring(number, word),  # noqa: B023
                    lambda: page.ring(number, word, receive=True),  # noqa: B023
                    lambda: page.consume(number, word % 65536, arm=True),  # noqa: B023
                    lambda: page.shadow(4 * number, (word,)),  # noqa: B023
                ]
            )
            try:
                await call()
            except RefusedError:
                refused += 1
        over = True

    async def work(least=0):
        nonlocal same
        count, start = 0, net.world.cycle
        while count < least or not over:
            count += 1
            a.memory.write(bytes([count % 256]) * 64)
            await vipl.VipPostRecv(b.vi, b.descriptor())
            await vipl.VipPostSend(a.vi, a.descriptor())
            for end, done in ((a, vipl.VipSendDone), (b, vipl.VipRecvDone)):
                assert (await vipl.VipCQWait(end.vi.told[0], 100))[0] is end.vi
                assert not (await done(end.vi)).failed
            same += b.memory.read(64) == bytes([count % 256]) * 64
        return count, (net.world.cycle - start) / count

    over = True
    before, alone = await work(10)
    over = False
    (count, cycles), _ = await net.world.gather(work(2), attack())
    intact = other.memory.read() == b"Z" * MEMORY_BYTES
    # The card goes on, for the third process too, once its VI is made anew.
    await vipl.VipDisconnect(third.vi)
    await net.agents[0].kill(third.nic)
    await net.agents[1].kill(other.nic)
    await quiet(net)
    return {
        "messages": before + count,
        "slower": cycles / alone,
        "same": same,
        "refused": refused,
        "intact": intact,
        "state": a.vi.state.name,
        "left": [len(agent.vis) for agent in net.agents],
    }


async def breaks(net, spec):
    """Each level: a message for which there is no descriptor, then a remote write that is not allowed. Returns the
    bits of the descriptor, the states of both ends and the reports of the first, after each."""
    found = {}
    for level in Reliability:
        a, b = await pair(net, reliability=level)
        reports = []
        await vipl.VipErrorCallback(a.nic, None, lambda _, report: reports.append(report.code.name))  # noqa: B023
        for what in ("no descriptor", "not allowed"):
            fields = {"op": Op.RDMA_WRITE, "remote": Segment(b.memory.start, b.handle)}
            sent = a.descriptor(**(fields if what == "not allowed" else {}))
            await vipl.VipPostRecv(a.vi, waiting := a.descriptor(512))
            await vipl.VipPostSend(a.vi, sent)
            for queue, descriptor in ((vipl.VipSendWait, sent), (vipl.VipRecvWait, waiting)):
                if level is Reliability.UNRELIABLE and descriptor is waiting:
                    continue
                try:
                    assert await queue(a.vi, 0.5) is descriptor
                except VipError as error:
                    assert error.descriptor is descriptor
            await quiet(net)
            ends = [a.vi.state.name, b.vi.state.name]
            found[f"{level.name}: {what}"] = [sent.errors, waiting.errors, *ends, *reports]
            reports.clear()
            for end in (a, b):
                if end.vi.state is not ViState.IDLE:
                    await vipl.VipDisconnect(end.vi)
            await quiet(net)
            for end in (a, b):
                if end.vi.state is ViState.ERROR:
                    await vipl.VipDisconnect(end.vi)
                while len(end.vi.receive):
                    with contextlib.suppress(VipError):
                        await vipl.VipRecvDone(end.vi)
            await join(net, a, b)
        for end in (a, b):
            await end.close()
        await quiet(net)
    return found


PARTS = {"lives": lives, "breaks": breaks, "hostile": hostile}


async def parts(cluster, spec):
    """Some of the parts above, one after another on the same cards: name -> its settings. `hostile` is the last."""
    net = ClusterNet(cluster, spec["design"])
    return {name: await PARTS[name](net, settings) for name, settings in spec["parts"].items()}
