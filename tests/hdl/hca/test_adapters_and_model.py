"""Random messages between two adapters, over links that spoil packets: the receivers do as the plain model says."""

import os
import random
from collections import Counter

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.hca.layout import CqeStatus
from support.hdl.hca.adapter_host import DATA, KEY, MEMORY_BYTES, QUEUES, RINGS, TABLES, AdapterHost
from support.hdl.hca.completion_model import cqe_fields
from support.hdl.hca.receive_model import Packet, Pair, ReceiveModel
from support.hdl.protection_model import Region

CONFIG = preset(HcaConfig, "tiny")
FIRST = int(os.environ.get("ADAPTERS_SEED", random.randrange(1 << 30)))
"""Seed of the first run. `ADAPTERS_SEED` gives back one that was logged."""
SENT, RECEIVED, BUFFER = DATA, DATA + 0x20000, 512
BAD = RECEIVED + 3 * BUFFER
"""A buffer that the bus does not write."""


class SpoiltPair(wiring.Component):
    """Adapters 0 and 1, joined by links whose tails' CRC is wrong while `spoils` is up."""

    def __init__(self):
        super().__init__({})
        self.adapters = [Hca(CONFIG, downstream_flits=CONFIG.port.input_buffer_flits) for _ in range(2)]
        self.spoils = Signal(2)

    def elaborate(self, platform):
        m = Module()
        for node, adapter in enumerate(self.adapters):
            m.submodules[f"adapter_{node}"] = adapter
            m.d.comb += adapter.node.eq(node)
            tx, rx = adapter.tx, self.adapters[1 - node].rx
            for name, member in tx.signature.members.items():
                out, into = getattr(tx, name), getattr(rx, name)
                m.d.comb += into.eq(out) if member.flow is wiring.Out else out.eq(into)
            m.d.comb += rx.payload.data.eq(tx.payload.data ^ (self.spoils[node] & tx.payload.tail))
        return m


class Side:
    """An adapter, its host and the model of its receive side, which sees the packets in the order of the engine."""

    def __init__(self, node, hca, rng):
        self.node, self.hca = node, hca
        fails = lambda address: BAD <= address < BAD + BUFFER  # noqa: E731
        self.host = AdapterHost(hca, rng=rng, stall=0.1, latency=rng.choice([3, 20]), fails=fails)
        self.model = ReceiveModel(CONFIG, bytearray(MEMORY_BYTES), fails)
        self.words, self.posts, self.buffers = [], [], 0
        self.lives = [0] * 4

    async def watch(self, ctx):
        """Packets into the model, ends of messages beside its own."""
        flits, post = self.hca.receive.flits, self.hca.receive.post
        while True:
            _, _, taken, flit, posted, entry = await ctx.tick().sample(
                flits.valid & flits.ready, flits.payload, post.valid & post.ready, post.payload
            )
            if taken:
                self.words.append(flit.data)
                if flit.tail:
                    self.model.packet(Packet.of(self.words, CONFIG, flit.vl))
                    self.words = []
            if posted:
                self.posts.append((entry.queue, entry.entry.as_bits()))

    async def open(self, ctx, qp, peer, peer_life=0):
        lives = {"life": self.lives[qp], "peer_life": peer_life}
        await self.host.open(ctx, qp, owner=1, traffic_class=qp % 2, queue=qp % 2, peer=peer, **lives)
        ring = self.host.receive_ring(qp)
        self.model.setup(qp, Pair(1, qp % 2, ring, self.host.ring_log2, peer, **lives))

    async def close(self, ctx, qp):
        await self.host.close(ctx, qp)
        self.model.setup(qp, None)
        if self.host.owners.pop(qp, None) is not None:
            self.lives[qp] = (self.lives[qp] + 1) % 256

    async def post_buffer(self, ctx, qp, size):
        place = RECEIVED + self.buffers % 64 * BUFFER
        for memory in (self.host.memory, self.model.memory):
            memory[place : place + BUFFER] = bytes(BUFFER)
        tag, self.buffers = self.buffers % (1 << 16), self.buffers + 1
        await self.host.post_buffer(ctx, qp, address=place, bytes=size, tag=tag, region=1)
        for area in (slice(RINGS, QUEUES), slice(TABLES, DATA)):
            self.model.memory[area] = self.host.memory[area]
        self.model.doorbell(1, qp, self.host.received[qp])
        return tag, place

    def check(self, ctx):
        """The receive side has done as the model says."""
        assert self.posts == self.model.posts
        area = slice(RECEIVED, MEMORY_BYTES)
        assert self.host.memory[area] == self.model.memory[area]
        for name, count in self.model.counts.items():
            assert ctx.get(getattr(self.hca.receive, name)) == count % (1 << 32), name


