"""The rate and the latency of the adapter's receive side: everything from the link to the answered completion.

A port, the receive engine and a completion writer share one bus, whose memory answers after 20 cycles.
"""

import random

import pytest
from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out, connect, flipped
from amaranth.sim import Simulator
from lanikai.hdl.axi import Axi4Signature
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.completion_writer import CompletionWriter
from lanikai.hdl.hca.receive_engine import ReceiveSide
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.nic.dma.axi_join import join_managers, joined_id_bits
from lanikai.hdl.nic.link_port.vl_port import VlPort
from support.hdl.axi_memory import AxiMemory
from support.hdl.hca.receive_model import Packet, wqe_bits
from support.hdl.hca.streams import put

LATENCY = 20
CONFIG = HcaConfig(
    link=LinkConfig(flit_bits=128, vls=4, hop_bits=3),
    queue_pairs=8,
    completion_queues=2,
    regions=2,
    owners=3,
    translation_entries=16,
)
PACKETS = 60
RINGS, TABLE, COMPLETIONS, DATA, VIRTUAL = 0x1000, 0x3000, 0x4000, 0x10000, 0x80000
SLOT = 1024
"""Bytes between the buffers: with the offset of 480, 1 of 4 packets of 608 bytes is in two pages."""


class Reads(Component):
    """A stand-in for the messages that an adapter sends: bursts of 38 beats, two of which are always under way."""

    def __init__(self):
        super().__init__({"axi": Out(Axi4Signature(data_bits=128))})

    def elaborate(self, platform):
        m = Module()
        under_way = Signal(2)
        begun, ended = Signal(), Signal()
        m.d.comb += [
            self.axi.arvalid.eq(under_way < 2),
            self.axi.arlen.eq(37),
            self.axi.arsize.eq(4),
            self.axi.arburst.eq(1),
            self.axi.rready.eq(1),
            begun.eq(self.axi.arvalid & self.axi.arready),
            ended.eq(self.axi.rvalid & self.axi.rlast),
        ]
        m.d.sync += under_way.eq(under_way + begun - ended)
        return m


class Receiver(Component):
    """A port, the engine and the writer over one bus; with `sends`, beside messages that are read."""

    def __init__(self, *, sends):
        bus = Axi4Signature(data_bits=128, id_bits=joined_id_bits(4 + sends, 0))
        super().__init__({"rx": In(LinkSignature(CONFIG.link)), "axi": Out(bus)})
        self.port = VlPort(CONFIG.port, downstream_flits=4)
        self.engine, self.writer = ReceiveSide(CONFIG), CompletionWriter(CONFIG, sources=1)
        self.reads = Reads() if sends else None

    def elaborate(self, platform):
        m = Module()
        m.submodules += [self.port, self.engine, self.writer]
        port, engine, writer = self.port, self.engine, self.writer
        connect(m, flipped(self.rx), port.rx)
        connect(m, port.receive, engine.flits)
        connect(m, engine.post, writer.post_0)
        managers = [engine.data_axi, engine.ring_axi, engine.page_axi, writer.axi]
        if self.reads:
            m.submodules += self.reads
            managers.append(self.reads.axi)
        join_managers(m, self.axi, managers)
        return m


