"""Traffic nodes on a link, through routers, and under the measurement's protocol."""

from collections import Counter, defaultdict

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.network import single_router
from lanikai.hdl.router.router import Router
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.packet import IDENTITY
from lanikai.hdl.traffic.ports import (
    CLASS,
    MEASUREMENT,
    MEASUREMENT_NODE,
    NODE,
    READ_CYCLES,
    REQUEST,
    RESPONSE,
    STATISTICS,
    Choice,
    Mode,
    Phase,
    Verdict,
    class_address,
    histogram_address,
    route_address,
    statistics_address,
)
from lanikai.hdl.traffic.setup import class_seeds
from lanikai.hdl.traffic.statistics import bin_range
from support.hdl.generator_model import ONE, Settings

ROUTER = RouterConfig(link=LinkConfig(flit_bits=128, vls=2, hop_bits=3), ports=3, input_buffer_flits=4)
ERRORS = ("FRAMING_ERRORS", "INTEGRITY_ERRORS", "ORDER_ERRORS", "DESTINATION_ERRORS")


class System:
    """Nodes and a measurement: in a ring of links (node i sends to i + 1), or on a router."""

    def __init__(self, config, *, router=None):
        self.config, self.router = config, router
        self.top = m = Module()
        self.request, self.response = Signal(REQUEST), Signal(RESPONSE)
        self.nodes = [TrafficNode(config) for _ in range(config.nodes)]
        m.submodules.measurement = self.measurement = Measurement(config)
        answers = self.measurement.response.as_value()
        m.d.comb += self.measurement.request.eq(self.request)
        for i, node in enumerate(self.nodes):
            m.submodules[f"node_{i}"] = node
            answers = answers | node.response.as_value()
            m.d.comb += [
                node.node.eq(i),
                node.request.eq(self.request),
                node.control.eq(self.measurement.control),
                *(getattr(self.measurement, n)[i].eq(getattr(node, n)) for n in ("born", "done", "behind")),
            ]
        m.d.comb += self.response.eq(answers)
        if router is None:
            for i, node in enumerate(self.nodes):
                wiring.connect(m, node.tx, self.nodes[(i + 1) % config.nodes].rx)
        else:
            m.submodules.router = block = Router(router, credit_flits=[config.sink_flits] * router.ports)
            for i, node in enumerate(self.nodes):
                wiring.connect(m, node.tx, block.rx[i])
                wiring.connect(m, block.tx[i], node.rx)

    def run(self, bench):
        async def wrapped(ctx):
            self.ctx = ctx
            await bench(self)

        simulator = Simulator(self.top)
        simulator.add_clock(1e-6)
        simulator.add_testbench(wrapped)
        simulator.add_testbench(self._watch, background=True)
        self.seen, self.phases = [], []
        simulator.run()

    async def _watch(self, ctx):
        """Notes the flits on all sinks' links and the changes of phase."""
        now, event, links = self.measurement.control.now, self.measurement.event, self.nodes
        last = 0
        while True:
            for node, part in enumerate(links):
                if ctx.get(part.rx.valid):
                    self.seen.append((ctx.get(now), node, ctx.get(part.rx.payload)))
            if ctx.get(event) != last:
                last = ctx.get(event)
                self.phases.append((ctx.get(now), ctx.get(self.measurement.phase)))
            await ctx.tick()

    async def write(self, node, address, word):
        self.ctx.set(self.request, {"valid": 1, "write": 1, "node": node, "address": address, "data": word})
        await self.ctx.tick()
        self.ctx.set(self.request, {})

    async def read_all(self, places):
        """The words at (node, address) places, a request a cycle."""
        words = []
        for i in range(len(places) + READ_CYCLES):
            if i >= READ_CYCLES:
                answer = self.ctx.get(self.response)
                assert answer.valid
                words.append(answer.data)
            request = dict(zip(("node", "address"), places[i], strict=True)) if i < len(places) else {}
            self.ctx.set(self.request, request | {"valid": i < len(places)})
            await self.ctx.tick()
        return words

    async def read(self, node, address):
        return (await self.read_all([(node, address)]))[0]

    async def set_class(self, node, number, chosen):
        for register, fields in chosen.words():
            await self.write(node, class_address(number, register), CLASS[register].pack(**fields))

    async def seed(self, seed):
        for node in range(self.config.nodes):
            for name, word in class_seeds(seed, node, self.config):
                await self.write(node, NODE[name].offset, word)

    async def set_routes(self):
        network = single_router(self.config.nodes, router=self.router)
        for node in range(self.config.nodes):
            for destination in range(self.config.nodes):
                route = network.source_route(node, destination)
                await self.write(node, route_address(destination), route & 0xFFFFFFFF)
                await self.write(node, route_address(destination) + 4, route >> 32)

    async def measure(self, *, warmup, window, limit, go_on=0):
        """Runs a measurement; returns the verdict."""
        for name, value in {"WARMUP": warmup, "WINDOW": window, "LIMIT": limit}.items():
            await self.write(MEASUREMENT_NODE, MEASUREMENT[name].offset, value)
        word = MEASUREMENT["CONTROL"].pack(start=1, go_on=go_on)
        await self.write(MEASUREMENT_NODE, MEASUREMENT["CONTROL"].offset, word)
        for _ in range(self.config.clear_cycles + warmup + window + limit + 10):
            if self.ctx.get(self.measurement.phase) == Phase.DONE:
                break
            await self.ctx.tick()
        status = MEASUREMENT["STATUS"].unpack(await self.read(MEASUREMENT_NODE, MEASUREMENT["STATUS"].offset))
        assert status["phase"] == Phase.DONE.value
        return Verdict(status["verdict"])

    async def statistics(self, node, number):
        words = await self.read_all([(node, statistics_address(number, name)) for name in STATISTICS])
        return dict(zip(STATISTICS, words, strict=True))

    async def errors(self, node):
        return await self.read_all([(node, NODE[name].offset) for name in ERRORS])


