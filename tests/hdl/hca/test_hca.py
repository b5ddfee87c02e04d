"""Two adapters back to back over their links: messages between the memories of two hosts."""

import random
from functools import partial

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.hca.layout import TIME_BITS, TRAILER_LAYOUT, CqeStatus
from lanikai.hdl.monitors.axi4 import Axi4Monitor
from support.hdl.hca.adapter_host import DATA, AdapterHost

CONFIG = preset(HcaConfig, "tiny")
START = (1 << TIME_BITS) - 1000
"""Time at the beginning: it wraps in every test."""


class Two(wiring.Component):
    """Adapters 0 and 1, the links of each at the other, their time, and a monitor on each bus."""

    def __init__(self, config):
        super().__init__({})
        self.adapters = [Hca(config, downstream_flits=config.port.input_buffer_flits) for _ in range(2)]
        bus = self.adapters[0].bus.signature
        self.monitors = [Axi4Monitor.of(bus, outstanding=32) for _ in range(2)]

    def elaborate(self, platform):
        m = Module()
        now = Signal(TIME_BITS, init=START)
        m.d.sync += now.eq(now + 1)
        for i, (adapter, monitor) in enumerate(zip(self.adapters, self.monitors, strict=True)):
            m.submodules[f"adapter_{i}"] = adapter
            m.submodules[f"monitor_{i}"] = monitor
            m.d.comb += [adapter.node.eq(i), adapter.now.eq(now)]
            m.d.comb += [
                getattr(monitor, name).eq(getattr(adapter.bus, name))
                for name in adapter.bus.signature.members
            ]
        a, b = self.adapters
        wiring.connect(m, a.tx, b.rx)
        wiring.connect(m, b.tx, a.rx)
        return m


class Bench:
    """The two, and their hosts."""

    def __init__(self, *, seed, config=CONFIG, **host):
        print(f"seed {seed}")
        self.rng = random.Random(seed)
        self.two = Two(config)
        self.hosts = [AdapterHost(adapter, rng=self.rng, **host) for adapter in self.two.adapters]
        self.simulator = Simulator(self.two)
        self.simulator.add_clock(1e-6)
        for host_ in self.hosts:
            host_.add(self.simulator)
        self.simulator.add_testbench(self.watch, background=True)
        self.departures = {}
        for node in range(2):
            self.simulator.add_testbench(partial(self.depart, node), background=True)

    async def watch(self, ctx):
        while True:
            _, _, *broken = await ctx.tick().sample(*(monitor.violation for monitor in self.two.monitors))
            assert not any(one.as_bits() for one in broken), broken

    async def depart(self, node, ctx):
        """Notes the times of the last header of each message that is on the link as a whole, by node and VL.

        They are when it was put into the buffer of its VL, and when it was on the link.
        """
        headers, begun = {}, {}
        tx, send = self.two.adapters[node].tx, self.two.adapters[node].send.send
        now = START
        while True:
            _, _, puts, put, valid, flit = await ctx.tick().sample(
                send.valid & send.ready & send.payload.head, send.payload.vl, tx.valid, tx.payload
            )
            if puts:
                begun.setdefault(put, []).append(now)
            if valid:
                headers.setdefault(flit.vl, now)
                if flit.tail:
                    header, trailer = headers.pop(flit.vl), TRAILER_LAYOUT.from_bits(int(flit.data))
                    waited = (header - begun[flit.vl].pop(0)) % (1 << TIME_BITS)
                    if trailer.last:
                        self.departures.setdefault((node, flit.vl), []).append((waited, header))
            now = (now + 1) % (1 << TIME_BITS)

    def run(self, script):
        async def bench(ctx):
            for node, host in enumerate(self.hosts):
                await host.set_queue(ctx, 0, 1)
                await host.set_region(ctx, 1, 1)
                await host.route(ctx, 1 - node)
            await script(ctx)

        self.simulator.add_testbench(bench)
        self.simulator.run()

    async def rest(self, ctx):
        """Waits until both are quiet at once."""
        for _ in range(100):
            for host in self.hosts:
                await host.rest(ctx)
            if all(ctx.get(adapter.quiet) for adapter in self.two.adapters):
                return
        raise AssertionError("never quiet at once")


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.4)])
def test_messages_between_two_adapters_arrive_once_and_in_order(seed, stall):
    bench = Bench(seed=seed, stall=stall, latency=20)
    rng, hosts = bench.rng, bench.hosts
    sent = {(node, qp): [] for node in range(2) for qp in range(4)}
    got = {key: [] for key in sent}
    ended = {key: [] for key in sent}
    buffers = {key: [] for key in sent}
    stamps = {}

    async def collect(ctx):
        for node, host in enumerate(hosts):
            for entry in host.completions(0):
                assert entry["status"] == CqeStatus.OK
                key = node, entry["qp"]
                if not entry["receive"]:
                    ended[key].append((entry["tag"], entry["bytes"]))
                    waited = entry["source"] | entry["source_qp"] << 10
                    stamps.setdefault((node, entry["qp"] // 2), []).append((waited, entry["immediate"]))
                    continue
                place = buffers[key].pop(0)
                assert (entry["source"], entry["source_qp"]) == (1 - node, entry["qp"])
                data = bytes(host.memory[place : place + entry["bytes"]])
                assert not any(host.memory[place + entry["bytes"] : place + 512])
                got[key].append((entry["tag"], entry["immediate"], data))
            await host.consume(ctx, 0, 1)

    async def script(ctx):
        for node, host in enumerate(hosts):
            for qp in range(4):
                peer = (1 - node, qp) if qp < 2 else None
                await host.open(ctx, qp, owner=1, traffic_class=qp % 2, peer=peer)
        tag = 0
        for _ in range(6):
            for node, host in enumerate(hosts):
                for qp in range(4):
                    for _ in range(rng.randint(0, 2)):
                        size = rng.randint(0, 64 if qp > 1 else 500)
                        data = rng.randbytes(size)
                        place = DATA + tag * 512 % 0x18000
                        host.memory[place : place + size] = data
                        other = hosts[1 - node]
                        there = DATA + 0x20000 + tag * 512 % 0x18000
                        other.memory[there : there + 512] = bytes(512)
                        buffers[1 - node, qp].append(there)
                        await other.post_buffer(ctx, qp, address=there, bytes=512, tag=tag & 0xFFFF, region=1)
                        host.element(
                            qp,
                            opcode=2,
                            immediate=tag * 77,
                            destination=1 - node,
                            destination_qp=qp,
                            vl=qp // 2,
                            tag=tag,
                            bytes=size,
                            address=place,
                            region=1,
                        )
                        sent[node, qp].append((tag, data))
                        tag += 1
            for qp in rng.sample(range(4), 4):
                for host in hosts:
                    await host.doorbell(ctx, qp)
            if rng.random() < 0.5:
                await bench.rest(ctx)
                await collect(ctx)
        await bench.rest(ctx)
        await collect(ctx)
        for host in hosts:
            total = sum(len(messages) for messages in sent.values())
            both = await host.count(ctx, "MESSAGES_SENT") + sum(
                len(sent[1 - node, qp]) for node in range(2) if hosts[node] is host for qp in range(4)
            )
            assert both == total

    bench.run(script)
    assert sum(len(messages) for messages in sent.values()) > 20
    assert stamps == bench.departures
    assert any(one < START for times in stamps.values() for _, one in times)
    for (node, qp), messages in sent.items():
        assert ended[node, qp] == [(tag, len(data)) for tag, data in messages]
        assert got[1 - node, qp] == [(tag, tag * 77, data) for tag, data in messages]
