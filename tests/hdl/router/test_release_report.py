"""Reports of connections whose last data packet has passed: who gets one, and which ones are lost."""

import random
import re

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.packet import Header, Kind, packet_words
from lanikai.hdl.router.release_report import ReleaseReports
from support.hdl.agent_bench import BASE, control_packet, run
from support.hdl.counting import Nearly


def last_packet(link, *, source, flow, bandwidth, route=2, kind=Kind.RELEASE):
    return packet_words(
        Header(
            kind=kind, route=route, source=source, destination=1023 - source, flow=flow, bandwidth=bandwidth
        ),
        b"",
        link,
    )


async def reports(bench):
    """All reports that wait, in their order."""
    found = []
    while True:
        path = await bench.register("RELEASE_PATH")
        report = await bench.register("RELEASE_REPORT")
        if not report.pop("valid"):
            return found
        found.append(report | path)


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_the_last_packet_of_a_connection_passes_and_is_reported_with_its_path(traffic, flit_bits):
    """Other packets are not: data, packets that are thrown away, and control packets."""
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits))
    link = config.link

    async def body(bench):
        first = last_packet(link, source=1000, flow=4000, bandwidth=255)
        await bench.send(1, 3, first)
        await bench.send(2, 4, last_packet(link, source=5, flow=6, bandwidth=7, route=1))
        await bench.send(1, 3, last_packet(link, source=8, flow=9, bandwidth=1, kind=Kind.DATA))
        await bench.send(1, 3, last_packet(link, source=8, flow=9, bandwidth=1, route=6))
        await bench.send(2, 15, control_packet(link, kind=Kind.RELEASE, route=1, source=3))
        await bench.wait(20)
        # The release on the control VL is with the agent; all else is through.
        assert [len(bench.out[port]) for port in (1, 2)] == [len(first), 2 * len(first)]
        assert bench.ctx.get(bench.router.agent.response.event)
        assert await reports(bench) == [
            {"source": 1000, "destination": 23, "flow": 4000, "bandwidth": 255, "in_port": 1, "out_port": 2},
            {"source": 5, "destination": 1018, "flow": 6, "bandwidth": 7, "in_port": 2, "out_port": 1},
        ]
        assert (await bench.register("RELEASES_LOST"))["packets"] == 0
        await bench.read_packet()
        assert (await bench.register("DROP_REPORT"))["source"] == 8
        assert not bench.ctx.get(bench.router.agent.response.event)

    run(traffic, config, body)


@pytest.mark.parametrize("flit_bits", [32, 128])
def test_reports_that_nobody_reads_are_lost_and_counted_and_packets_pass(traffic, flit_bits):
    """The counter goes over its wrap."""
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits))

    async def body(bench):
        lost = Nearly(bench.ctx, bench.router._release_reports.lost)
        packets = [last_packet(config.link, source=9, flow=k, bandwidth=k) for k in range(14)]
        for words in packets:
            await bench.send(1, 2, words)
        await bench.wait(20)
        assert len(bench.out[2]) == sum(len(words) for words in packets)
        # Eight wait in the queue, one at the input: the oldest ones.
        assert [report["flow"] for report in await reports(bench)] == list(range(9))
        assert (await bench.register("RELEASES_LOST"))["packets"] == lost(5)

    run(traffic, config, body)