def small(**changes):
    chosen = {"link": ROUTER.link, "nodes": 3, "classes": 2, "queue_packets": 8, "credit_flits": 4}
    return TrafficConfig(**(chosen | {"sink_flits": 4, "histogram_sub_bits": 0} | changes))


def packets_of(seen):
    """(identity, cycle of the head, cycle of the tail, flits, node) of 128-bit packets, by their tails."""
    open_, done = {}, []
    for cycle, node, flit in seen:
        if flit.head:
            open_[node, flit.vl] = [cycle, IDENTITY.const(None), 0]
            open_[node, flit.vl][1] = IDENTITY.from_bits(flit.data >> 64)
        entry = open_[node, flit.vl]
        entry[2] += 1
        if flit.tail:
            done.append((entry[1], entry[0], cycle, entry[2], node))
    return done


@settings(max_examples=3)
@given(
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.sampled_from([4, 9, 16]),
    st.booleans(),
    st.sampled_from([0, 90]),
)
def test_statistics_through_a_router_are_those_of_the_flits(seed, flits, gap, hot, stall):
    config = small()
    system = System(config, router=ROUTER)

    async def bench(s):
        await s.seed(seed)
        await s.set_routes()
        for node in range(3):
            pattern = Choice.HOT_SPOT if hot else Choice.UNIFORM
            one = Settings(mode=Mode.RANDOM, flits=flits, spacing=3 * gap * ONE, vl_count=2, pattern=pattern)
            one.node, one.fraction = 1, 1000
            two = Settings(mode=Mode.PERIODIC, flits=2, spacing=29 * ONE, vl_first=1, phase=node)
            await s.set_class(node, 0, one)
            await s.set_class(node, 1, two)
            await s.write(node, NODE["SINK"].offset, NODE["SINK"].pack(stall=stall))
        assert await s.measure(warmup=40, window=120, limit=600) == Verdict.COMPLETE
        phases = {phase: cycle for cycle, phase in s.phases}
        assert [phase for _, phase in s.phases] == [Phase(i) for i in range(1, 6)]
        start, end = phases[Phase.WINDOW], phases[Phase.DRAIN]
        assert (phases[Phase.WARMUP], end - start) == (start - 40, 120)
        # The sources have stopped: what is under way arrives.
        await s.ctx.tick().repeat(200)
        shown = {(node, c): await s.statistics(node, c) for node in range(3) for c in range(2)}
        sent = sum([await s.read(node, NODE["SENT"].offset) for node in range(3)])
        received = sum([await s.read(node, NODE["RECEIVED"].offset) for node in range(3)])
        packets = packets_of(s.seen)
        assert sent == received == len(packets) > 10
        for node in range(3):
            assert await s.errors(node) == [0] * 4
        accepted, latencies, offered, waits = Counter(), defaultdict(list), Counter(), Counter()
        classes = {}
        for cycle, node, flit in s.seen:
            if flit.head:
                classes[node, flit.vl] = IDENTITY.from_bits(flit.data >> 64).traffic_class
            accepted[node, classes[node, flit.vl]] += start <= cycle < end
        for identity, _, tail, length, node in packets:
            assert identity.tagged == (start <= identity.born < end)
            assert node == identity.destination != identity.source
            key = identity.source, identity.traffic_class
            if identity.tagged:
                latencies[node, identity.traffic_class].append(tail - identity.born)
                offered[key] += length
                waits[key] += 1
        for (node, c), values in shown.items():
            seen = latencies[node, c]
            assert values["ACCEPTED_FLITS"] == accepted[node, c]
            assert values["LATENCY_PACKETS"] == len(seen)
            assert values["LATENCY_SUM"] == sum(seen)
            assert values["LATENCY_MIN"] == min(seen, default=0xFFFFFFFF)
            assert values["LATENCY_MAX"] == max(seen, default=0)
            assert values["OFFERED_FLITS"] == offered[node, c]
            assert values["OFFERED_PACKETS"] == values["WAIT_PACKETS"] == waits[node, c]
            bins = [(node, histogram_address(c, position, config)) for position in range(8)]
            for position, count in enumerate(await s.read_all(bins)):
                first, last = bin_range(position, config)
                assert count == sum(first <= latency <= last for latency in seen)
        # Network latencies: five cycles of router, a register, and the rest of the packet, at the least.
        total = sum(values["LATENCY_SUM"] for values in shown.values())
        waited = sum(values["WAIT_SUM"] for values in shown.values())
        assert total - waited >= sum(
            5 + (2 if c else flits) - 1 for _, c in latencies for _ in latencies[_, c]
        )

    system.run(bench)


