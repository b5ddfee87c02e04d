# amaranth: UnusedElaboratable=no
"""The port with packet buffers a VL, between a checking link and flit streams: no VL holds up another one."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.link_port.registered_port import RegisteredVlPort, make_port
from lanikai.hdl.nic.link_port.vl_port import VlPort
from support.hdl.flit_streams import Flit, FlitSink
from support.hdl.link_ends import LinkReceiver, LinkTransmitter

REGISTERED = {"pipelined": True, "vl_arbiter": "table_fast", "rate_num": 1, "rate_den": 5}
"""Changes that make the port one with registers, on the fastest link that it has."""
forms = pytest.mark.parametrize("form", [{}, REGISTERED], ids=["plain", "registered"])


def port_of(vls: int, **changes: Any) -> NicConfig:
    """A card with packets of up to 9 flits and two buffers for them a VL."""
    link = {name: changes.pop(name) for name in ("rate_num", "rate_den", "delay_cycles") if name in changes}
    config = preset(NicConfig, "tiny", mtu_bytes=16, link=LinkConfig(flit_bits=32, vls=vls, **link))
    assert config.packet_flits == 9
    return config.replace(send_queue_entries=2, vl_packets=2, **{"input_buffer_flits": 9} | changes)


class Feeder:
    """The feeder in front of the port.

    It begins a packet of a VL that has room, the emptiest first if `fair`, and sends its flits with pauses.
    """

    def __init__(self, dut: Any, *, rng: random.Random, stall: float) -> None:
        self.dut, self.rng, self.stall = dut, rng, stall
        self.waiting: list[deque[list[Flit]]] = [deque() for _ in range(dut.config.link.vls)]
        self.endless: list[int] = []
        self.waits = 0  # cycles in which a flit was not taken

    async def process(self, ctx: Any) -> None:
        dut = self.dut
        flits: deque[Flit] = deque()
        while True:
            ctx.set(dut.begin, 0)
            room, hungry = ctx.get(dut.room), ~ctx.get(dut.leaving)
            able = [vl for vl, queue in enumerate(self.waiting) if queue or vl in self.endless]
            able = [vl for vl in able if room >> vl & 1]
            able = [vl for vl in able if hungry >> vl & 1] or able
            if not flits and able and self.rng.random() >= self.stall:
                vl = self.rng.choice(able)
                if vl in self.endless:
                    packet = [Flit(i, vl, int(i == 0), int(i == 8)) for i in range(9)]
                else:
                    packet = self.waiting[vl].popleft()
                flits.extend(packet)
                ctx.set(dut.begin, 1)
                ctx.set(dut.begin_vl, vl)
            offered = bool(flits) and self.rng.random() >= self.stall
            ctx.set(dut.send.valid, offered)
            if offered:
                ctx.set(dut.send.payload, flits[0]._asdict())
            _, _, ready = await ctx.tick().sample(dut.send.ready)
            if offered and ready:
                flits.popleft()
            self.waits += offered and not ready


class Rig:
    """A port with both ends of its link and both its streams."""

    def __init__(
        self, config: NicConfig, *, seed: int, downstream: int = 4, stalls: tuple[float, float] = (0, 0)
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.config = config
        self.dut = dut = make_port(config, downstream_flits=downstream)
        assert type(dut) is (RegisteredVlPort if config.pipelined else VlPort)
        vls, (network, card) = config.link.vls, stalls
        self.feeder = Feeder(dut, rng=rng, stall=card)
        self.sink = FlitSink(dut.receive, rng=rng, stall=card)
        self.receiver = LinkReceiver(dut.tx, vls=vls, depth=downstream, rng=rng, stall=network)
        self.transmitter = LinkTransmitter(
            dut.rx, vls=vls, depth=config.input_buffer_flits, rng=rng, stall=network
        )

    def packet(self, vl: int, size: int) -> list[Flit]:
        return [Flit(self.rng.getrandbits(32), vl, int(i == 0), int(i == size - 1)) for i in range(size)]

    def run(self, bench: Any, *, home: bool = True) -> None:
        async def wrapped(ctx: Any) -> None:
            await bench(ctx)
            if home:
                self.receiver.stall = 0.0
                self.receiver.blocked = set()
                late = 30 if self.config.pipelined else 6
                await ctx.tick().repeat(sum(self.receiver.held) + 2 * self.config.link.delay_cycles + late)
                assert not ctx.get(self.dut.moved) and not ctx.get(self.dut.receive.valid)
                assert ctx.get(self.dut.room) == (1 << self.config.link.vls) - 1
                assert not ctx.get(self.dut.leaving) and not ctx.get(self.dut.arrived)

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(wrapped)
        for part in (self.feeder, self.sink, self.receiver, self.transmitter):
            simulator.add_testbench(part.process, background=True)
        simulator.run()
        if home:
            assert set(self.transmitter.credits) == {self.config.input_buffer_flits}
            assert not any(self.receiver.held)


async def until(ctx: Any, condition: Any, what: str, limit: int = 5000) -> None:
    for _ in range(limit):
        if condition():
            return
        await ctx.tick()
    raise AssertionError(f"{what}: not within {limit} cycles")


def of(flits: list[Flit], vl: int) -> list[Flit]:
    return [flit for flit in flits if flit.vl == vl]


packets = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 9)), max_size=14)


@pytest.mark.parametrize(
    ("vls", "arbiter"),
    [
        (1, "round_robin"),
        pytest.param(2, "table_slow", marks=pytest.mark.full),
        pytest.param(4, "table_fast", marks=pytest.mark.full),
        (4, "table_iba"),
        (16, "deficit"),
        (4, "registered table_fast"),
        pytest.param(16, "registered table_slow", marks=pytest.mark.full),
    ],
)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32),
    stalls=st.tuples(st.sampled_from([0.0, 0.5, 0.8]), st.sampled_from([0.0, 0.5])),
    out=packets,
    into=packets,
)
def test_packets_pass_whole_and_in_order_in_each_vl(
    vls: int, arbiter: str, seed: int, stalls: tuple[float, float], out: Any, into: Any
) -> None:
    form = REGISTERED if "registered" in arbiter else {}
    changes = {**form, "vl_arbiter": arbiter.split()[-1]}
    config = port_of(vls, vl_table_entries=4, delay_cycles=seed % 3, **changes)
    rig = Rig(config, seed=seed, downstream=2 + seed % 5, stalls=stalls)
    leaving = [rig.packet(vl % vls, size) for vl, size in out]
    coming = [rig.packet(vl % vls, size) for vl, size in into]
    for packet in leaving:
        rig.feeder.waiting[packet[0].vl].append(packet)
    for packet in coming:
        rig.transmitter.waiting[packet[0].vl].extend(packet)
    counts = [sum(map(len, group)) for group in (leaving, coming)]

    async def bench(ctx: Any) -> None:
        def done() -> bool:
            return [len(rig.receiver.flits), len(rig.sink.flits)] == counts

        await until(ctx, done, "all flits")

    rig.run(bench)
    for vl in range(vls):
        assert of(rig.receiver.flits, vl) == [f for p in leaving if p[0].vl == vl for f in p]
    left = {vl: [packet for packet in coming if packet[0].vl == vl] for vl in range(vls)}
    seen = iter(rig.sink.flits)
    for flit in seen:
        packet = left[flit.vl].pop(0)
        assert [flit, *(next(seen) for _ in packet[1:])] == packet
    assert not any(left.values())


@forms
@pytest.mark.parametrize("vls", [2, 4, 16])
def test_a_vl_without_credits_holds_up_no_other_on_the_way_out(vls: int, form: dict[str, Any]) -> None:
    rig = Rig(port_of(vls, **form), seed=vls)
    rig.receiver.blocked = {0}
    sent = {vl: [rig.packet(vl, 9) for _ in range(6)] for vl in range(vls)}
    for vl, queue in sent.items():
        rig.feeder.waiting[vl].extend(queue)

    async def bench(ctx: Any) -> None:
        await until(ctx, lambda: len(rig.receiver.flits) == 54 * (vls - 1) + 4, "all but VL 0")
        await ctx.tick().repeat(50)
        # VL 0 has sent what it had credits for, keeps two packets in its buffers, and has begun no third one.
        assert len(of(rig.receiver.flits, 0)) == 4 and ctx.get(rig.dut.blocked) == 1
        assert ctx.get(rig.dut.room) == (1 << vls) - 2 and len(rig.feeder.waiting[0]) == 4
        assert rig.feeder.waits == 0
        rig.receiver.blocked = set()
        await until(ctx, lambda: len(rig.receiver.flits) == 54 * vls, "VL 0")

    rig.run(bench)
    for vl, queue in sent.items():
        assert of(rig.receiver.flits, vl) == [flit for packet in queue for flit in packet]


@forms
@pytest.mark.parametrize("vls", [2, 4, 16])
def test_a_packet_that_stands_in_the_network_holds_up_no_other_on_the_way_in(
    vls: int, form: dict[str, Any]
) -> None:
    rig = Rig(port_of(vls, **form), seed=vls)
    slow, others = rig.packet(0, 9), [rig.packet(vl, 9) for vl in range(1, vls) for _ in range(3)]
    rig.transmitter.waiting[0].extend(slow[:5])

    async def bench(ctx: Any) -> None:
        await ctx.tick().repeat(10)
        for packet in others:
            rig.transmitter.waiting[packet[0].vl].extend(packet)
        await until(ctx, lambda: len(rig.sink.flits) == 27 * (vls - 1), "the others")
        rig.transmitter.waiting[0].extend(slow[5:])
        await until(ctx, lambda: len(rig.sink.flits) == 27 * (vls - 1) + 9, "the slow one")

    rig.run(bench)
    assert rig.sink.flits[-9:] == slow


@forms
def test_vls_that_are_held_wait_and_others_pass(form: dict[str, Any]) -> None:
    rig = Rig(port_of(4, **form), seed=1)
    for vl in range(4):
        for _ in range(2):
            rig.transmitter.waiting[vl].extend(rig.packet(vl, 6))

    async def bench(ctx: Any) -> None:
        ctx.set(rig.dut.hold, 0b0101)
        await until(ctx, lambda: len(rig.sink.flits) == 24, "VLs 1 and 3")
        await ctx.tick().repeat(30)
        assert {flit.vl for flit in rig.sink.flits} == {1, 3} and ctx.get(rig.dut.arrived) == 0b0101
        # A buffer of 9 flits has a packet and a half; the rest waits for credits.
        assert [len(queue) for queue in rig.transmitter.waiting] == [3, 0, 3, 0]
        ctx.set(rig.dut.hold, 0b0001)
        await until(ctx, lambda: len(rig.sink.flits) == 36, "VL 2")
        ctx.set(rig.dut.hold, 0)
        await until(ctx, lambda: len(rig.sink.flits) == 48, "VL 0")

    rig.run(bench)


@forms
def test_the_control_vl_comes_in_first(form: dict[str, Any]) -> None:
    rig = Rig(port_of(16, **form), seed=1)
    for vl in (*range(15), 15, 15):
        rig.transmitter.waiting[vl].extend(rig.packet(vl, 4))

    async def bench(ctx: Any) -> None:
        ctx.set(rig.dut.hold, 0xFFFF)
        await ctx.tick().repeat(100)
        ctx.set(rig.dut.hold, 0)
        await until(ctx, lambda: len(rig.sink.flits) == 68, "all")

    rig.run(bench)
    assert [flit.vl for flit in rig.sink.flits if flit.head] == [15, 15, *range(15)]


@forms
def test_a_packet_that_is_too_long_passes_in_the_end(form: dict[str, Any]) -> None:
    rig = Rig(port_of(2, **form), seed=1)
    out, into = rig.packet(0, 40), rig.packet(1, 40)
    rig.feeder.waiting[0].append(out)
    rig.transmitter.waiting[1].extend(into)

    async def bench(ctx: Any) -> None:
        await until(ctx, lambda: len(rig.sink.flits) + len(rig.receiver.flits) == 80, "both")

    rig.run(bench)
    assert (rig.receiver.flits, rig.sink.flits) == (out, into)


async def write_tables(ctx: Any, table: Any, weights: dict[int, int]) -> None:
    """A low table of an entry a VL."""
    while not ctx.get(table.ready):
        await ctx.tick()
    for entry, (vl, weight) in enumerate(weights.items()):
        ctx.set(table.entry, entry)
        ctx.set(table.vl, vl)
        ctx.set(table.weight, weight)
        ctx.set(table.write, 1)
        await ctx.tick()
    ctx.set(table.write, 0)
    ctx.set(table.limit, 255)
    ctx.set(table.commit, 1)
    await ctx.tick()
    ctx.set(table.commit, 0)


@pytest.mark.parametrize(
    ("vls", "arbiter", "weights"),
    [
        pytest.param(2, "table_fast", {0: 1, 1: 3}, marks=pytest.mark.full),
        (4, "table_fast", {0: 1, 1: 2, 2: 5, 3: 8}),
        (4, "table_slow", {0: 4, 1: 8, 2: 20, 3: 32}),
        # Weights of 64 bytes: 16 of these flits, so a packet of 9 counts as one.
        pytest.param(4, "table_iba", {0: 1, 1: 2, 2: 5, 3: 8}, marks=pytest.mark.full),
        pytest.param(16, "table_fast", {vl: 1 + vl % 5 for vl in range(15)}, marks=pytest.mark.full),
        (4, "registered table_fast", {0: 1, 1: 2, 2: 5, 3: 8}),
        pytest.param(4, "registered table_slow", {0: 4, 1: 8, 2: 20, 3: 32}, marks=pytest.mark.full),
        pytest.param(
            16, "registered table_fast", {vl: 1 + vl % 5 for vl in range(15)}, marks=pytest.mark.full
        ),
        (4, "round_robin", {}),
        (4, "deficit", {}),
        pytest.param(16, "fcfs_packet", {}, marks=pytest.mark.full),
    ],
)
def test_backlogged_vls_share_the_link_by_their_weights(
    vls: int, arbiter: str, weights: dict[int, int]
) -> None:
    """The shares are right within 1%, over whole frames from the fourth on.

    The link has half the engine's rate, or the most that a port with registers has.
    """
    shares_of(vls, arbiter, weights, (1, 5) if "registered" in arbiter else (1, 2))


def test_a_link_that_is_a_little_slower_than_the_engine_is_shared_as_well() -> None:
    shares_of(2, "table_fast", {0: 1, 1: 3}, (19, 20))


def shares_of(vls: int, arbiter: str, weights: dict[int, int], rate: tuple[int, int]) -> None:
    *form, arbiter = arbiter.split()
    changes = {"vl_arbiter": arbiter, "rate_num": rate[0], "rate_den": rate[1], "pipelined": bool(form)}
    config = port_of(vls, vl_table_entries=16, **changes)
    rig = Rig(config, seed=3, downstream=9)
    shares = weights or dict.fromkeys(range(15 if vls == 16 else vls), 1)
    rig.feeder.endless = list(shares)
    frame = sum(shares.values()) * (9 if arbiter in ("table_iba", "deficit", "fcfs_packet") else 1)
    # Until the buffers of two packets a VL are full, as the engine brings more than leaves.
    fill = int(18 * vls / (rate[1] / rate[0] - 1))
    count = frame * -(-400 // frame)
    begun: list[int] = []

    async def bench(ctx: Any) -> None:
        if hasattr(rig.dut, "table"):
            await write_tables(ctx, rig.dut.table, weights)
            while not ctx.get(rig.dut.table.ready):
                await ctx.tick()
        begun.append(len(rig.receiver.flits))
        await until(
            ctx, lambda: len(rig.receiver.flits) >= begun[0] + fill + 3 * frame + count, "the window", 9000
        )

    rig.run(bench, home=False)
    start = begun[0] + fill + 3 * frame
    window = rig.receiver.flits[start : start + count]
    total = sum(shares.values())
    for vl, weight in shares.items():
        assert abs(len(of(window, vl)) / count - weight / total) <= 0.01 * weight / total, f"VL {vl}"
    # The link is never idle.
    cycles = rig.receiver.cycles[start : start + count]
    assert cycles[-1] - cycles[0] <= (count - 1) * rate[1] / rate[0] + 1


def test_the_control_vl_and_the_lowest_vl_go_first() -> None:
    """VL 15 of 16 goes before all, whatever the arbiter. With fixed priority VL 0 goes before VL 1."""
    config = port_of(16, vl_arbiter="fixed_priority", rate_num=1, rate_den=3)
    rig = Rig(config, seed=1, downstream=9)
    rig.feeder.endless = [0, 1]

    async def bench(ctx: Any) -> None:
        await ctx.tick().repeat(300)
        rig.feeder.endless = [0, 1, 15]
        await ctx.tick().repeat(300)

    rig.run(bench, home=False)
    before = [flit.vl for flit in rig.receiver.flits if flit.vl != 15]
    assert before.count(1) <= 9 < before.count(0)
    assert [flit.vl for flit in rig.receiver.flits][-80:] == [15] * 80


def test_wrong_configurations_are_one_line() -> None:
    base = preset(NicConfig, "tiny")
    for changes, text in (
        ({"vl_packets": 1}, "vl_packets = 1: 2 at least, or 0 for none"),
        ({"vl_packets": 2}, "vl_packets = 2: needs send_queue_entries, 2 at least: each VL has a queue"),
        (
            {"vl_packets": 2, "send_queue_entries": 4, "send_queue_order": "timestamp"},
            "vl_packets = 2: needs send_queue_order = 'arrival': the order in each VL",
        ),
        (
            {"vl_packets": 2, "send_queue_entries": 4},
            "vl_packets = 2: needs input_buffer_flits, 37 at least: the longest packet, CRC included",
        ),
        (
            {"vl_packets": 2, "send_queue_entries": 4, "input_buffer_flits": 1024, "mtu_bytes": 4096},
            "vl_packets = 2: needs input_buffer_flits, 1029 at least: the longest packet, CRC included",
        ),
        (
            {"vl_packets": 16, "send_queue_entries": 4, "input_buffer_flits": 100, "mtu_bytes": 256},
            "vl_packets = 16: 1104 flits a VL, with packets of 69: at most 1024",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            base.replace(**changes)
        assert str(caught.value) == f"NicConfig: {text}"
    with pytest.raises(ConfigError, match=r"^NicConfig.vl_arbiter = 'best': one of deficit, fcfs, "):
        VlPort(port_of(2, vl_arbiter="best"), downstream_flits=4)
