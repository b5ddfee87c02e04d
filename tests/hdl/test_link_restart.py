"""Resets of one end of a link under traffic: card to card, and card to router to card."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.link_restart import ReceiveRestart, TransmitRestart
from lanikai.hdl.nic.link_port.packet_interface import PacketInterface
from lanikai.hdl.nic.link_port.registered_port import RegisteredVlPort, make_port
from lanikai.hdl.nic.link_port.vl_port import VlPort
from lanikai.hdl.packet import Header
from lanikai.hdl.router.router import Router
from support.hdl.counting import Nearly

FLIT_BITS = 64
LENGTHS = (2, 3, 5, 9)
"""Flits of a packet."""


class End:
    """A card's end of a link: a feeder of packets, a checker of what comes, and a reset of all of it."""

    def __init__(self, port: PacketInterface, number: int, rng: random.Random, *, hops: bool = False) -> None:
        self.port, self.number, self.rng, self.hops = port, number, rng, hops
        self.reset = Signal(name=f"reset_{number}")
        # A router with 16 VLs takes what comes on VL 15 for control packets, which these are not.
        self.vls = min(port.config.link.vls, 15) if hops else port.config.link.vls
        self.sequence = 0
        self.paused = False
        self.sent: dict[int, list[tuple[int, int]]] = {}  # all that was begun: sequence -> its data and VL
        self.got: list[int] = []
        self.cut = 0
        self.chance = 1.0

    def packet(self, vl: int) -> list[tuple[int, int, int]]:
        """The (data, head, tail) of a new packet. The first flit has a route to port 1 - its own, if there is a
        router."""
        self.sequence += 1
        route = 1 - self.number
        count = self.rng.choice(LENGTHS)
        flit_bits = self.port.config.link.flit_bits
        head = Header(route=route if self.hops else 0).pack() & ((1 << flit_bits) - 1)
        data = [head] + [self.sequence << 8 | i for i in range(1, count)]
        self.sent[self.sequence] = [(word, vl) for word in data]
        return [(word, int(i == 0), int(i == count - 1)) for i, word in enumerate(data)]

    async def feed(self, ctx: Any) -> None:
        send = self.port.send
        begins = isinstance(self.port, VlPort)
        while True:
            _, _, reset = await ctx.tick().sample(self.reset)
            if self.paused or reset:
                continue
            vl = self.rng.randrange(self.vls)
            if begins and not ctx.get(self.port.room) >> vl & 1:
                continue
            flits = self.packet(vl)
            if begins:
                ctx.set(self.port.begin, 1)
                ctx.set(self.port.begin_vl, vl)
            for data, head, tail in flits:
                ctx.set(send.payload, {"data": data, "vl": vl, "head": head, "tail": tail})
                ctx.set(send.valid, 1)
                while True:
                    _, _, ready, reset = await ctx.tick().sample(send.ready, self.reset)
                    if begins:
                        ctx.set(self.port.begin, 0)
                    if ready or reset:
                        break
                if reset:
                    break
            ctx.set(send.valid, 0)

    async def take(self, ctx: Any, senders: list[End]) -> None:
        """Check that packets come whole, or cut and then with a tail of zeroes; never two as one."""
        receive = self.port.receive
        packet: list[int] | None = None
        other = senders[1 - self.number]
        while True:
            ctx.set(receive.ready, self.rng.random() < self.chance)
            flit = receive.payload
            _, _, valid, ready, reset, data, head, tail, vl = await ctx.tick().sample(
                receive.valid, receive.ready, self.reset, flit.data, flit.head, flit.tail, flit.vl
            )
            if reset:
                packet = None
                continue
            if not (valid and ready):
                continue
            if head:
                assert packet is None, "a packet begins within another"
                packet = []
            assert packet is not None, "the rest of a packet without its beginning"
            packet.append(data)
            if not tail:
                continue
            number = next((word >> 8 for word in packet[1:] if word), None)
            whole = [word for word, _ in other.sent.get(number, [])] if number else []
            if self.hops:
                whole, packet = whole[1:], packet[1:]  # the router has taken its part of the route
            if packet == whole:
                assert {vl} == {lane for _, lane in other.sent[number]}
                self.got.append(number)
            else:
                assert packet[-1] == 0 and (number is None or packet[:-1] == whole[: len(packet) - 1])
                self.cut += 1
            packet = None