@pytest.mark.parametrize(
    ("flit_bits", "flits", "delay"), [(32, 4, 0), (64, 10, 1), (128, 1, 0), (128, 40, 2)]
)
def test_zero_load_latency_is_the_formula(flit_bits, flits, delay):
    link = LinkConfig(flit_bits=flit_bits, vls=2, hop_bits=3, delay_cycles=delay)
    router = RouterConfig(link=link, ports=3, input_buffer_flits=16)
    system = System(small(link=link, credit_flits=16, sink_flits=16), router=router)

    async def bench(s):
        await s.set_routes()
        chosen = Settings(mode=Mode.PERIODIC, flits=flits, spacing=90 * ONE, pattern=Choice.FIXED, node=2)
        await s.set_class(0, 0, chosen)
        assert await s.measure(warmup=0, window=300, limit=200) == Verdict.COMPLETE
        source, sink = await s.statistics(0, 0), await s.statistics(2, 0)
        # Birth to head on the link: 2 and the link's delay; the router's 5 and its link's delay; the packet.
        wait, latency = 2, 2 + 5 + 2 * delay + flits - 1
        assert (source["WAIT_PACKETS"], source["WAIT_SUM"], source["WAIT_MAX"]) == (4, 4 * wait, wait)
        assert (sink["LATENCY_PACKETS"], sink["LATENCY_SUM"]) == (4, 4 * latency)
        assert (sink["LATENCY_MIN"], sink["LATENCY_MAX"]) == (latency, latency)
        assert await s.errors(2) == [0] * 4

    system.run(bench)


