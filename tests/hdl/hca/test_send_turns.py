"""Messages of several packets at the send side: turns of the classes, set-ups in between, closing."""

import pytest
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.hdl.nic.owners.translation import Scope
from support.hdl.hca.adapter_host import DATA, KEY, PAGE, TABLES
from support.hdl.hca.send_bench import CONFIG, PEER, Bench, packets

GOOD = {"bytes": 20, "address": DATA, "region": 1}
POISON = 0xEE
SET_UP_CYCLES = 150
"""Bound of a set-up's wait in these tests: a check, a packet's addresses and its data at a latency of 6 cycles."""


def test_a_long_message_whose_vl_stands_holds_up_no_other_class():
    """Neither a higher class nor a lower one, and not the set-ups; its rest is sent when its VL moves."""
    bench = Bench(config=CONFIG.replace(classes=3), latency=5)
    host = bench.host
    data = bench.fill(DATA, 400)

    async def script(ctx):
        for qp in range(3):
            await host.open(ctx, qp, owner=1, traffic_class=qp, peer=(PEER, qp))
        bench.link.blocked.add(0)
        for tag in (1, 2):
            host.element(1, **GOOD | {"tag": tag, "vl": 0, "bytes": 400})
        await host.doorbell(ctx, 1)
        await ctx.tick().repeat(300)
        for qp in (0, 2):
            for tag in range(10 * qp + 10, 10 * qp + 14):
                host.element(qp, **GOOD | {"tag": tag, "vl": 1, "bytes": 200})
            await host.doorbell(ctx, qp)
        await ctx.tick().repeat(1200)
        assert [entry["tag"] for entry in host.completions(0)] == [*range(10, 14), *range(30, 34)]
        assert not ctx.get(bench.hca.quiet)
        bench.link.blocked.clear()
        await host.rest(ctx)
        assert [(one["tag"], one["status"]) for one in host.completions(0)] == [(1, 0), (2, 0)]

    bench.run(script)
    whole = {}
    for vl, header, payload, trailer in packets(bench.link.flits):
        assert trailer["good"]
        if vl == 0:
            whole.setdefault(header["sequence"] & 0xFF, []).append(payload)
    assert b"".join(whole.pop(1)) == data + data
    assert not whole


def test_a_message_of_the_first_class_waits_for_few_packets_of_others():
    """The link is full of long messages of class 1. One of class 0 waits for packets that are begun, no more."""
    bench = Bench(config=CONFIG.replace(classes=2), credits=24, latency=10)
    host = bench.host
    waits = []

    async def script(ctx):
        for qp in range(2):
            await host.open(ctx, qp, owner=1, traffic_class=qp, peer=(PEER, qp))
        for tag in range(4):
            host.element(1, **GOOD | {"tag": tag, "vl": 0, "bytes": 1500})
        await host.doorbell(ctx, 1)
        for _ in range(8):
            await ctx.tick().repeat(37)
            begun = bench.link.cycle
            await host.post(ctx, 0, **GOOD | {"vl": 1})
            while not any(
                flit.vl == 1 and cycle > begun
                for cycle, flit in zip(bench.link.cycles, bench.link.flits, strict=True)
            ):
                await ctx.tick()
            waits.append(bench.link.cycle - begun)
        await host.rest(ctx)

    bench.run(script)
    # An idle adapter takes 25 cycles and twice the latency. Then there are 4 packets of 6 flits that are begun, and
    # what the scheduler and the check of another message take.
    assert max(waits) <= 25 + 2 * 10 + 4 * 6 + 2 * 4 + 10, waits
    sent = [header["sequence"] & 0xFF for _, header, _, _ in packets(bench.link.flits)]
    # Its packets go between those of a message.
    assert sent.count(0) == 8
    assert 0 in sent[5:20]