@pytest.mark.parametrize("flit_bits", [32, 64])
def test_two_at_a_time_on_one_input_are_one_report_and_one_loss(traffic, flit_bits):
    """Headers of several flits that cross in turn: the first one is reported with its own names."""
    config = BASE.replace(link=BASE.link.replace(flit_bits=flit_bits))
    dut = ReleaseReports(config)

    async def bench(ctx):
        packets = {
            vl: last_packet(config.link, source=100 + vl, flow=200 + vl, bandwidth=50 + vl) for vl in (1, 6)
        }
        for i in range(len(packets[1])):
            for vl, words in packets.items():
                flit = {"data": words[i], "head": i == 0, "tail": i == len(words) - 1}
                ctx.set(dut.flit[2], flit)
                ctx.set(dut.vl[2], vl)
                ctx.set(dut.out[2], 1 << 1)
                ctx.set(dut.crosses[2], 1)
                await ctx.tick()
                # A flit that stays in its buffer is none.
                ctx.set(dut.crosses[2], 0)
                await ctx.tick()
        # A packet that ends before its names, and one behind it.
        for words, tail in ((packets[1][:1], 0), (packets[6], len(packets[6]) - 1)):
            for i, word in enumerate(words):
                ctx.set(dut.flit[2], {"data": word, "head": i == 0, "tail": i == tail})
                ctx.set(dut.vl[2], 3)
                ctx.set(dut.crosses[2], 1)
                await ctx.tick()
        ctx.set(dut.crosses[2], 0)
        await ctx.tick().repeat(4)
        for vl in (1, 6):
            assert ctx.get(dut.valid)
            report = ctx.get(dut.report)
            assert (report.source, report.destination) == (100 + vl, 923 - vl)
            assert (report.flow, report.bandwidth) == (200 + vl, 50 + vl)
            assert (report.in_port, report.out_port) == (2, 1)
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)
        assert not ctx.get(dut.valid)
        assert ctx.get(dut.lost) == 2

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("seed", range(3))
def test_every_packet_has_one_report_or_is_counted(seed):
    """Random headers on all inputs at once, and an agent that reads now and then: in order an input, none twice."""
    config = RouterConfig(link=LinkConfig(flit_bits=128, vls=16), ports=4, management=True)
    dut, chance = ReleaseReports(config), random.Random(seed)
    sent, seen = [], []

    async def bench(ctx):
        for cycle in range(3000):
            busy = cycle % 500 < 300
            for i in range(4):
                kind, vl = chance.choice((Kind.RELEASE, Kind.DATA)), chance.choice((0, 14, 15))
                head, crosses = chance.random() < 0.5, chance.random() < (0.6 if busy else 0)
                names = {
                    name: chance.randrange(1 << bits)
                    for name, bits in (("source", 10), ("destination", 10), ("flow", 12), ("bandwidth", 8))
                }
                out = chance.randrange(4)
                ctx.set(dut.flit[i], {"data": Header(kind=kind, **names).pack(), "head": head})
                ctx.set(dut.vl[i], vl)
                ctx.set(dut.out[i], 1 << out)
                ctx.set(dut.crosses[i], crosses)
                if crosses and head and kind is Kind.RELEASE and vl != 15:
                    sent.append((*names.values(), i, out))
            take = chance.random() < 0.3
            ctx.set(dut.take, take & ctx.get(dut.valid))
            if take and ctx.get(dut.valid):
                report = ctx.get(dut.report)
                fields = ("source", "destination", "flow", "bandwidth", "in_port", "out_port")
                seen.append(tuple(getattr(report, name) for name in fields))
            await ctx.tick()
        ctx.set(dut.take, 0)
        assert not ctx.get(dut.moves)
        lost = ctx.get(dut.lost)
        assert lost and len(seen) > 100
        # Names are random: a report that is made up, or comes twice, is none of those that were sent.
        assert len(set(seen)) == len(seen) and set(seen) <= set(sent)
        for i in range(4):
            mine = iter([one for one in sent if one[4] == i])
            assert all(one in mine for one in seen if one[4] == i), "reports of an input are in order"
        waiting = len(sent) - len(seen) - lost
        for left in range(waiting, -1, -1):
            await ctx.tick()
            assert ctx.get(dut.valid) == (left > 0)
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_the_power_budget_is_a_word_that_the_agent_keeps(traffic):
    async def body(bench):
        assert await bench.register("POWER_BUDGET") == {"units": 0}
        await bench.register("POWER_BUDGET", units=0xFFFFFFFE)
        assert await bench.register("POWER_BUDGET") == {"units": 0xFFFFFFFE}

    run(traffic, BASE, body)


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_no_part_of_a_report_is_a_process_that_nothing_starts(flit_bits):
    """A constant part of a signal was `always @* report[45:40] = 1` in Verilog: it never ran, and stayed 0."""
    config = RouterConfig(link=LinkConfig(flit_bits=flit_bits, vls=16), ports=3, management=True)
    text = to_verilog(ReleaseReports(config), name="reports")
    assert "always" in text
    assert not re.search(r"always @\*\n\s+\S+ = \d+'h\w+;", text)