def test_overload_is_saturated_and_its_packets_keep_their_times():
    # A packet of 4 flits every 3 cycles: three quarters of it are accepted, the queue of 2 packets is full.
    config = small(queue_packets=2, link=ROUTER.link.replace(vls=1), nodes=2)
    system = System(config)

    async def bench(s):
        chosen = Settings(mode=Mode.PERIODIC, flits=4, spacing=3 * ONE, pattern=Choice.FIXED, node=1)
        await s.set_class(0, 0, chosen)
        assert await s.measure(warmup=20, window=300, limit=50) == Verdict.SATURATED
        source, sink = await s.statistics(0, 0), await s.statistics(1, 0)
        assert sink["ACCEPTED_FLITS"] == 300
        assert source["DEFERRED"] > 200
        left = await s.read(MEASUREMENT_NODE, MEASUREMENT["OUTSTANDING"].offset)
        assert left == source["OFFERED_PACKETS"] - sink["LATENCY_PACKETS"]
        # The others were still to be born.
        assert sink["LATENCY_PACKETS"] < 100
        # With a longer drain all 100 tagged packets arrive, in time order. The i-th is born 3 i cycles after
        # the window's start and received 4 (i + 1) later, from what was queued then.
        await s.ctx.tick().repeat(60)
        assert await s.measure(warmup=0, window=300, limit=400) == Verdict.COMPLETE
        source, sink = await s.statistics(0, 0), await s.statistics(1, 0)
        assert source["OFFERED_PACKETS"] == sink["LATENCY_PACKETS"] == 100
        first = sink["LATENCY_MIN"]
        assert sink["LATENCY_MAX"] == first + 99
        assert sink["LATENCY_SUM"] == 100 * first + 99 * 100 // 2
        assert await s.errors(1) == [0] * 4

    system.run(bench)


def test_no_vl_waits_for_another():
    # VL 0's credits run out at the first packet as node 1 holds them; VL 1 goes on.
    system = System(small(nodes=2, queue_packets=2))

    async def bench(s):
        await s.write(1, NODE["SINK"].offset, NODE["SINK"].pack(hold=1))
        chosen = Settings(mode=Mode.PERIODIC, flits=2, spacing=10 * ONE, pattern=Choice.FIXED, node=1)
        await s.set_class(0, 0, chosen)
        assert await s.measure(warmup=0, window=100, limit=20, go_on=1) == Verdict.SATURATED
        assert len(s.seen) == 4
        chosen.vl_first, chosen.phase = 1, 3
        await s.set_class(0, 1, chosen)
        await s.ctx.tick().repeat(60)
        assert len(s.seen) == 8
        # Released, everything arrives.
        await s.write(1, NODE["SINK"].offset, 0)
        await s.write(MEASUREMENT_NODE, MEASUREMENT["CONTROL"].offset, MEASUREMENT["CONTROL"].pack(stop=1))
        await s.ctx.tick().repeat(60)
        sent = await s.read(0, NODE["SENT"].offset)
        assert sent == await s.read(1, NODE["RECEIVED"].offset) > 6
        assert await s.read(MEASUREMENT_NODE, MEASUREMENT["OUTSTANDING"].offset) == 0
        assert await s.errors(1) == [0] * 4

    system.run(bench)


def test_a_start_waits_for_the_packets_of_a_saturated_measurement():
    system = System(small(nodes=2))

    async def bench(s):
        await s.write(1, NODE["SINK"].offset, NODE["SINK"].pack(hold=1))
        chosen = Settings(mode=Mode.PERIODIC, flits=4, spacing=20 * ONE, pattern=Choice.FIXED, node=1)
        await s.set_class(0, 0, chosen)
        assert await s.measure(warmup=0, window=100, limit=20) == Verdict.SATURATED
        outstanding = MEASUREMENT_NODE, MEASUREMENT["OUTSTANDING"].offset
        assert await s.read(*outstanding) == 4
        await s.write(1, NODE["SINK"].offset, NODE["SINK"].pack(stall=230))
        assert await s.measure(warmup=0, window=40, limit=2000) == Verdict.COMPLETE
        assert (
            (await s.statistics(1, 0))["LATENCY_PACKETS"]
            == (await s.statistics(0, 0))["OFFERED_PACKETS"]
            == 2
        )
        # Those that never come are waited for no longer than LIMIT.
        await s.write(1, NODE["SINK"].offset, NODE["SINK"].pack(hold=1))
        assert await s.measure(warmup=0, window=100, limit=50) == Verdict.SATURATED
        left = await s.read(*outstanding)
        assert left > 0
        before = len(s.phases)
        assert await s.measure(warmup=0, window=1, limit=50) == Verdict.COMPLETE
        cycles = {phase: cycle for cycle, phase in s.phases[before:]}
        assert cycles[Phase.WINDOW] - cycles[Phase.CLEAR] == s.config.clear_cycles + 50

    system.run(bench)


