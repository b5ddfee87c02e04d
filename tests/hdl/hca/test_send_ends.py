"""How messages end at the send side: errors, injection control, closed queue pairs, and what holds up whom."""

import pytest
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.injection.policy import SetupKind
from lanikai.hdl.hca.layout import CqeStatus
from support.hdl.counting import Nearly
from support.hdl.hca.adapter_host import DATA, KEY, MEMORY_BYTES, TABLES
from support.hdl.hca.send_bench import CONFIG, PEER, POSTED, Bench, packets

GOOD = {"bytes": 20, "address": DATA, "region": 1, "destination": PEER}
BAD = {
    "opcode 0": ({"opcode": 0}, CqeStatus.FORMAT),
    "opcode 3": ({"opcode": 3}, CqeStatus.FORMAT),
    "VL that is not allowed": ({"vl": 1}, CqeStatus.FORMAT),
    "VL that is not there": ({"vl": 2}, CqeStatus.FORMAT),
    "no route": ({"destination": PEER + 1}, CqeStatus.FORMAT),
    "no such node": ({"destination": 1023}, CqeStatus.FORMAT),
    "more than a packet": ({"bytes": 65}, CqeStatus.TOO_LONG),
    "another key": ({"key": KEY + 1}, CqeStatus.NO_REGION),
    "no such region": ({"region": 0}, CqeStatus.NO_REGION),
    "another's region": ({"region": 2}, CqeStatus.NOT_OWNER),
    "beyond the end": ({"address": MEMORY_BYTES - 16}, CqeStatus.OUTSIDE),
    "before the start": ({"address": DATA - 16}, CqeStatus.OUTSIDE),
    "no multiple of 16": ({"address": DATA + 4}, CqeStatus.MISALIGNED),
    "no page": ({"address": DATA + 0x3000}, CqeStatus.NO_PAGE),
}


def test_a_bad_message_ends_with_its_status_and_nothing_of_it_is_sent():
    bench = Bench(latency=3)
    host = bench.host

    async def script(ctx):
        await host.set_region(ctx, 2, 2)
        host.memory[TABLES + 4096 + 12 : TABLES + 4096 + 16] = bytes(4)
        await host.open(ctx, 0, owner=1, vls=1 | 1 << 2)
        for tag, (fields, _) in enumerate(BAD.values()):
            host.element(0, **GOOD | {"tag": tag, "signaled": 0} | fields)
        host.element(0, **GOOD | {"tag": 99})
        await host.doorbell(ctx, 0)
        await host.rest(ctx)
        ends = [(entry["tag"], entry["status"]) for entry in host.completions(0)]
        assert ends == [*((tag, status) for tag, (_, status) in enumerate(BAD.values())), (99, CqeStatus.OK)]
        assert await host.count(ctx, "MESSAGES_FAILED") == len(BAD)
        assert await host.count(ctx, "SEND_VIOLATIONS") == 7
        assert await host.count(ctx, "MESSAGES_SENT") == 1

    bench.run(script)
    assert len(packets(bench.link.flits)) == 1