def run(seed, rounds):
    """Returns the counters of both models, and the statuses of all ends of received messages."""
    print(f"ADAPTERS_SEED={seed}")
    rng, pair = random.Random(seed), SpoiltPair()
    sides = [Side(node, adapter, rng) for node, adapter in enumerate(pair.adapters)]
    simulator = Simulator(pair)
    simulator.add_clock(1e-6)
    contents = []  # of messages, whose number is their immediate data

    async def rest(ctx):
        for _ in range(100):
            for side in sides:
                await side.host.rest(ctx, 6000)
            if all(ctx.get(side.hca.quiet) for side in sides):
                return
        raise AssertionError("never quiet at once")

    async def spoil(ctx):
        while True:
            ctx.set(pair.spoils, rng.getrandbits(2) if rng.random() < 0.05 else 0)
            await ctx.tick()

    async def set_up(ctx, side):
        """A queue pair is closed, and mostly opened again. Its peer learns of it, or stays with the life of before."""
        qp, other = rng.randrange(4), sides[1 - side.node]
        peer_qp = rng.choice([None, qp, qp, rng.randrange(4)])
        ends = [(side, qp), (other, peer_qp)] if peer_qp is not None and rng.random() < 0.6 else [(side, qp)]
        # An open queue pair is not opened.
        for one, number in ends:
            await one.close(ctx, number)
        await rest(ctx)
        if rng.random() < 0.2:
            return
        for one, number in ends:
            there, at = sides[1 - one.node], qp if one is other else peer_qp
            if at is None:
                await one.open(ctx, number, None)
            else:
                await one.open(ctx, number, (there.node, at), there.lives[at])

    async def send(ctx, side, qp):
        size = rng.choice([0, 1, 16, 64, 64, 65, 200, 500])
        data = rng.randbytes(size)
        place = SENT + len(contents) % 64 * BUFFER
        side.host.memory[place : place + size] = data
        side.host.element(
            qp,
            opcode=2,
            immediate=len(contents),
            destination=1 - side.node,
            destination_qp=(there := rng.randrange(4)),
            destination_life=(sides[1 - side.node].lives[there] - (rng.random() < 0.2)) % 256,
            vl=qp % 2,
            tag=len(contents) % (1 << 16),
            bytes=size,
            address=place,
            region=1,
        )
        contents.append(data)

    async def script(ctx):
        for node, side in enumerate(sides):
            for queue in range(2):
                await side.host.set_queue(ctx, queue, 1)
            await side.host.set_region(ctx, 1, 1)
            await side.host.route(ctx, 1 - node)
            region = Region(KEY, 1, DATA, MEMORY_BYTES - DATA, TABLES + 4096)
            side.model.regions[1] = region
            for qp in range(4):
                await side.open(ctx, qp, (1 - node, qp) if qp < 2 else None)
        for _ in range(rounds):
            places = {}
            for side in sides:
                if rng.random() < 0.2:
                    await set_up(ctx, side)
                for qp in list(side.host.owners):
                    waiting = side.model.pairs[qp].posted - side.model.pairs[qp].taken
                    for _ in range(rng.randint(0, max(0, 4 - waiting % (1 << 16)))):
                        tag, place = await side.post_buffer(ctx, qp, rng.choice([30, 512, 512, 512]))
                        places[side.node, tag] = place
            await rest(ctx)
            seen = [len(side.posts) for side in sides]
            for side in sides:
                for qp in list(side.host.owners):
                    for _ in range(rng.randint(0, 2)):
                        await send(ctx, side, qp)
                    await side.host.doorbell(ctx, qp)
            await rest(ctx)
            for side, before in zip(sides, seen, strict=True):
                side.check(ctx)
                # A good end has the whole of its message in its buffer, wherever it was sent from.
                for _, bits in side.posts[before:]:
                    entry = cqe_fields(bits)
                    place = places.get((side.node, entry["tag"]))
                    if entry["status"] == CqeStatus.OK and place is not None:
                        data = bytes(side.host.memory[place : place + entry["bytes"]])
                        assert data == contents[entry["immediate"]]
                for queue in range(2):
                    side.host.completions(queue)
                    await side.host.consume(ctx, queue, 1)

    for side in sides:
        side.host.add(simulator)
        simulator.add_testbench(side.watch, background=True)
    simulator.add_testbench(spoil, background=True)
    simulator.add_testbench(script)
    simulator.run()
    counts = {name: sum(side.model.counts[name] for side in sides) for name in sides[0].model.counts}
    statuses = [cqe_fields(bits)["status"] for side in sides for _, bits in side.posts]
    print(len(contents), "messages", counts, {s: statuses.count(s) for s in set(statuses)})
    return counts, statuses


def test_receivers_do_as_the_plain_model():
    _, statuses = run(FIRST, 4)
    assert CqeStatus.OK in statuses


@pytest.mark.full
def test_receivers_do_as_the_plain_model_for_long():
    """Every kind of drop and of end comes up in the three runs together."""
    counts, statuses = Counter(), set()
    for seed in range(FIRST, FIRST + 3):
        more, ends = run(seed, 60)
        counts.update(more)
        statuses.update(ends)
    kinds = ("crc_errors", "closed_drops", "foreign_drops", "life_drops", "order_drops", "rest_drops")
    assert min(counts[name] for name in (*kinds, "buffer_drops", "ended_drops", "bus_errors")) > 0
    assert {CqeStatus.OK, CqeStatus.TOO_LONG, CqeStatus.PARTIAL, CqeStatus.BUS_ERROR} <= statuses