def test_link_rate_holds():
    link = ROUTER.link.replace(rate_num=2, rate_den=5)
    system = System(small(link=link, nodes=2))

    async def bench(s):
        chosen = Settings(mode=Mode.PERIODIC, flits=4, spacing=4 * ONE, pattern=Choice.FIXED, node=1)
        await s.set_class(0, 0, chosen)
        await s.measure(warmup=20, window=200, limit=10)
        assert (await s.statistics(1, 0))["ACCEPTED_FLITS"] == 80
        assert (await s.statistics(0, 0))["INJECTED_FLITS"] == 80

    system.run(bench)


def test_configurations_and_verilog():
    config = TrafficConfig(link=LinkConfig(flit_bits=128, vls=16), nodes=64, classes=4)
    text = to_verilog(TrafficNode(config), name="traffic_node")
    assert "module traffic_node(" in text and "[5:0] node" in text
    assert "module measurement(" in to_verilog(Measurement(config), name="measurement")
    with pytest.raises(
        ConfigError, match=r"^TrafficConfig: max_packet_flits = 3: at least the header's 4 flits$"
    ):
        TrafficConfig(link=LinkConfig(flit_bits=32), max_packet_flits=3)
    with pytest.raises(ConfigError, match=r"reset with their routers; None or False$"):
        TrafficConfig(link=LinkConfig(restart=True))
    with pytest.raises(ConfigError, match=r"^TrafficConfig: unknown key 'queue'; valid keys: link, nodes, "):
        TrafficConfig(queue=3)


def test_times_and_counts_go_over_their_wrap():
    """A measurement in which the time wraps, and the counts of packets with it, is like the one that begins at 0. It
    has the same statistics, and no error where sequence numbers (8 bits) go round."""

    def measured(start, packets):
        system, shown = System(small(nodes=2)), {}

        async def bench(s):
            nodes = range(2)
            s.ctx.set(s.measurement.control.now, start)
            for node in nodes:
                s.ctx.set(s.nodes[node]._sent, packets)
                s.ctx.set(s.nodes[node]._received, packets)
            await s.seed(9)
            one = Settings(mode=Mode.PERIODIC, flits=1, spacing=ONE, pattern=Choice.FIXED, node=1)
            two = Settings(mode=Mode.RANDOM, flits=3, spacing=7 * ONE, vl_first=1, pattern=Choice.UNIFORM)
            await s.set_class(0, 0, one)
            await s.set_class(1, 1, two)
            shown["verdict"] = await s.measure(warmup=30, window=280, limit=100)
            shown["phases"] = [(phase, (cycle - start) % 2**32) for cycle, phase in s.phases]
            await s.ctx.tick().repeat(40)
            counted = [[await s.read(node, NODE[n].offset) for n in ("SENT", "RECEIVED")] for node in nodes]
            shown["counted"] = [[(count - packets) % 2**32 for count in pair] for pair in counted]
            shown["wrapped"] = (await s.read(MEASUREMENT_NODE, MEASUREMENT["NOW"].offset)) < start
            shown["wrapped"] |= counted[0][0] < packets
            shown["statistics"] = [await s.statistics(node, c) for node in nodes for c in range(2)]
            assert [await s.errors(node) for node in nodes] == [[0] * 4] * 2

        system.run(bench)
        return shown

    plain, over = measured(0, 0), measured(2**32 - 250, 2**32 - 100)
    assert over.pop("wrapped") and not plain.pop("wrapped")
    assert over == plain
    assert plain["verdict"] == Verdict.COMPLETE
    phases = dict(plain["phases"])
    assert phases[Phase.WINDOW] < 250 < phases[Phase.DRAIN]
    ((sent, _), (other, received)) = plain["counted"]
    assert sent == received > 256 and other > 10
