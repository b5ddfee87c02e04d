"""Latency and throughput of an adapter's send side, as its documentation states them."""

import pytest
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.packet import HEADER_LAYOUT
from support.hdl.hca.adapter_host import DATA
from support.hdl.hca.send_bench import CONFIG as BARE
from support.hdl.hca.send_bench import PEER, POSTED, Bench

CONFIG = preset(HcaConfig, "tiny").replace(
    packet_flits=40, burst_beats=64, class_queue_entries=64, classes=3, translation_entries=32
)
PAYLOAD = 38 * 16
BUSY = 0.98
"""Part of the cycles in which the link is to carry a flit, while messages of 40 flits wait."""
IDLE_CYCLES, EMPTY_CYCLES = 25, 15
"""Cycles from a doorbell to its header beside the bus's latency: twice of a message, once of one without payload."""
POSTED_CYCLES, POSTED_EMPTY_CYCLES = 23, 13
"""The same where elements are posted: once the bus's latency of a message, nothing of one without payload."""


@pytest.mark.parametrize(
    ("wqe", "vls", "traffic_classes", "connected"),
    [
        ("fetched", (0,), (0,), True),
        ("fetched", (1,), (2,), False),
        ("fetched", (0, 1), (0, 1), True),
        ("posted", (0,), (0,), True),
    ],
)
def test_messages_of_one_packet_keep_the_link_busy(wqe, vls, traffic_classes, connected):
    """38 beats of data are read for each message, and 2 of its element where that is fetched."""
    config = CONFIG.replace(wqe=wqe, posted_entries=64)
    bench = Bench(config=config, credits=80, latency=20, ring_log2=6)
    host, messages = bench.host, 32
    beats = [0]

    async def script(ctx):
        for i, (vl, traffic_class) in enumerate(zip(vls, traffic_classes, strict=True)):
            await host.open(
                ctx, i, owner=1, traffic_class=traffic_class, peer=(PEER, i) if connected else None
            )
            for k in range(messages):
                host.element(
                    i,
                    destination=PEER,
                    destination_qp=7,
                    vl=vl,
                    bytes=PAYLOAD,
                    # Four pages, which the adapter soon knows.
                    address=DATA + k % 16 * 1024,
                    region=1,
                )
        for i in range(len(vls)):
            await host.doorbell(ctx, i)
        await host.rest(ctx)
        assert await host.count(ctx, "MESSAGES_SENT") == messages * len(vls)

    async def count(ctx):
        bus = bench.hca.bus
        async for _, _, moved in ctx.tick().sample(bus.rvalid & bus.rready):
            beats[0] += moved

    bench.simulator.add_testbench(count, background=True)
    bench.run(script)
    pages = 4
    per_message = 38 + (2 if wqe == "fetched" else 0)
    assert beats[0] == per_message * messages * len(vls) + pages
    # All four pages are known after 16 messages of each; a page that is not costs the bus's latency and more.
    cycles = bench.link.cycles[16 * 40 * len(vls) :]
    assert len(cycles) / (cycles[-1] - cycles[0] + 1) >= BUSY


@pytest.mark.parametrize("config", [BARE, POSTED], ids=["fetched", "posted"])
@pytest.mark.parametrize("latency", [5, 20])
@pytest.mark.parametrize("size", [0, 40])
def test_the_time_from_a_doorbell_to_the_header_on_the_link(config, latency, size):
    bench = Bench(config=config, latency=latency)
    host, begun = bench.host, []

    async def script(ctx):
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        for _ in range(2):  # the second finds its page in the cache
            host.element(0, bytes=size, address=DATA, region=1)
            await host.rest(ctx)
            await host.doorbell(ctx, 0)
            begun.append(bench.link.cycle)
            await host.rest(ctx)

    bench.run(script)
    heads = [cycle for cycle, flit in zip(bench.link.cycles, bench.link.flits, strict=True) if flit.head]
    # The doorbell was taken in the cycle before `begun`.
    if config.wqe == "posted":
        expected = POSTED_CYCLES + latency if size else POSTED_EMPTY_CYCLES
    else:
        expected = IDLE_CYCLES + 2 * latency if size else EMPTY_CYCLES + latency
    assert heads[1] - begun[1] + 1 == expected


@pytest.mark.parametrize("vls", [(0, 1), pytest.param((0, 0), marks=pytest.mark.full)])
def test_long_messages_of_two_classes_keep_the_link_busy(vls):
    """They take turns packet by packet, each of which is checked anew, and that costs the link nothing."""
    bench = Bench(config=CONFIG, credits=80, latency=20)
    host, messages, packets = bench.host, 4, 5

    async def script(ctx):
        for i, vl in enumerate(vls):
            await host.open(ctx, i, owner=1, traffic_class=i, peer=(PEER, i))
            for _ in range(messages):
                host.element(i, vl=vl, bytes=packets * PAYLOAD, address=DATA, region=1)
        for i in range(2):
            await host.doorbell(ctx, i)
        await host.rest(ctx)
        assert await host.count(ctx, "MESSAGES_SENT") == 2 * messages

    bench.run(script)
    heads = [flit for flit in bench.link.flits if flit.head]
    qps = [flit.data >> HEADER_LAYOUT["sequence"].offset & 0xFF for flit in heads]
    # The second class begins before the first has sent all.
    assert qps.index(1) < 2 * packets
    # The page is known after the first messages.
    cycles = bench.link.cycles[2 * packets * 40 :]
    assert len(cycles) / (cycles[-1] - cycles[0] + 1) >= BUSY
