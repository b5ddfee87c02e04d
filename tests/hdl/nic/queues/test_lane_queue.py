# amaranth: UnusedElaboratable=no
"""The send engine's queues a VL against lists in Python, and the whole card with packet buffers, by its registers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.queues.dma_queue import IN_ENGINE
from lanikai.hdl.nic.queues.lane_queue import LaneDmaQueue
from lanikai.hdl.packet import Header, packet_flits

from ..test_nic import Card


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize(("vls", "entries"), [(1, 2), (2, 3), (4, 2), (16, 4), (5, 2)])
def test_queues_of_vls_against_lists(vls: int, entries: int, registered: bool) -> None:
    """Entries that go into a VL come out in order. Only VLs that are allowed have turns, the hungry ones before others.
    Each entry's tag comes back. With registers the choice is by what was there 6 cycles before, and stands."""
    rng = random.Random(vls)
    dut = LaneDmaQueue(vls=vls, entries=entries, registered=registered)
    # Of each cycle: the VLs that might have a turn.
    past: list[list[int]] = []
    waiting: list[list[int]] = [[] for _ in range(vls)]
    inside: list[tuple[int, bool]] = []
    results: list[int] = []
    counts = {"started": 0, "refused": 0, "overtaken": 0}

    async def bench(ctx: Any) -> None:
        allowed, hungry, shown, idle = 0, 0, None, 0
        for cycle in range(1800 if registered else 700):
            busy = cycle < (1200 if registered else 600)
            vl, tag, notify = rng.randrange(min(16, vls + 1)), rng.randrange(256), rng.random() < 0.5
            submit = busy and rng.random() < 0.7
            steady = registered and cycle % 8 and busy
            allowed = allowed if steady else rng.getrandbits(vls) if busy else (1 << vls) - 1
            hungry = hungry if steady else rng.getrandbits(vls)
            ready = rng.random() < 0.6
            done = bool(inside) and rng.random() < 0.6
            take = rng.random() < 0.6
            ctx.set(dut.submit.valid, submit)
            ctx.set(
                dut.submit.payload,
                {"command": {"sram_address": cycle, "vl": vl}, "tag": tag, "notify": notify},
            )
            for name, value in {"allowed": allowed, "hungry": hungry, "done": done, "take": take}.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.start.ready, ready)

            able = [v for v in range(vls) if waiting[v] and allowed >> v & 1]
            able = [v for v in able if hungry >> v & 1] or able
            room = vl < vls and len(waiting[vl]) < entries
            assert ctx.get(dut.submit.ready) == room
            assert ctx.get(dut.level) == sum(map(len, waiting))
            assert ctx.get(dut.full) == sum((len(w) == entries) << v for v, w in enumerate(waiting))
            assert ctx.get(dut.waiting) == sum(bool(w) << v for v, w in enumerate(waiting))
            assert ctx.get(dut.room) == all(len(w) < entries for w in waiting)
            assert ctx.get(dut.refused) == counts["refused"] % 256
            assert ctx.get(dut.finished_valid) == bool(results)
            if results:
                assert ctx.get(dut.finished).tag == results[0]
            starts = ctx.get(dut.start.valid) and ready
            # A transfer that asks for notice starts only if there is room for its result.
            promised = len(results) + sum(notified for _, notified in inside)
            past.append(able)
            free = len(inside) < IN_ENGINE and promised < entries + IN_ENGINE
            if registered:
                # A choice takes 6 cycles from the request, and 8 from the one before.
                idle = 0 if ctx.get(dut.start.valid) or not free or not able else idle + 1
                assert idle <= 11 or not all(past[-8:])
                able = (
                    past[-7] if shown is None and len(past) >= 7 else [shown] if shown is not None else able
                )
            elif able and free:
                assert ctx.get(dut.start.valid)
            if ctx.get(dut.start.valid):
                assert able and len(inside) < IN_ENGINE
                head = ctx.get(dut.start.payload)
                assert head.vl in able and (15 not in able or head.vl == 15)
                assert head.sram_address == waiting[head.vl][0] >> 9
                shown = None if ready else head.vl
            if take and results:
                results.pop(0)
            if done:
                ended, notified = inside.pop(0)
                if notified:
                    results.append(ended)
            if starts:
                entry = waiting[head.vl].pop(0)
                inside.append((entry & 255, bool(entry >> 8 & 1)))
                counts["started"] += 1
            if submit and room:
                waiting[vl].append(cycle << 9 | notify << 8 | tag)
            counts["refused"] += submit and not room
            await ctx.tick()
        assert not any(waiting)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert counts["started"] > 60 and counts["refused"] > 10