def test_what_the_bus_cannot_read_is_told_and_never_taken_for_data():
    bench = Bench(latency=3, fails=lambda address: address in bad)
    host, bad = bench.host, set()
    sizes = {0: 200, 1: 200, 2: 40}

    async def script(ctx):
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        bad.add(host.ring(0) + 16)  # the first element's second beat
        bad.add(DATA + 0x1000 + 80)  # the second message's second packet of four
        for i, size in sizes.items():
            host.element(0, **GOOD | {"tag": i, "bytes": size, "address": DATA + 0x1000 * i})
        await host.doorbell(ctx, 0)
        await host.rest(ctx)
        ends = [(entry["tag"], entry["status"]) for entry in host.completions(0)]
        assert [status for _, status in ends] == [CqeStatus.BUS_ERROR, CqeStatus.BUS_ERROR, CqeStatus.OK]
        assert [tag for tag, _ in ends[1:]] == [1, 2]
        assert await host.count(ctx, "SEND_BUS_ERRORS") == 1

    bench.run(script)
    good = [trailer["good"] for _, _, _, trailer in packets(bench.link.flits)]
    assert good == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("config", "step"),
    [
        (CONFIG, 9),
        (POSTED, 25),
        pytest.param(CONFIG, 1, marks=pytest.mark.full),
        pytest.param(POSTED, 1, marks=pytest.mark.full),
    ],
)
def test_a_queue_pair_is_closed_in_every_state_and_opened_anew(config, step):
    bench = Bench(config=config, latency=6)
    host = bench.host
    posted = ended = 0

    async def script(ctx):
        nonlocal posted, ended
        for delay in range(1, 150, step):
            await host.open(ctx, 1, owner=1, traffic_class=1, peer=(PEER, 0))
            await host.open(ctx, 0, owner=1, traffic_class=1, peer=(PEER, 0))
            for _ in range(7):  # more than its class queue holds
                host.element(1, **GOOD | {"bytes": 150, "tag": delay})
            await host.doorbell(ctx, 1)
            await host.post(ctx, 0, **GOOD | {"tag": 1000 + delay})
            await ctx.tick().repeat(delay)
            before = len([one for one in host.completions(0) if one["qp"] == 1])
            await host.close(ctx, 1)
            # What the completion writer has already is still written.
            await ctx.tick().repeat(30)
            late = host.completions(0)
            await host.rest(ctx)
            after = [one for one in host.completions(0) if one["qp"] == 1]
            assert not after, delay
            index = await host.get(ctx, "QP_INDEX")
            assert index["posted"] == index["ended"], delay
            posted += 7
            ended += before + len([one for one in late if one["qp"] == 1])
            assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 0}
            # The other one is not touched.
            await host.set(ctx, "QP_SELECT", qp=0)
            index = await host.get(ctx, "QP_INDEX")
            assert index["posted"] == index["ended"] == 1
            await host.close(ctx, 0)
            await host.consume(ctx, 0, 1)
        assert await host.count(ctx, "MESSAGES_DROPPED") == posted - ended
        assert await host.count(ctx, "MESSAGES_SENT") == ended + posted // 7
        assert posted // 7 < ended < posted - posted // 7

    bench.run(script)
    packets(bench.link.flits)


def test_opening_is_refused_while_old_messages_are_under_way():
    bench = Bench(latency=3)
    host = bench.host

    async def script(ctx):
        bench.link.blocked.add(0)
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        host.element(0, **GOOD | {"bytes": 400})
        await host.doorbell(ctx, 0)
        await ctx.tick().repeat(100)
        await host.set(ctx, "QP_COMMAND", open=1)  # it is open
        assert await host.count(ctx, "REFUSED") == 1
        await host.close(ctx, 0)
        assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 1}
        await host.set(ctx, "QP_COMMAND", open=1)
        assert await host.count(ctx, "REFUSED") == 2
        bench.link.blocked.clear()
        await host.rest(ctx)
        assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 0}
        await host.set(ctx, "QP_COMMAND", open=1)
        assert await host.count(ctx, "REFUSED") == 2
        assert await host.get(ctx, "QP_COMMAND") == {"open": 1, "busy": 0}

    bench.run(script)


def test_a_vl_that_stands_holds_up_its_own_class_alone():
    bench = Bench(latency=5)
    host = bench.host

    async def script(ctx):
        for qp in range(2):
            await host.open(ctx, qp, owner=1, traffic_class=qp, peer=(PEER, 0))
        bench.link.blocked.add(0)
        for tag in range(6):
            host.element(0, **GOOD | {"tag": tag, "vl": 0, "bytes": 64})
        await host.doorbell(ctx, 0)
        await ctx.tick().repeat(400)
        for tag in range(10, 16):
            host.element(1, **GOOD | {"tag": tag, "vl": 1})
        await host.doorbell(ctx, 1)
        await ctx.tick().repeat(600)
        assert [entry["tag"] for entry in host.completions(0)][-6:] == list(range(10, 16))
        assert not ctx.get(bench.hca.quiet)
        bench.link.blocked.clear()
        await host.rest(ctx)
        assert await host.count(ctx, "MESSAGES_SENT") == 12

    bench.run(script)


