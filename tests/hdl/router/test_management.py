"""The agent's port: control packets in and out, drop reports, registers, activity counters."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.packet import Header, Kind, packet_words
from lanikai.hdl.router.activity import ActivityCounters
from lanikai.hdl.router.agent import RECEIVE_BASE, SEND_BASE, agent_registers, has_agent
from lanikai.hdl.router.router import Router
from support.hdl.agent_bench import BASE, control_packet, run
from support.hdl.counting import Nearly


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_control_packets_reach_the_agent_and_leave_it(traffic, flit_bits):
    """A probe stops at the agent, whole and with its hop; the agent sends it on. A second one waits in the network
    until the first is freed. An ACK passes by; one that names port 0 comes in."""
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits))
    link = config.link

    async def body(bench):
        probe = control_packet(link, route=2, source=7, destination=3, bandwidth=55)
        await bench.send(1, 15, probe)
        await bench.send(2, 15, control_packet(link, kind=Kind.RELEASE, route=1, sequence=9))
        await bench.wait(10)
        assert bench.ctx.get(bench.router.agent.response.event)
        assert await bench.read_packet() == (len(probe), probe)
        await bench.send_packet(probe)
        await bench.wait(20)
        stripped = [probe[0] >> 8 >> 3 << 8 | probe[0] & 0xFF, *probe[1:]]
        if flit_bits > 32:
            high = probe[0] >> 56 << 56
            stripped[0] = (probe[0] & (1 << 56) - 1) >> 11 << 8 | probe[0] & 0xFF | high
        assert [flit[3] for flit in bench.out[2]] == stripped
        assert {flit[0] for flit in bench.out[2]} == {15}
        assert [flit[1] for flit in bench.out[2]] == [True, *[False] * (len(probe) - 1)]
        assert [flit[2] for flit in bench.out[2]] == [*[False] * (len(probe) - 1), True]
        _, second = await bench.read_packet()
        assert second[0] & 0xF == Kind.RELEASE.value
        ack = control_packet(link, kind=Kind.ACK, route=2)
        bench.out[2].clear()
        await bench.send(1, 15, ack)
        await bench.wait(10)
        assert len(bench.out[2]) == len(ack)
        assert not (await bench.register("RECEIVE"))["valid"]
        await bench.send(1, 15, control_packet(link, kind=Kind.ACK, route=0, sequence=4))
        await bench.wait(10)
        _, third = await bench.read_packet()
        assert third[0] & 0xF == Kind.ACK.value
        assert bench.ctx.get(bench.router.dropped) == 0
        assert not bench.ctx.get(bench.router.agent.response.event)

    run(traffic, config, body)


def test_a_packet_longer_than_the_memory_is_cut_and_told(traffic):
    async def body(bench):
        words = [Kind.PROBE.value, *range(100, 111)]
        await bench.send(1, 15, words)
        await bench.wait(10)
        assert await bench.read_packet() == (12, words[:8])
        # All credits are home: the next one comes too.
        await bench.send(1, 15, words[:3])
        await bench.wait(10)
        assert await bench.read_packet() == (3, words[:3])

    run(traffic, BASE, body)


@pytest.mark.parametrize(("flits", "flit_bits"), [(2, 32), (8, 32), (7, 32), (6, 64), (3, 128), (4, 128)])
def test_a_packet_longer_than_the_send_memory_is_refused_and_counted(traffic, flits, flit_bits):
    """The memories have sizes that are powers of two and not.

    One flit too many does not leave, and does not change the header of the packet that is there. A packet written in
    bounds still leaves, whole.
    """
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits), management_flits=flits)
    lanes = flit_bits // 32

    async def body(bench):
        good = [2 << 8 | Kind.PROBE.value, *range(100, 100 + flits - 1)]
        await bench.send_packet([*good, (1 << flit_bits) - 1])
        await bench.wait(3 * flits + 20)
        assert bench.out == {0: [], 1: [], 2: []}
        # The words of the flit, and SEND.
        assert (await bench.register("REFUSED"))["accesses"] == lanes + 1
        assert not (await bench.register("SEND"))["busy"]
        for bad in (0, 0xFFFF):
            await bench.register("SEND", flits=bad)
        assert (await bench.register("REFUSED"))["accesses"] == lanes + 3
        await bench.register("SEND", flits=flits)
        await bench.register("SEND", flits=1)  # the first is still on its way
        assert (await bench.register("REFUSED"))["accesses"] == lanes + 4
        await bench.wait(3 * flits + 20)
        assert len(bench.out[2]) == flits
        assert [flit[3] for flit in bench.out[2]][1:] == good[1:]

    run(traffic, config, body)


def test_what_names_nothing_is_refused_and_counted(traffic):
    """The names are words beyond the memories, and registers, ports, nodes, VLs and entries that do not exist: none
    becomes another."""
    config = BASE.replace(
        link=BASE.link.replace(hop_bits=3),
        routing="table",
        forwarding_entries=5,
        vl_arbiter="table_fast",
        vl_table_entries=4,
    )

    async def body(bench):
        count, counted = 0, Nearly(bench.ctx, bench.router._agent_port._refused, 3)

        async def refused(expected=1):
            nonlocal count
            count += expected
            assert (await bench.register("REFUSED"))["accesses"] == counted(count)

        async def access(address, value=None):
            return await bench.traffic.access(bench.ctx, bench.router, address, value)

        await bench.wait(20)
        await bench.send(1, 15, [Kind.PROBE.value, 77])
        await bench.wait(10)
        await access(RECEIVE_BASE + 4)
        await refused(0)
        for address in (
            RECEIVE_BASE + 4 * 8,
            RECEIVE_BASE + 0xFFFC,
            SEND_BASE,
            SEND_BASE + 4 * 8,
            0x30000,
            0x7F8,
        ):
            assert await access(address) == 0
            await refused()
        for address in (SEND_BASE + 4 * 8, RECEIVE_BASE, 0x7F8, 0xFFFF0):
            await access(address, 1)
            await refused()
        await bench.register("SELECT", port=2)
        await bench.register("VL_TABLE_ENTRY", entry=3, vl=15, weight=1)
        await refused(0)
        await bench.register("VL_TABLE_ENTRY", entry=4, vl=1, weight=1)
        await refused()
        await bench.register("SELECT", port=3)
        await bench.register("VL_TABLE_ENTRY", entry=3, vl=1, weight=1)
        await bench.register("VL_TABLE_COMMIT", limit=1)
        await bench.register("USED_BANDWIDTH", units=9)
        await refused(3)
        await bench.register("SELECT", everywhere=1, port=3)
        await bench.register("VL_TABLE_ENTRY", entry=3, vl=1, weight=1)
        await refused(0)
        for node, port, known in ((4, 2, 1), (4, 9, 0)):
            await bench.register("ROUTE_SELECT", node=node)
            await bench.register("ROUTE_PORT", port=port, known=known)
        await refused(0)
        for node, port in ((5, 1), (4, 3)):
            await bench.register("ROUTE_SELECT", node=node)
            await bench.register("ROUTE_PORT", port=port, known=1)
            await refused()

    run(traffic, config, body)


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_dropped_packets_are_reported_with_their_sender(traffic, flit_bits):
    """A packet to a port that does not exist, and one of data for the management port, are counted and reported.

    A control packet is only counted. The packet behind them passes. Nothing comes to the agent.
    """
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits))
    link = config.link

    async def body(bench):
        for port, vl, route, source in ((1, 3, 6, 500), (2, 4, 0, 11)):
            await bench.send(
                port, vl, packet_words(Header(route=route, source=source, destination=321), b"", link)
            )
        await bench.send(1, 15, control_packet(link, kind=Kind.REJECT, route=6))
        await bench.send(1, 15, control_packet(link, kind=Kind.DATA, route=2))
        good = packet_words(Header(route=2), b"", link)
        await bench.send(1, 3, good)
        await bench.wait(10)
        assert len(bench.out[2]) == len(good)
        assert (await bench.register("DROPPED"))["packets"] == 4
        assert bench.ctx.get(bench.router.agent.response.event)
        first, second, none = [await bench.register("DROP_REPORT") for _ in range(3)]
        assert first == {"source": 500, "destination": 321, "port": 1, "valid": 1}
        assert second == {"source": 11, "destination": 321, "port": 2, "valid": 1}
        assert not none["valid"]
        assert (await bench.register("REPORTS_LOST"))["packets"] == 0
        assert not (await bench.register("RECEIVE"))["valid"]
        # More than can wait for the agent: what is lost is counted, over the counter's wrap.
        lost = Nearly(bench.ctx, bench.router._drop_reports.lost)
        for _ in range(12):
            await bench.send(1, 0, packet_words(Header(route=6), b"", link))
        await bench.wait(10)
        reports = 0
        while (await bench.register("DROP_REPORT"))["valid"]:
            reports += 1
        assert (await bench.register("REPORTS_LOST"))["packets"] == lost(12 - reports)
        assert 0 < reports < 11

    run(traffic, config, body)


def test_registers_hold_what_the_agent_keeps(traffic):
    async def body(bench):
        assert await bench.register("IDENTITY") == {"ports": 3, "vls": 16, "management": 1}
        for port in range(3):
            await bench.register("SELECT", port=port)
            assert await bench.register("USED_BANDWIDTH") == {"units": 0}
            await bench.register("USED_BANDWIDTH", units=1000 + port)
        for port in range(3):
            await bench.register("SELECT", port=port)
            assert await bench.register("USED_BANDWIDTH") == {"units": 1000 + port}

    run(traffic, BASE, body)


def test_activity_counters_count_what_happened(traffic):
    """The traffic is packets to ports 1 and 2 and one that is dropped; plain sums are beside the counters."""

    async def body(bench):
        chance = random.Random(5)
        sent, lost, packets = {}, 0, 0
        for _ in range(6):
            port, vl, flits = chance.choice((1, 2, 6)), chance.randrange(3), chance.randint(1, 4)
            await bench.send(chance.choice((1, 2)), vl, [port << 8] * flits)
            if port == 6:
                lost += flits
            else:
                packets += 1
                sent[port, vl] = sent.get((port, vl), 0) + flits
        await bench.wait(10)
        good = sum(sent.values())
        assert lost and good
        assert await bench.register("BUFFER_WRITES") == {"flits": 2 * good + lost}
        assert await bench.register("BUFFER_READS") == {"flits": 2 * good + lost}
        assert await bench.register("CROSSBAR_FLITS") == {"flits": good}
        # Input scheduler, crossbar output and link for each flit, and an output VL for each packet.
        assert await bench.register("ARBITRATIONS") == {"decisions": 3 * good + lost + packets}
        for port in range(3):
            for vl in range(4):
                await bench.register("SELECT", port=port, vl=vl)
                assert await bench.register("LINK_FLITS") == {"flits": sent.get((port, vl), 0)}
            of_port = sum(flits for (where, _), flits in sent.items() if where == port)
            assert await bench.register("PORT_FLITS") == {"flits": of_port}

    run(traffic, BASE, body)


def test_activity_counters_go_over_their_wrap():
    """Each counter counts on from 0, that of a link's VL as well, and its neighbour's stays."""
    dut = ActivityCounters(BASE)

    async def bench(ctx):
        async def step(**values):
            for name in ("arrived", "popped", "crossed", "sent", "ended"):
                ctx.set(getattr(dut, name), values.get(name, 0))
            await ctx.tick()

        ctx.set(dut.select_port, 1)
        for port, vl in ((0, 7), (1, 7), (2, 3)):
            ctx.set(dut.sent_vl[port], vl)
        ctx.set(dut.select_vl, 7)
        await step(sent=0b010)
        assert ctx.get(dut.link_flits) == 1
        rows = Nearly(ctx, dut._rows[1].data[7])
        writes, reads = Nearly(ctx, dut.buffer_writes, 2), Nearly(ctx, dut.buffer_reads, 2)
        decisions, crossed = Nearly(ctx, dut.arbitrations, 5), Nearly(ctx, dut.crossbar_flits)
        of_port = Nearly(ctx, dut.port_flits[1])
        await step(arrived=0b011, popped=0b110, crossed=0b101, sent=0b111, ended=0b100)
        await step(sent=0b010)
        await step()
        shown = (dut.buffer_writes, dut.buffer_reads, dut.arbitrations, dut.crossbar_flits, dut.link_flits)
        assert [ctx.get(value) for value in shown] == [writes(4), reads(6), decisions(9), crossed(2), rows(2)]
        assert max(ctx.get(value) for value in shown) < 10
        assert ctx.get(dut.selected_flits) == of_port(2) < 10
        ctx.set(dut.select_port, 0)
        await step()
        assert ctx.get(dut.link_flits) == ctx.get(dut.selected_flits) == 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_count_of_flits_stands_still_at_its_end(traffic):
    """A control packet of 65,536 flits and more is not told as a short one."""
    config = BASE

    async def body(bench):
        words = [Kind.PROBE.value, *range(40)]
        rx, count = bench.router.rx[1], bench.router._management_port._count
        await bench.wait(20)
        for i, word in enumerate(words):
            ctx, tail = bench.ctx, i == len(words) - 1
            ctx.set(rx.payload, {"data": word, "vl": 15, "head": i == 0, "tail": tail})
            ctx.set(rx.valid, 1)
            await bench.tick()
            ctx.set(rx.valid, 0)
            await bench.wait(3)
            if i == 20:
                Nearly(ctx, count, 5)
        await bench.wait(10)
        assert await bench.register("RECEIVE") == {"flits": 0xFFFF, "free": 0, "valid": 1}

    run(traffic, config, body)


def test_features_that_are_off_leave_nothing_in_the_rtl():
    """Activity counters, agent and management port vanish from the Verilog."""
    plain = BASE.replace(link=BASE.link.replace(vls=2), management=False, activity_counters=False)
    assert not has_agent(plain)
    text = to_verilog(Router(plain), name="router")
    for word in ("activity_counters", "buffer_writes", "arbitrations", "agent", "management", "LINK_FLITS"):
        assert word not in text
    counting = plain.replace(activity_counters=True)
    assert "activity_counters" in to_verilog(Router(counting), name="router")
    assert "RECEIVE" not in agent_registers(counting)
    without = to_verilog(Router(BASE.replace(activity_counters=False)), name="router")
    assert "activity_counters" not in without
    assert "management" in without