def run(vls, *, packets=PACKETS, payload=608, offset=480, packets_a_message=1, gap=0, sends=False):
    """Sends packets over the link as fast as credits come.

    Packet i goes on VL i modulo `vls` to the queue pair of that number. Returns the cycles of all flits
    and of tails on the link, of tails that the engine takes, of posts and of answered completions.
    """
    dut, rng = Receiver(sends=sends), random.Random(1)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    memory = bytearray(1 << 18)
    axi = AxiMemory(dut.axi, memory, data_bits=128, rng=rng, latency=LATENCY, max_beats=64)
    simulator.add_testbench(axi.process, background=True)
    now, flits, tails, answers, messages, begun, posts = [0], [], [], [], [], [], []
    credits = [CONFIG.port.input_buffer_flits] * CONFIG.link.vls

    async def watch(ctx):
        while True:
            taken = dut.engine.flits.valid & dut.engine.flits.ready & dut.engine.flits.payload.tail
            posted = dut.engine.post.valid & dut.engine.post.ready
            _, _, done, credit, vl, tail, post = await ctx.tick().sample(
                dut.writer.completed, dut.rx.credit_valid, dut.rx.credit_vl, taken, posted
            )
            now[0] += 1
            begun.extend([now[0]] * tail)
            posts.extend([now[0]] * post)
            credits[vl] += bool(credit)
            if done:
                answers.append(now[0])

    async def script(ctx):
        for page in range(32):
            memory[TABLE + 4 * page : TABLE + 4 * page + 4] = (DATA + 4096 * page | 1).to_bytes(4, "little")
        region = {"region": 1, "valid": 1, "writable": 1, "key": 7, "owner": 1}
        await put(ctx, dut.engine.region, {**region, "start": VIRTUAL, "bytes": 32 * 4096, "table": TABLE})
        await put(ctx, dut.writer.setup, {"queue": 1, "owner": 1, "base": COMPLETIONS, "entries_log2": 9})
        for qp in range(vls):
            base = RINGS + 1024 * qp
            pair = {"qp": qp, "open": 1, "connected": 1, "peer": 5, "peer_qp": qp, "owner": 1, "queue": 1}
            await put(ctx, dut.engine.setup, {**pair, "base": base, "entries_log2": 6})
        for number in range(packets // packets_a_message):
            qp, place = number % vls, number // vls
            buffer = {
                "address": VIRTUAL + SLOT * packets_a_message * number + offset,
                "tag": number,
                "region": 1,
                "key": 7,
            }
            at = RINGS + 1024 * qp + 16 * place
            memory[at : at + 16] = wqe_bits(**buffer, bytes=payload * packets_a_message)
        for qp in range(vls):
            await put(ctx, dut.engine.doorbell, {"owner": 1, "qp": qp, "index": 63})
        await ctx.tick().repeat(200)
        total = payload * packets_a_message
        for number in range(packets // packets_a_message):
            qp, content = number % vls, rng.randbytes(total)
            messages.append((number, content))
            for one in range(packets_a_message):
                words = Packet(
                    qp=qp,
                    source=5,
                    source_qp=qp,
                    payload=content[one * payload : (one + 1) * payload],
                    number=one,
                    first=one == 0,
                    last=one == packets_a_message - 1,
                    total_bytes=total,
                ).flits(CONFIG)
                for i, word in enumerate(words):
                    while not credits[qp]:
                        await ctx.tick()
                    credits[qp] -= 1
                    tail = i == len(words) - 1
                    ctx.set(dut.rx.valid, 1)
                    ctx.set(dut.rx.payload, {"data": word, "vl": qp, "head": i == 0, "tail": tail})
                    await ctx.tick()
                    flits.append(now[0])
                    if tail:
                        tails.append(now[0])
                    ctx.set(dut.rx.valid, 0)
                if gap:
                    await ctx.tick().repeat(gap)
        while len(answers) < len(messages) and now[0] < 20000:
            await ctx.tick()
        for number, content in messages:
            place = DATA + SLOT * packets_a_message * number + offset
            assert memory[place : place + total] == content, number
        assert len(answers) == len(messages)

    simulator.add_testbench(watch, background=True)
    simulator.add_testbench(script)
    simulator.run()
    return flits, tails, begun, posts, answers


@pytest.mark.parametrize(
    ("vls", "message"),
    [(1, 1), pytest.param(4, 1, marks=pytest.mark.full), pytest.param(1, 3, marks=pytest.mark.full)],
)
def test_packets_of_40_flits_come_at_the_rate_of_the_link(vls, message):
    flits, *_, answers = run(vls, packets_a_message=message)
    # The receive side takes them as fast as they are offered for so long only if it is no slower than the link.
    busy = flits[-1] - flits[0] + 1
    print(
        f"{len(flits)} flits in {busy} cycles; the last completion {answers[-1] - flits[-1]} after the last tail"
    )
    assert len(flits) >= 0.98 * busy
    # Nothing has piled up: buffers of two packets and the stage's four would hide a slow receiver of up to 6 packets.
    half = answers[len(answers) // 2 :]
    assert half[-1] - half[0] <= (len(half) - 1) * 40 * message / 0.98


def test_packets_come_at_the_rate_of_the_link_beside_messages_that_are_read():
    # All packets are for one queue pair, whose elements the bus brings between bursts of 38 beats.
    flits, *_, answers = run(1, sends=True)
    busy = flits[-1] - flits[0] + 1
    print(f"{len(flits)} flits in {busy} cycles")
    assert len(flits) >= 0.98 * busy
    half = answers[len(answers) // 2 :]
    assert half[-1] - half[0] <= (len(half) - 1) * 40 / 0.98


@pytest.mark.parametrize("payload", [608, 16])
def test_latency_is_as_stated(payload):
    # Packets one by one, on pages that are known but for the first one.
    _, tails, taken, posts, answers = run(1, packets=4, payload=payload, offset=0, gap=400)
    beats = payload // 16
    engine = [post - tail for tail, post in zip(taken, posts, strict=True)]
    whole = [answer - tail for tail, answer in zip(tails, answers, strict=True)]
    print(engine, whole)
    assert engine[1:] == [15 + beats + LATENCY] * 3
    # From the tail on the link to the answered completion: the flits pass twice, the bus answers twice.
    assert whole[1:] == [21 + 2 * beats + 2 * LATENCY] * 3