def test_the_first_class_goes_first():
    bench = Bench(latency=20, ring_log2=5)
    host = bench.host

    async def script(ctx):
        for qp in range(2):
            await host.open(ctx, qp, owner=1, traffic_class=1 - qp, peer=(PEER, 0))
        for tag in range(24):
            host.element(0, **GOOD | {"tag": tag, "bytes": 64})
        await host.doorbell(ctx, 0)
        await ctx.tick().repeat(60)
        for tag in range(100, 108):
            host.element(1, **GOOD | {"tag": tag, "bytes": 64})
        await host.doorbell(ctx, 1)
        await host.rest(ctx)
        tags = [entry["tag"] for entry in host.completions(0)]
        first, last = tags.index(100), tags.index(107)
        # Between the first class's messages at most those of the other come that fill the time of its fetches.
        assert last - first < 8 + 8
        assert [tag for tag in tags if tag < 100] == list(range(24))
        assert tags[-4:] == list(range(20, 24))

    bench.run(script)


def powered(traffic_classes, drop):
    """A bench with an energy budget of one message for some classes, and a set-up."""
    bench = Bench(config=CONFIG.replace(power_control=True), latency=4)
    host = bench.host

    async def setup(ctx):
        for kind, index, value in (
            (SetupKind.FLIT_ENERGY, PEER, 10),
            (SetupKind.PATH_CYCLES, PEER, 400),
            (SetupKind.POWER_BUDGET, 0, 60),
            (SetupKind.POWER_CLASSES, 0, traffic_classes),
        ):
            await host.set(ctx, "INJECTION_SELECT", kind=kind, index=index)
            await host.set(ctx, "INJECTION_VALUE", value=value)
        await host.set(ctx, "DROP_CLASSES", classes=drop)
        for qp in range(2):
            await host.open(ctx, qp, owner=1, traffic_class=qp, peer=(PEER, 0))

    return bench, host, setup


def test_a_class_that_does_not_wait_ends_with_throttled():
    bench, host, setup = powered(0b11, 0b01)

    async def script(ctx):
        await setup(ctx)
        # No such node, and no policy that goes by the router's ports: nothing is set up.
        for count, (kind, index) in enumerate(
            ((SetupKind.FLIT_ENERGY, CONFIG.destinations), (SetupKind.OUTPUT_PORT, PEER)), 1
        ):
            await host.set(ctx, "INJECTION_SELECT", kind=kind, index=index)
            await host.set(ctx, "INJECTION_VALUE", value=1000)
            assert await host.count(ctx, "REFUSED") == count
        for tag in range(3):
            host.element(0, **GOOD | {"tag": tag, "bytes": 64})
            host.element(1, **GOOD | {"tag": 10 + tag, "bytes": 64})
        await host.doorbell(ctx, 0)
        await host.doorbell(ctx, 1)
        await host.rest(ctx)
        ends = {entry["tag"]: entry["status"] for entry in host.completions(0)}
        # The first has the budget; the second class waits for it, time and again.
        assert ends == {
            0: CqeStatus.OK,
            1: CqeStatus.THROTTLED,
            2: CqeStatus.THROTTLED,
            **dict.fromkeys((10, 11, 12), CqeStatus.OK),
        }
        assert await host.count(ctx, "MESSAGES_THROTTLED") == 2
        assert await host.count(ctx, "HELD_CYCLES") > 800

    bench.run(script)


def test_a_message_that_is_held_holds_up_its_own_class_alone():
    bench, host, setup = powered(0b01, 0)

    async def script(ctx):
        await setup(ctx)
        for tag in range(2):
            host.element(0, **GOOD | {"tag": tag, "bytes": 64})
        await host.doorbell(ctx, 0)
        for tag in range(10, 16):
            host.element(1, **GOOD | {"tag": tag, "bytes": 64})
        await host.doorbell(ctx, 1)
        await host.rest(ctx)
        assert [entry["tag"] for entry in host.completions(0)] == [0, *range(10, 16), 1]
        # One that never fits ends, though its class waits.
        await host.post(ctx, 0, **GOOD | {"tag": 77, "bytes": 80})
        await host.rest(ctx)
        ((tag, status),) = [(entry["tag"], entry["status"]) for entry in host.completions(0)]
        assert (tag, status) == (77, CqeStatus.THROTTLED)

    bench.run(script)