def parts(
    rng: random.Random, *, profile: str = "", router: bool = False, packets: bool = False, **link: Any
) -> tuple[NicConfig, RouterConfig | None]:
    """Card and router of a profile as every user gets them; else small ones, with buffers of any size."""
    if profile:
        return preset(NicConfig, profile), preset(RouterConfig, profile)
    config = LinkConfig(flit_bits=FLIT_BITS, restart=True, hop_bits=4, **link)
    more = (
        {"vl_packets": 2, "send_queue_entries": 2, "input_buffer_flits": 40, "mtu_bytes": 64}
        if packets
        else {}
    )
    if packets and config.rate_den >= 5 * config.rate_num:
        # A port with registers.
        more |= {"pipelined": True, "vl_arbiter": "table_fast", "vl_table_entries": 4}
    nic = preset(NicConfig, "tiny", link=config).replace(
        **({"input_buffer_flits": rng.choice((2, 3, 8))} | more)
    )
    small = RouterConfig(link=config, ports=2, input_buffer_flits=4, output_buffer_flits=3)
    return nic, small if router else None


class Bench:
    """Two ends, A and B, with or without a router between them; `design` goes to `parts`."""

    def __init__(self, *, seed: int, **design: Any) -> None:
        self.rng = rng = random.Random(seed)
        nic, router = parts(rng, **design)
        m = Module()
        depth = router.input_buffer_flits if router else nic.input_buffer_flits
        self.ends = [
            End(make_port(nic, downstream_flits=depth), i, rng, hops=router is not None) for i in range(2)
        ]
        for end in self.ends:
            m.submodules[f"end_{end.number}"] = ResetInserter(end.reset)(end.port)
        a, b = (end.port for end in self.ends)
        # As long as all buffers on the way take to empty at the link's rate, and a link to begin anew.
        held = 2 * depth + nic.input_buffer_flits + 2 * nic.vl_packets * max(LENGTHS)
        self.drain_cycles = 400 + 2 * math.ceil(held * nic.link.vls / nic.link.rate)
        self.router_reset = Signal()
        self.router: Router | None = None
        if router:
            self.router = Router(router, credit_flits=[nic.input_buffer_flits] * router.ports)
            m.submodules.router = ResetInserter(self.router_reset)(self.router)
            for i, port in enumerate((a, b)):
                connect(m, port.tx, self.router.rx[i])
                connect(m, self.router.tx[i], port.rx)
        else:
            connect(m, a.tx, b.rx)
            connect(m, b.tx, a.rx)
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        for end in self.ends:

            async def feed(ctx: Any, end: End = end) -> None:
                await end.feed(ctx)

            async def take(ctx: Any, end: End = end) -> None:
                await end.take(ctx, self.ends)

            self.simulator.add_testbench(feed, background=True)
            self.simulator.add_testbench(take, background=True)

    async def pulse(self, ctx: Any, reset: Signal, cycles: int) -> None:
        ctx.set(reset, 1)
        for _ in range(cycles):
            await ctx.tick()
        ctx.set(reset, 0)

    async def drain(self, ctx: Any) -> None:
        """Send no more packets. Those under way come, and the links work."""
        for end in self.ends:
            end.paused, end.chance = True, 1.0
        for _ in range(self.drain_cycles):
            await ctx.tick()
        for end in self.ends:
            assert not ctx.get(end.port.down), f"the link of end {end.number} does not work again"

    def run(self, script: Any) -> None:
        self.simulator.add_testbench(script)
        self.simulator.run()


def resets(seed: int, count: int, **design: Any) -> dict[str, int]:
    """Play `count` rounds of one to three resets of any parts at any moments. Then good packets must all come, in the
    order of each VL."""
    bench = Bench(seed=seed, **design)
    rng, ends = bench.rng, bench.ends
    targets = [end.reset for end in ends] + [bench.router_reset] * (bench.router is not None)
    found = {"good": 0, "cut": 0}

    async def script(ctx: Any) -> None:
        for _ in range(count):
            for end in ends:
                end.paused, end.chance = False, rng.choice((0.2, 0.6, 1.0))
            for _ in range(rng.randrange(5, 60)):
                await ctx.tick()
            for _ in range(rng.randrange(1, 4)):
                await bench.pulse(ctx, rng.choice(targets), rng.choice((1, 1, 2, 9)))
                for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 13, 20, 40))):
                    await ctx.tick()
            await bench.drain(ctx)
            for end in ends:
                end.got.clear()
            first = [end.sequence + 1 for end in ends]
            for end in ends:
                end.paused = False
            for _ in range(160):
                await ctx.tick()
            await bench.drain(ctx)
            for end, other in zip(ends, reversed(ends), strict=True):
                sent = set(range(first[other.number], other.sequence + 1))
                assert set(end.got) == sent and len(end.got) == len(sent) > 3
                for vl in range(end.vls):
                    mine = [number for number in end.got if other.sent[number][0][1] == vl]
                    assert mine == sorted(mine)
                found["good"] += len(sent)
                found["cut"] += end.cut

    bench.run(script)
    return found


