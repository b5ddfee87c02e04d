"""Message nodes: every message posted arrives once, as it was sent, in its order; times are exact; errors are told."""

from collections import defaultdict

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.traffic.checker import ERRORS
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.message import COMMAND, EVENT
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.packet import Identity, synthetic_words
from lanikai.hdl.traffic.ports import REQUEST, route_address

LINK = LinkConfig(flit_bits=64, vls=2, delay_cycles=1)
CONFIG = TrafficConfig(
    link=LINK, nodes=2, classes=1, queue_packets=2, credit_flits=4, sink_flits=4, max_packet_flits=31
)


class System:
    """Two nodes on two links; `events`: (cycle, event) as they came; `heads`: (cycle, node, data) of heads on `tx`."""

    def __init__(self, config=CONFIG):
        self.top = m = Module()
        self.now, self.request = Signal(32), Signal(REQUEST)
        m.d.sync += self.now.eq(self.now + 1)
        self.nodes = [MessageNode(config) for _ in range(2)]
        for i, node in enumerate(self.nodes):
            m.submodules[f"node_{i}"] = node
            m.d.comb += [node.node.eq(i), node.now.eq(self.now), node.request.eq(self.request)]
            wiring.connect(m, node.tx, self.nodes[1 - i].rx)
        self.events, self.heads = [], []

    def run(self, *benches):
        simulator = Simulator(self.top)
        simulator.add_clock(1e-6)
        for bench in benches:
            simulator.add_testbench(bench)
        simulator.add_testbench(self._watch, background=True)
        simulator.run()

    async def _watch(self, ctx):
        while True:
            now = ctx.get(self.now)
            for i, node in enumerate(self.nodes):
                if ctx.get(node.event_valid):
                    event = ctx.get(node.event)
                    fields = {name: int(getattr(event, name)) for name in FIELDS}
                    errors = [getattr(event.errors, name) for name, _ in ERRORS]
                    self.events.append((now, fields | {"errors": errors}))
                if ctx.get(node.tx.valid) and ctx.get(node.tx.payload.head):
                    self.heads.append((now, i, ctx.get(node.tx.payload.data)))
            await ctx.tick()

    async def set_route(self, ctx, node, destination, route):
        for offset, word in ((0, route & 0xFFFFFFFF), (4, route >> 32)):
            address = route_address(destination) + offset
            request = {"valid": 1, "write": 1, "node": node, "address": address, "data": word}
            ctx.set(self.request, request)
            await ctx.tick()
        ctx.set(self.request, {})
        await ctx.tick().repeat(2)

    async def post(self, ctx, node, command):
        """Post a command; returns the cycle in which it was taken."""
        port = self.nodes[node].command
        ctx.set(port.payload, command)
        ctx.set(port.valid, 1)
        while not ctx.get(port.ready):
            await ctx.tick()
        taken = ctx.get(self.now)
        await ctx.tick()
        ctx.set(port.valid, 0)
        return taken


FIELDS = [name for name, _ in EVENT if name != "errors"]


def test_times_of_one_message():
    """The head is on the wire two cycles after the command and `delay_cycles`, the tail behind it. The event tells the
    tail's cycle two later. `settled` is not said while anything is under way. The route is the destination's."""
    system = System()

    async def bench(ctx):
        route = 0xABCD_1234_5678
        await system.set_route(ctx, 0, 1, route)
        await system.set_route(ctx, 1, 1, 5)
        node, other = system.nodes
        assert ctx.get(node.settled)
        command = {"destination": 1, "vl": 1, "flits": 4, "tag": 0x5A5A5A5, "service_level": 3}
        not_before = ctx.get(system.now) + 7
        taken = await system.post(ctx, 0, command | {"not_before": not_before})
        assert taken == not_before
        unsettled = 0
        for _ in range(40):
            unsettled += not (ctx.get(node.settled) and ctx.get(other.settled))
            await ctx.tick()
        # From the command to the return of the last credit: two cycles to it, and its delay.
        assert ctx.get(node.settled) and ctx.get(other.settled) and unsettled >= 2 + 1 + 3 + 2
        ((head, sender, word),) = system.heads
        assert (head, sender) == (taken + 2 + LINK.delay_cycles, 0)
        assert word >> HEADER_LAYOUT["route"].offset & (1 << 48) - 1 == route
        assert word >> HEADER_LAYOUT["service_level"].offset & 15 == 3
        ((told, event),) = system.events
        assert event["arrived"] == head + 3 and told == event["arrived"] + 2
        assert (event["node"], event["source"], event["vl"]) == (1, 0, 1)
        assert (event["flits"], event["tag"], event["whole"]) == (4, 0x5A5A5A5, 1)
        assert not any(event["errors"])

    system.run(bench)


