# amaranth: UnusedElaboratable=no
"""The packet interface between a checking link and flit streams: order, whole packets, credits, rate."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.link_port.packet_interface import PacketInterface
from support.hdl.flit_streams import Flit, FlitSink, FlitSource
from support.hdl.link_ends import LinkReceiver, LinkTransmitter

TINY = preset(NicConfig, "tiny")
CONFIGS = {
    "tiny": TINY,
    "one-vl": TINY.replace(link=LinkConfig(flit_bits=64, rate_num=20, rate_den=33), input_buffer_flits=3),
    "16-vls": TINY.replace(link=LinkConfig(flit_bits=128, vls=16, delay_cycles=2), input_buffer_flits=5),
}


class Rig:
    """An interface with both ends of its link and both its streams."""

    def __init__(
        self, config: NicConfig, *, downstream: int, seed: int, stalls: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.config = config
        self.dut = dut = PacketInterface(config, downstream_flits=downstream)
        vls, (network, card) = config.link.vls, stalls
        self.source = FlitSource(dut.send, rng=rng, stall=card)
        self.sink = FlitSink(dut.receive, rng=rng, stall=card)
        self.receiver = LinkReceiver(dut.tx, vls=vls, depth=downstream, rng=rng, stall=network)
        self.transmitter = LinkTransmitter(
            dut.rx, vls=vls, depth=config.input_buffer_flits, rng=rng, stall=network
        )
        self.moved: list[int] = []

    def packets(self, sizes: list[int]) -> list[list[Flit]]:
        """Packets of `sizes` flits on random VLs, with random data."""
        made = []
        for size in sizes:
            vl = self.rng.randrange(self.config.link.vls)
            made.append(
                [
                    Flit(
                        self.rng.getrandbits(self.config.link.flit_bits), vl, int(i == 0), int(i == size - 1)
                    )
                    for i in range(size)
                ]
            )
        return made

    def run(self, *, sent: int, received: int, meanwhile: Any = None) -> None:
        """Run until that many flits have come out at either end, and then until all credits are home. `meanwhile` is
        one more coroutine."""

        async def bench(ctx: Any) -> None:
            for _ in range(20_000):
                if len(self.receiver.flits) >= sent and len(self.sink.flits) >= received:
                    break
                _, _, moved = await ctx.tick().sample(self.dut.moved)
                self.moved.append(moved)
            else:
                raise AssertionError("flits are stuck")
            self.receiver.stall = 0.0
            await ctx.tick().repeat(sum(self.receiver.held) + 2 * self.config.link.delay_cycles + 5)
            assert not ctx.get(self.dut.moved) and not ctx.get(self.dut.receive.valid)

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        if meanwhile is not None:
            simulator.add_testbench(meanwhile)
        for part in (self.source, self.sink, self.receiver, self.transmitter):
            simulator.add_testbench(part.process, background=True)
        simulator.run()
        assert set(self.transmitter.credits) == {self.config.input_buffer_flits}
        assert not any(self.receiver.held)


sizes = st.lists(st.integers(1, 12), max_size=12)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    downstream=st.integers(2, 9),
    stalls=st.tuples(st.sampled_from([0.0, 0.5, 0.8]), st.sampled_from([0.0, 0.5, 0.8])),
    out=sizes,
    into=sizes,
)
def test_packets_pass_whole_and_in_order(
    config: NicConfig,
    seed: int,
    downstream: int,
    stalls: tuple[float, float],
    out: list[int],
    into: list[int],
) -> None:
    rig = Rig(config, downstream=downstream, seed=seed, stalls=stalls)
    leaving, coming = rig.packets(out), rig.packets(into)
    rig.source.waiting.extend(flit for packet in leaving for flit in packet)
    for packet in coming:
        rig.transmitter.waiting[packet[0].vl].extend(packet)
    rig.run(sent=sum(out), received=sum(into))
    assert rig.receiver.flits == [flit for packet in leaving for flit in packet]
    # Whole packets came, one behind the other, those of a VL in their order.
    left = {vl: [packet for packet in coming if packet[0].vl == vl] for vl in range(config.link.vls)}
    seen = iter(rig.sink.flits)
    for flit in seen:
        packet = left[flit.vl].pop(0)
        assert [flit, *(next(seen) for _ in packet[1:])] == packet
    assert not any(left.values())


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), rate=st.fractions(Fraction(1, 9), 1, max_denominator=64))
def test_the_links_rate_is_kept_and_used(seed: int, rate: Fraction) -> None:
    """At most rate * cycles + 1 flits go in any window, and as many if there is always something to send."""
    link = LinkConfig(flit_bits=32, rate_num=rate.numerator, rate_den=rate.denominator)
    rig = Rig(TINY.replace(link=link), downstream=12, seed=seed)
    count = 60
    rig.source.waiting.extend(flit for packet in rig.packets([5] * (count // 5)) for flit in packet)
    rig.run(sent=count, received=0)
    cycles = rig.receiver.cycles
    for i in range(count):
        for j in range(i, count):
            assert j - i + 1 <= rate * (cycles[j] - cycles[i] + 1) + 1
    assert cycles[-1] - cycles[0] <= (count - 1) / rate + 1


def test_a_flit_a_cycle_each_way() -> None:
    """The case has buffers of 10 flits. A flit is on `receive` 2 cycles after it was on the link."""
    config = TINY.replace(link=LinkConfig(flit_bits=64), input_buffer_flits=10)
    rig = Rig(config, downstream=10, seed=1)
    leaving, coming = rig.packets([1, 40, 2, 57]), rig.packets([1, 40, 2, 57])
    rig.source.waiting.extend(flit for packet in leaving for flit in packet)
    rig.transmitter.waiting[0].extend(flit for packet in coming for flit in packet)
    rig.run(sent=100, received=100)
    assert rig.receiver.cycles == list(range(100))
    assert rig.sink.cycles == list(range(2, 102))
    assert rig.moved[:102] == [1] * 102


def test_a_flit_on_offer_is_not_exchanged_for_another() -> None:
    """A packet of VL 1 waits on `receive` while VL 0, whose turn would be first, gets one too."""
    rig = Rig(TINY, downstream=4, seed=1, stalls=(0.0, 1.0))
    rig.transmitter.waiting[1].extend([Flit(1, 1, 1, 0), Flit(2, 1, 0, 1)])

    async def later(ctx: Any) -> None:
        await ctx.tick().repeat(5)
        rig.transmitter.waiting[0].extend([Flit(3, 0, 1, 0), Flit(4, 0, 0, 1)])
        await ctx.tick().repeat(5)
        rig.sink.stall = 0.0

    rig.run(sent=0, received=4, meanwhile=later)
    assert [flit.data for flit in rig.sink.flits] == [1, 2, 3, 4]
    # Each flit moved twice: into its buffer while nothing left, and out of it.
    assert sum(rig.moved) == 8


def test_vls_take_turns_by_the_packet() -> None:
    rig = Rig(TINY.replace(input_buffer_flits=8), downstream=2, seed=1, stalls=(0.0, 0.7))
    for vl in (0, 1):
        rig.transmitter.waiting[vl].extend(Flit(i, vl, int(i % 2 == 0), i % 2) for i in range(20))
    rig.run(sent=0, received=40)
    turns = [flit.vl for flit in rig.sink.flits if flit.head]
    assert turns in ([0, 1] * 10, [1, 0] * 10)


def test_a_buffer_without_room_for_the_credit_loop_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        PacketInterface(TINY, downstream_flits=1)
    assert str(caught.value) == "PacketInterface: downstream_flits = 1: at least 2"