@pytest.mark.parametrize("stands", [False, True])
@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["region", "page"])
def test_what_was_taken_away_is_never_sent(kind, step, stands):
    """The memory of a message is taken away in every cycle of its reading, and holds other things at once."""
    bench = Bench(latency=6)
    host = bench.host
    bounds, statuses = [], set()

    async def script(ctx):
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        await host.open(ctx, 1, owner=1, traffic_class=1, peer=(PEER, 0))
        for delay in range(1, 120, step):
            place = DATA + 0x1000
            host.memory[place : place + 300] = bytes(range(1, 101)) * 3
            host.memory[DATA : DATA + 300] = bytes(range(1, 101)) * 3
            await host.set_region(ctx, 1, 1)
            await host.set(ctx, "INVALIDATE", scope=Scope.ALL)
            if stands:
                bench.link.blocked.add(0)
            host.element(0, **GOOD | {"bytes": 300, "address": place})
            await host.doorbell(ctx, 0)
            await host.post(ctx, 1, **GOOD | {"bytes": 100, "address": place, "vl": 1})
            await ctx.tick().repeat(delay)
            begun = bench.link.cycle
            if kind == "region":
                await host.set(ctx, "REGION_SET", valid=0, writable=0, key=KEY, owner=1)
            else:
                # The page's frame is another one now, with the same bytes.
                entry = TABLES + PAGE + 4
                host.memory[entry : entry + 4] = (DATA | 1).to_bytes(4, "little")
                await host.set(ctx, "INVALIDATE", scope=Scope.PAGE, region=1, page=1)
            bounds.append(bench.link.cycle - begun)
            host.memory[place : place + 300] = bytes([POISON]) * 300
            await ctx.tick().repeat(60)
            bench.link.blocked.clear()
            await host.rest(ctx)
            statuses.update(entry["status"] for entry in host.completions(0))
            await host.consume(ctx, 0, 1)

    bench.run(script)
    assert max(bounds) <= SET_UP_CYCLES
    for _, _, payload, trailer in packets(bench.link.flits):
        assert trailer["good"]
        assert POISON not in payload
    if kind == "page":
        assert statuses == {CqeStatus.OK}
    else:
        assert CqeStatus.NO_REGION in statuses


def test_a_closed_queue_pair_is_busy_until_its_packets_have_left():
    bench = Bench(latency=3)
    host = bench.host

    async def script(ctx):
        bench.link.blocked.add(0)
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        await host.post(ctx, 0, **GOOD | {"bytes": 400})
        await ctx.tick().repeat(100)
        await host.close(ctx, 0)
        # The message has ended, but two of its packets stand: the link had taken 8 flits.
        await ctx.tick().repeat(100)
        index = await host.get(ctx, "QP_INDEX")
        assert index == {"posted": 1, "ended": 1}
        assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 1}
        await host.set(ctx, "QP_COMMAND", open=1)
        assert await host.count(ctx, "REFUSED") == 1
        bench.link.blocked.clear()
        await host.rest(ctx)
        assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 0}
        await host.set(ctx, "QP_COMMAND", open=1)
        assert await host.get(ctx, "QP_COMMAND") == {"open": 1, "busy": 0}

    bench.run(script)
    assert len(packets(bench.link.flits)) == 3


def test_a_message_that_the_bus_failed_spoils_no_later_one():
    """Its queue pair is closed before its last packet; the next message of the class is good."""
    bench = Bench(latency=3, fails=lambda address: address == DATA + 0x1000)
    host = bench.host

    async def script(ctx):
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        await host.open(ctx, 1, owner=1, peer=(PEER, 0))
        bench.link.blocked.add(0)
        await host.post(ctx, 0, **GOOD | {"bytes": 400, "address": DATA + 0x1000})
        await ctx.tick().repeat(100)
        await host.close(ctx, 0)
        bench.link.blocked.clear()
        await host.post(ctx, 1, **GOOD | {"bytes": 40})
        await host.rest(ctx)
        assert [(one["qp"], one["status"]) for one in host.completions(0)] == [(1, CqeStatus.OK)]

    bench.run(script)
    assert [trailer["good"] for _, _, _, trailer in packets(bench.link.flits)] == [False, False, False, True]