DESIGNS = {
    "cards": {"vls": 1},
    "cards, long wires, 3 VLs": {"vls": 3, "delay_cycles": 3},
    "cards, a slow link": {"vls": 2, "rate_num": 1, "rate_den": 3, "delay_cycles": 1},
    "cards with packet buffers": {"vls": 3, "packets": True, "delay_cycles": 2},
    "cards with packet buffers and registers": {"vls": 3, "packets": True, "rate_den": 5, "delay_cycles": 2},
    "a router between": {"vls": 2, "router": True},
    "a router between, long wires": {"vls": 3, "router": True, "delay_cycles": 2},
}


QUICK = ("cards", "cards, long wires, 3 VLs", "a router between")
"""Designs that the normal run keeps."""


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(design, id=name, marks=[] if name in QUICK else pytest.mark.full)
        for name, design in DESIGNS.items()
    ],
)
def test_after_resets_of_either_end_the_link_works_and_no_packets_are_joined(design):
    found = resets(7, 3, **design)
    assert found["cut"] > 0


@pytest.mark.parametrize(
    "profile",
    ["lanai4", *(pytest.param(name, marks=pytest.mark.full) for name in ("tiny", "lanai7", "iba"))],
)
def test_a_card_of_any_profile_is_reset_alone_under_traffic_and_its_link_to_the_router_lives(profile):
    """No option was given: cards and routers of the profiles are those from which clusters are made."""
    found = resets(11, 3, profile=profile)
    assert found["cut"] > 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_many_resets(design, seed):
    found = resets(seed, 40, **design)
    assert found["cut"] > 5


def run_alone(dut: Any, bench: Any) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_packets_that_are_cut_on_their_way_out_are_counted_over_the_wrap():
    """Three VLs have a packet under way as the link goes down, and one begins in that cycle."""
    dut = TransmitRestart(LinkConfig(vls=4, restart=True))

    async def bench(ctx: Any) -> None:
        cuts = Nearly(ctx, dut.cuts, 2)
        ctx.set(dut.moved, 1)
        for vl in range(3):
            ctx.set(dut.vl, vl)
            await ctx.tick()
        ctx.set(dut.vl, 3)
        ctx.set(dut.peer, 1)
        await ctx.tick()
        ctx.set(dut.moved, 0)
        assert ctx.get(dut.cuts) == cuts(4) == 2
        await ctx.tick().repeat(20)
        assert ctx.get(dut.cuts) == 2

    run_alone(dut, bench)


def test_packets_that_are_cut_on_their_way_in_and_lost_flits_are_counted_over_the_wrap():
    """Three packets are ended, one a time, and four flits that come meanwhile are thrown away."""
    dut = ReceiveRestart(LinkConfig(vls=4, restart=True))

    async def bench(ctx: Any) -> None:
        cuts, lost = Nearly(ctx, dut.cuts, 2), Nearly(ctx, dut.lost, 3)
        ctx.set(dut.valid, 1)
        for vl in range(3):
            ctx.set(dut.vl, vl)
            await ctx.tick()
        ctx.set(dut.restart, 1)
        await ctx.tick().repeat(4)
        ctx.set(dut.valid, 0)
        await ctx.tick().repeat(30)
        assert ctx.get(dut.cuts) == cuts(3) == 1
        assert ctx.get(dut.lost) == lost(4) == 1

    run_alone(dut, bench)


@pytest.mark.parametrize("registered", [False, True])
def test_packets_that_are_cut_in_packet_buffers_are_counted_over_the_wrap(registered: bool):
    """Three VLs have a packet under way as the link goes down."""
    link = LinkConfig(flit_bits=FLIT_BITS, vls=4, rate_den=5 if registered else 1, restart=True, hop_bits=4)
    nic = preset(NicConfig, "tiny", link=link).replace(
        vl_packets=2,
        send_queue_entries=2,
        input_buffer_flits=40,
        mtu_bytes=64,
        vl_arbiter="table_fast",
        pipelined=registered,
    )
    dut = make_port(nic, downstream_flits=4)
    assert isinstance(dut, RegisteredVlPort) == registered

    async def bench(ctx: Any) -> None:
        cuts = Nearly(ctx, dut.cuts_out)
        ctx.set(dut.send.valid, 1)
        for vl in range(3):
            ctx.set(dut.send.payload, {"data": 0, "vl": vl, "head": 1, "tail": 0})
            await ctx.tick()
        ctx.set(dut.send.valid, 0)
        await ctx.tick().repeat(30)
        ctx.set(dut.tx.credit_restart, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.cuts_out) == cuts(3) == 2

    run_alone(dut, bench)