def test_counters_go_over_their_wrap():
    bench = Bench(latency=2, fails=lambda address: address == DATA + 0x1000)
    host, send = bench.host, bench.hca.send

    async def script(ctx):
        counters = {
            "MESSAGES_SENT": (send.ended.sent, 3),
            "MESSAGES_FAILED": (send.ended.failed, 2),
            "MESSAGES_DROPPED": (send.ended.dropped, 1),
            "PACKETS_SENT": (send.departures.packets, 5),
            "FLITS_SENT": (send.departures.flits, 3 * 4 + 2 * 4),
            "SEND_BUS_ERRORS": (send.sender.bus_errors, 2),
            "WINDOW_REFUSED": (bench.hca.window_refused, 3),
            "REFUSED": (bench.hca.registers.refused, 2),
        }
        nearly = {name: Nearly(ctx, counter, 2) for name, (counter, _) in counters.items()}
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        for offset in (0, 0x1000, 0, 0x1000, 0):
            await host.post(ctx, 0, **GOOD | {"bytes": 32, "address": DATA + offset})
            await host.rest(ctx)
        for _ in range(3):
            await host.write(ctx, 1, 99, 0)
        for _ in range(2):
            await host.access(ctx, 0x777C, 0)
        await host.doorbell(ctx, 0)
        await host.post(ctx, 0, **GOOD)
        await host.close(ctx, 0)
        await host.rest(ctx)
        for name, (_, count) in counters.items():
            assert await host.count(ctx, name) == nearly[name](count), name

    bench.run(script)


def test_the_throttled_counter_goes_over_its_wrap():
    bench, host, setup = powered(0b01, 0b01)

    async def script(ctx):
        await setup(ctx)
        count = Nearly(ctx, bench.hca.send.ended.throttled, 2)
        for _ in range(4):
            host.element(0, **GOOD | {"bytes": 64})
        await host.doorbell(ctx, 0)
        await host.rest(ctx)
        assert await host.count(ctx, "MESSAGES_THROTTLED") == count(3)

    bench.run(script)


def test_a_driver_may_not_name_what_is_not_there():
    bench = Bench(latency=2)
    host = bench.host
    tiny = preset(HcaConfig, "tiny")

    async def script(ctx):
        count = 0
        for set_up, (name, fields) in (
            (("QP_SELECT", {"qp": tiny.queue_pairs}), ("QP_COMMAND", {"open": 1})),
            (("QP_SELECT", {"qp": 0}), ("QP_OWNER", {"traffic_class": tiny.classes})),
            (("QP_SELECT", {"qp": 0}), ("QP_OWNER", {"owner": tiny.owners})),
            (("CQ_SELECT", {"queue": tiny.completion_queues}), ("CQ_RING", {"entries_log2": 1})),
            (("CQ_SELECT", {"queue": 0}), ("CQ_OWNER", {"owner": tiny.owners})),
            (("REGION_SELECT", {"region": tiny.regions}), ("REGION_SET", {"valid": 1})),
            (("REGION_SELECT", {"region": 0}), ("REGION_SET", {"valid": 1, "owner": tiny.owners})),
            (("ROUTE_SELECT", {"node": tiny.destinations}), ("ROUTE_SET", {"known": 1})),
            # This adapter has no injection control to set up.
            (("INJECTION_SELECT", {"kind": 0}), ("INJECTION_VALUE", {"value": 1})),
            (("INJECTION_SELECT", {"kind": 3}), ("INJECTION_VALUE", {"value": 1})),
            (("REGION_SELECT", {"region": 0}), ("INVALIDATE", {"scope": 3})),
            (("REGION_SELECT", {"region": 0}), ("INVALIDATE", {"region": tiny.regions})),
            (("REGION_SELECT", {"region": 0}), ("VL_TABLE_ENTRY", {"vl": 2, "weight": 1})),
            (("REGION_SELECT", {"region": 0}), ("VL_TABLE_ENTRY", {"entry": 4, "weight": 1})),
        ):
            await host.set(ctx, set_up[0], **set_up[1])
            await host.set(ctx, name, **fields)
            if name == "QP_OWNER":
                await host.set(ctx, "QP_COMMAND", open=1)
            if name == "CQ_OWNER":
                await host.set(ctx, "CQ_RING", entries_log2=1)
            count += 1
            assert await host.count(ctx, "REFUSED") == count, name
        await host.access(ctx, 0x10000)
        assert await host.count(ctx, "REFUSED") == count + 1
        identity = await host.get(ctx, "IDENTITY")
        assert identity == {
            "queue_pairs": 4,
            "completion_queues": 2,
            "classes": 2,
            "posted_log2": 0,
            "posted": 0,
        }

    bench.run(script)