def test_a_message_for_another_node_is_told():
    """The receiver says that it is not the destination."""
    system = System()

    async def bench(ctx):
        now = ctx.get(system.now)
        await system.post(ctx, 0, {"destination": 0, "flits": 3, "tag": 1, "not_before": now})
        await ctx.tick().repeat(30)
        assert system.events and not any(event["whole"] for _, event in system.events)
        first = system.events[0][1]
        assert first["node"] == 1 and first["errors"] == [0, 0, 0, 1]

    system.run(bench)


@pytest.mark.parametrize("delay", [0, 3, 20])
def test_it_is_not_settled_while_messages_are_on_a_long_wire(delay):
    """There are more of them than the queues hold: the count of them does not go round."""
    link = LinkConfig(flit_bits=128, vls=1, delay_cycles=delay)
    config = CONFIG.replace(link=link, queue_packets=2, credit_flits=40, sink_flits=40, max_packet_flits=7)
    system = System(config)

    async def bench(ctx):
        node, other = system.nodes
        taken = [await system.post(ctx, 0, {"destination": 1, "flits": 1, "tag": i}) for i in range(30)]
        settled = []
        while len(system.events) < len(taken):
            settled.append(ctx.get(node.settled))
            await ctx.tick()
        assert not any(settled) and len(settled) >= delay
        await ctx.tick().repeat(2 * delay + 10)
        assert ctx.get(node.settled) and ctx.get(other.settled)
        assert [event["tag"] for _, event in system.events] == list(range(30))

    async def never_settled(ctx):
        while ctx.get(system.nodes[0].settled):
            await ctx.tick()
        while len(system.events) < 30:
            assert not ctx.get(system.nodes[0].settled)
            await ctx.tick()

    system.run(bench, never_settled)


def test_a_message_longer_than_any_is_told_as_an_error_and_not_as_a_short_one():
    """Flits go on coming beyond what a length holds: the event tells the longest length, and an error."""
    node = MessageNode(CONFIG.replace(max_packet_flits=7))
    identity = Identity(destination=1, source=0, born=77)
    words = synthetic_words(identity, flits=24, config=LINK)

    async def bench(ctx):
        events = []
        ctx.set(node.node, 1)
        for i, word in enumerate([*words, 0, 0, 0]):
            ctx.set(node.rx.valid, i < len(words))
            ctx.set(node.rx.payload, {"data": word, "vl": 0, "head": i == 0, "tail": i == len(words) - 1})
            if ctx.get(node.event_valid):
                events.append(ctx.get(node.event))
            await ctx.tick()
        assert [(e.flits, e.tag, e.whole, e.errors.integrity) for e in events] == [(7, 77, 0, 1)]

    simulator = Simulator(node)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_time_wraps():
    """`not_before` is compared modulo 2^32: a time a little behind is due, a time a little ahead is not."""
    system = System()

    async def bench(ctx):
        port = system.nodes[0].command
        ctx.set(system.now, (1 << 32) - 3)
        for ahead, ready in [(0, 1), (-5, 1), (5, 0), (1, 0)]:
            not_before = ctx.get(system.now) + ahead & 0xFFFFFFFF
            ctx.set(port.payload, {"destination": 1, "flits": 2, "not_before": not_before})
            assert ctx.get(port.ready) == ready

    system.run(bench)


posts = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(2, 9), st.integers(0, 12))


@settings(max_examples=8)
@given(st.lists(posts, min_size=1, max_size=40))
def test_every_message_arrives_once(drawn):
    """Messages are random, queues short: all messages arrive, as they were sent, in the order of their source and
    VL."""
    system = System()

    def poster(source):
        async def bench(ctx):
            for tag, (node, vl, flits, gap) in enumerate(drawn):
                if node == source:
                    fields = {"destination": 1 - source, "vl": vl, "flits": flits, "tag": tag}
                    await system.post(ctx, source, fields | {"not_before": ctx.get(system.now) + gap})
            for _ in range(3000):
                if len(system.events) == len(drawn):
                    break
                await ctx.tick()
            await ctx.tick().repeat(10)
            assert all(ctx.get(node.settled) for node in system.nodes)

        return bench

    system.run(poster(0), poster(1))
    found = defaultdict(list)
    for _, event in system.events:
        assert event["whole"] and not any(event["errors"]) and event["node"] == 1 - event["source"]
        found[event["source"], event["vl"]].append((event["tag"], event["flits"]))
    expected = defaultdict(list)
    for tag, (source, vl, flits, _) in enumerate(drawn):
        expected[source, vl].append((tag, flits))
    assert found == expected


def test_layouts():
    """Both fit the two words of 64 bits of a ring's entry."""
    assert COMMAND.size <= 128 and EVENT.size <= 128