def test_turns_go_round() -> None:
    """No VL that is allowed waits for more than one packet of each other one."""
    dut = LaneDmaQueue(vls=4, entries=2)
    served: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.allowed, 0b1111)
        ctx.set(dut.start.ready, 1)
        ctx.set(dut.done, 1)
        for cycle in range(80):
            ctx.set(dut.submit.valid, 1)
            ctx.set(dut.submit.payload, {"command": {"vl": cycle % 4}})
            if ctx.get(dut.start.valid):
                served.append(ctx.get(dut.start.payload).vl)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(served) > 60
    for i in range(len(served) - 8):
        assert set(served[i : i + 8]) == {0, 1, 2, 3}


def test_each_vl_has_one_turn_a_round() -> None:
    """Two packets of each VL wait before the first leaves."""
    dut = LaneDmaQueue(vls=4, entries=2)
    served: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.allowed, 0b1111)
        ctx.set(dut.done, 1)
        for number in range(8):
            ctx.set(dut.submit.valid, 1)
            ctx.set(dut.submit.payload, {"command": {"vl": number // 2}})
            await ctx.tick()
        ctx.set(dut.submit.valid, 0)
        ctx.set(dut.start.ready, 1)
        for _ in range(16):
            if ctx.get(dut.start.valid):
                served.append(ctx.get(dut.start.payload).vl)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert sorted(served[:4]) == [0, 1, 2, 3] and served[4:] == served[:4]


LINK = LinkConfig(flit_bits=32, vls=4, rate_num=1, rate_den=2)
CARD = preset(
    NicConfig,
    "tiny",
    link=LINK,
    mtu_bytes=64,
    input_buffer_flits=21,
    send_queue_entries=4,
    receive_queue_entries=2,
    vl_packets=2,
    vl_arbiter="table_fast",
    vl_table_entries=4,
)


def test_a_held_vl_holds_up_no_other_through_the_whole_card() -> None:
    """The link is looped back. While VL 0 is held at the receiver its buffers and queue fill up, and VLs 1 to 3 flow.

    Then it is let go, and everything has come, in order in each VL.
    """
    card = Card(CARD, seed=2)
    sizes = [64, 40, 64, 12, 3, 64]
    got: list[tuple[int, int]] = []
    tags: list[tuple[int, int]] = []

    async def firmware(ctx: Any, c: Any) -> None:
        async def send(vl: int, number: int, size: int) -> None:
            header = Header(length=size, sequence=number).pack()
            slot = 0x400 + 0x80 * (number + 8 * vl)
            for word in range(4):
                await c.access(ctx, slot + 4 * word, header >> 32 * word & 0xFFFFFFFF)
            await c.write(ctx, "SEND_ADDRESS", address=slot)
            await c.write(ctx, "SEND_TAG", tag=16 * vl + number, notify=1)
            await c.write(ctx, "SEND_CONTROL", bytes=size, vl=vl)

        async def receive() -> None:
            """Take the packets that have been sent and those that have come, and arm a buffer for the next packet."""
            sent = await c.read(ctx, "SEND_FINISHED")
            if sent["valid"]:
                tags.append((sent["tag"] // 16, sent["tag"] % 16))
            found = await c.read(ctx, "RECEIVE_FINISHED")
            if found["valid"]:
                words = [await c.access(ctx, 0x1800 + 0x80 * found["tag"] + 4 * i) for i in range(4)]
                header = Header.unpack(sum(word << 32 * i for i, word in enumerate(words)))
                assert header.sequence == sum(vl == found["vl"] for vl, _ in got)
                got.append((found["vl"], found["bytes"]))
                await arm(found["tag"])

        async def arm(tag: int) -> None:
            await c.write(ctx, "RECEIVE_ADDRESS", address=0x1800 + 0x80 * tag)
            await c.write(ctx, "RECEIVE_TAG", tag=tag, notify=1)
            await c.write(ctx, "RECEIVE_CONTROL", bytes=64)

        while (await c.read(ctx, "VL_TABLE_COMMIT"))["busy"]:
            pass
        await c.write(ctx, "VL_TABLE_ENTRY", entry=1, vl=2, weight=9)
        await c.write(ctx, "VL_TABLE_COMMIT", limit=255)
        assert (await c.read(ctx, "VL_TABLE_COMMIT"))["busy"]
        await c.write(ctx, "RECEIVE_VLS", hold=1)
        await arm(0)
        await arm(1)
        for number, size in enumerate(sizes):
            await send(0, number, size)
        # Two packets in the receive buffer, by credits; two in the port's; the others wait in the queue.
        for _ in range(60):
            await receive()
        assert not got
        assert (await c.read(ctx, "SEND_VLS")) == {"room": 0b1111, "waiting": 0b0001}
        assert (await c.read(ctx, "RECEIVE_VLS")) == {"hold": 1, "waiting": 0b0001}
        for vl in (1, 2, 3):
            for number, size in enumerate(sizes):
                await send(vl, number, size)
                for _ in range(300):
                    if (await c.read(ctx, "SEND_VLS"))["room"] >> vl & 1:
                        break
                    await receive()
        for _ in range(3000):
            await receive()
            if len(got) == 18:
                break
        assert sorted(got) == sorted((vl, size) for vl in (1, 2, 3) for size in sizes)
        await c.write(ctx, "RECEIVE_VLS", hold=0)
        for _ in range(3000):
            await receive()
            if len(got) == 24:
                break
        for vl in range(4):
            assert [size for v, size in got if v == vl] == sizes
            assert [number for v, number in tags if v == vl] == list(range(6))
        assert (
            not (await c.read(ctx, "SEND_VLS"))["waiting"]
            and not (await c.read(ctx, "RECEIVE_VLS"))["waiting"]
        )
        assert (
            (await c.read(ctx, "CRC_ERRORS"))["packets"]
            == (await c.read(ctx, "LENGTH_ERRORS"))["packets"]
            == 0
        )
        await ctx.tick().repeat(10)
        assert c.credits_out == 0 and c.flits == 4 * sum(packet_flits(size, LINK) for size in sizes)

    card.run(firmware)


@pytest.mark.parametrize(("high", "limit"), [(0, 255), (1, 255), (1, 0)])
def test_tables_written_by_the_registers_share_the_link(high: int, limit: int) -> None:
    """VL 1 has weight 3 and VL 3 weight 1, or VL 1 goes before it by the high table, without or with a limit."""
    card = Card(CARD.replace(input_buffer_flits=63))
    order: list[int] = []

    async def watch(ctx: Any) -> None:
        tx = card.nic.tx
        async for _, _, valid, payload in ctx.tick().sample(tx.valid, tx.payload):
            if valid:
                order.append(payload.vl)

    async def firmware(ctx: Any, c: Any) -> None:
        while (await c.read(ctx, "VL_TABLE_COMMIT"))["busy"]:
            pass
        await c.write(ctx, "VL_TABLE_ENTRY", high=high, entry=2, vl=1, weight=3)
        await c.write(ctx, "VL_TABLE_ENTRY", entry=3, vl=3, weight=1)
        await c.write(ctx, "VL_TABLE_COMMIT", limit=limit)
        for word, value in enumerate([Header(length=64).pack() >> 32 * i & 0xFFFFFFFF for i in range(4)]):
            await c.access(ctx, 0x400 + 4 * word, value)
        while (await c.read(ctx, "VL_TABLE_COMMIT"))["busy"]:
            pass
        await c.write(ctx, "SEND_ADDRESS", address=0x400)
        await c.write(ctx, "RECEIVE_ADDRESS", address=0x800)
        for _ in range(4):
            for vl in (3, 1):
                await c.write(ctx, "SEND_CONTROL", bytes=64, vl=vl)
        while len(order) < 8 * 21:
            if (await c.read(ctx, "RECEIVE_QUEUE"))["room"]:
                await c.write(ctx, "RECEIVE_CONTROL", bytes=64)

    card.simulator.add_process(watch)
    card.run(firmware)
    # While both have flits.
    first = max(order.index(vl) for vl in (1, 3))
    last = min(len(order) - order[::-1].index(vl) for vl in (1, 3))
    both = order[first:last]
    share = both.count(1) / len(both)
    if (high, limit) == (1, 255):
        assert share > 0.97
    else:
        # By the weights; and with limit 0 a flit of the low table for each of the high one.
        assert abs(share - (0.5 if high else 0.75)) < 0.03
