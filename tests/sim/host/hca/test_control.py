"""The driver's waits and its control port on adapters that answer nothing: bounds, and what is taken for control."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from lanikai.hdl.config import HcaConfig, LinkConfig, preset
from lanikai.hdl.hca.layout import CQE_BYTES, CQE_LAYOUT, CqeStatus
from lanikai.hdl.packet import Kind
from lanikai.sim.host.hca.control import CONTROL_PAYLOAD_BYTES, ENTRIES, ControlPort
from lanikai.sim.host.hca.driver import HcaDriver
from lanikai.sim.host.hca.errors import HcaError
from lanikai.sim.host.memory import PageAllocator
from lanikai.sim.inside.words import Fields

CQE = Fields(CQE_LAYOUT)
CONFIG = preset(HcaConfig, "tiny").replace(link=LinkConfig(flit_bits=128, vls=16, hop_bits=3))


class Port:
    """A host whose time passes as its coroutines sleep. Its adapter is always busy, and ends nothing by itself."""

    node = 3

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 20, np.uint8)
        self.pages = PageAllocator(self.memory)
        self.now, self.busy = 100, True
        self.completed = [asyncio.Event() for _ in range(64)]
        self.registers = self
        self.tasks: list[asyncio.Task[None]] = []
        self.written: list[tuple[str, dict[str, int]]] = []

    async def write(self, name, **fields):
        self.written.append((name, fields))

    async def read(self, name):
        return {"busy": int(self.busy)}

    def write_now(self, page, word, value, *, not_before=None):
        return self.now

    async def sleep(self, cycles):
        end = self.now + cycles
        while self.now < end:
            self.now += 1
            await asyncio.sleep(0)

    def spawn(self, coroutine, name):
        self.tasks.append(asyncio.ensure_future(coroutine))


@pytest.fixture
def port():
    return Port()


def play(script):
    asyncio.run(script())


async def opened(port):
    driver = HcaDriver(port, CONFIG)
    return driver, await ControlPort.open(driver)


def put(queue, index, **fields):
    """Write entry `index` of a completion queue's ring, as an adapter does."""
    log2 = queue.entries.bit_length() - 1
    word = CQE.pack(phase=1 - (index >> log2 & 1), **fields)
    at = index % queue.entries * CQE_BYTES
    queue.ring.data[at : at + CQE_BYTES] = np.frombuffer(word.to_bytes(CQE_BYTES, "little"), np.uint8)


def test_close_waits_no_longer_than_its_bound(port):
    async def script():
        driver, control = await opened(port)
        for _ in range(2):
            before = port.now
            with pytest.raises(
                HcaError,
                match=r"^node 3, queue pair 0: closed, but its messages have not left for 500 cycles: the network "
                r"takes none of them; close it again to wait longer$",
            ):
                await driver.close(control.pair, within_cycles=500)
            assert 500 <= port.now - before < 600
        assert driver.queue_pairs == {0: control.pair}
        port.busy = False
        await driver.close(control.pair, within_cycles=500)
        assert driver.queue_pairs == {}

    play(script)


def test_a_number_has_another_life_each_time(port):
    port.busy = False

    async def script():
        driver = HcaDriver(port, CONFIG)
        queue = await driver.create_completion_queue(owner=1, entries=4)
        lives = []
        for _ in range(258):
            pair = await driver.create_queue_pair(
                owner=1,
                traffic_class=0,
                vls=(0,),
                send_completions=queue,
                receive_completions=queue,
                send_entries=1,
                peer=(2, 7, 9),
            )
            lives.append(pair.life)
            assert ("QP_LIFE", {"life": pair.life, "destination_life": 9}) in port.written[-4:]
            await driver.close(pair)
        assert lives == [*range(256), 0, 1]

    play(script)


def test_send_waits_no_longer_than_its_bound(port):
    async def script():
        _, control = await opened(port)
        for _ in range(ENTRIES):
            await control.send(Kind.PROBE, 1, b"x", within_cycles=300)
        assert port.now == 100
        with pytest.raises(
            HcaError,
            match=r"^node 3: no room for a control packet for 300 cycles: 64 wait, and the network takes none of them "
            r"on VL 15$",
        ):
            await control.send(Kind.PROBE, 1, b"x", within_cycles=300)
        assert 400 <= port.now < 500
        put(control._sends, 0, qp=0, tag=0)
        await control.send(Kind.PROBE, 1, b"x", within_cycles=300)

    play(script)


def test_a_packet_that_the_adapter_does_not_send_is_counted_and_others_go_on(port):
    async def script():
        _, control = await opened(port)
        await control.send(Kind.PROBE, 1, b"x")
        put(control._sends, 0, qp=0, tag=0, status=CqeStatus.FORMAT)
        await control.send(Kind.PROBE, 2, b"y")
        assert control.failed == {CqeStatus.FORMAT: 1}
        assert list(control.pair.under_way) == [1]

    play(script)


def test_only_control_packets_on_vl_15_are_taken(port):
    """A packet that came on another VL, or as data, is none, whatever its bytes are. Its buffer is posted again."""

    async def script():
        _, control = await opened(port)
        rows = [(0, Kind.ACK), (14, Kind.NACK), (15, Kind.DATA), (0, Kind.DATA), (15, Kind.NACK)]
        for tag, (vl, kind) in enumerate(rows):
            control._into.buffer.write(bytes([tag]) * CONTROL_PAYLOAD_BYTES, tag * CONTROL_PAYLOAD_BYTES)
            put(
                control._arrivals,
                tag,
                receive=1,
                qp=0,
                tag=tag,
                bytes=CONTROL_PAYLOAD_BYTES,
                source=2,
                vl=vl,
                kind=kind,
            )
        packet = await control.receive()
        assert (packet.source, packet.kind, packet.payload[0]) == (2, Kind.NACK, 4)
        assert control.refused == 4
        assert control.pair.received == len(rows)
        assert control.pair._posted == ENTRIES + len(rows)

    play(script)
