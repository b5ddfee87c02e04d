"""Queue pairs and completion queues of adapters, as their process sees them, without an adapter."""

from __future__ import annotations

import numpy as np
import pytest
from lanikai.hdl.config import HcaConfig
from lanikai.hdl.hca.layout import (
    CQE_BYTES,
    CQE_LAYOUT,
    RECEIVE_WQE_LAYOUT,
    SEND_WQE_LAYOUT,
    CqeStatus,
    Opcode,
    WindowWord,
)
from lanikai.hdl.packet import Kind
from lanikai.sim.host.hca.completion_queue import CompletionQueue
from lanikai.sim.host.hca.driver import HcaDriver
from lanikai.sim.host.hca.element_page import ElementPage
from lanikai.sim.host.hca.errors import HcaError, QueueFullError
from lanikai.sim.host.hca.queue_pair import QueuePair
from lanikai.sim.host.hca.region import Region
from lanikai.sim.host.kit.address_space import AddressSpace
from lanikai.sim.host.memory import PageAllocator
from lanikai.sim.inside.words import Fields

CQE, SEND, RECEIVE = Fields(CQE_LAYOUT), Fields(SEND_WQE_LAYOUT), Fields(RECEIVE_WQE_LAYOUT)


class Port:
    """A host whose writes into the window are kept."""

    node = 3

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 18, np.uint8)
        self.pages = PageAllocator(self.memory)
        self.writes: list[tuple[int, int, int]] = []
        self.now = 100

    def write_now(self, page, word, value, *, not_before=None):
        self.writes.append((page, word, value))
        return max(self.now, not_before or 0)

    async def write(self, page, word, value, *, not_before=None):
        return self.write_now(page, word, value, not_before=not_before)


@pytest.fixture
def port():
    return Port()


@pytest.fixture
def region(port):
    return Region(5, 7, AddressSpace(port.pages).allocate(8192), port.pages.allocate(8))


@pytest.fixture
def pair(port):
    return QueuePair(
        port,
        number=9,
        owner=2,
        send_ring=port.pages.allocate(4 * 32),
        send_log2=2,
        receive_ring=port.pages.allocate(2 * 16),
        receive_log2=1,
    )


@pytest.fixture
def queue(port, pair):
    made = CompletionQueue(port, number=6, owner=2, ring=port.pages.allocate(4 * CQE_BYTES), entries_log2=2)
    made.queue_pairs[pair.number] = pair
    return made


def put(queue, index, **fields):
    """Write entry `index` of the ring, as an adapter does."""
    log2 = queue.entries.bit_length() - 1
    word = CQE.pack(phase=1 - (index >> log2 & 1), **fields)
    at = index % queue.entries * CQE_BYTES
    queue.ring.data[at : at + CQE_BYTES] = np.frombuffer(word.to_bytes(CQE_BYTES, "little"), np.uint8)


def test_a_send_stands_in_the_ring_and_rings_the_bell(port, pair, region):
    tag, when = pair.send(
        region, region.start + 32, 600, vl=4, destination=12, destination_qp=200, immediate=0xDEADBEEF
    )
    word = int.from_bytes(pair.send_ring.data[:32].tobytes(), "little")
    expected = {
        "opcode": Opcode.SEND_IMMEDIATE,
        "signaled": 1,
        "kind": Kind.DATA,
        "vl": 4,
        "tag": tag,
        "destination": 12,
        "destination_qp": 200,
        "immediate": 0xDEADBEEF,
        "address": region.start + 32,
        "bytes": 600,
        "region": 5,
        "key": 7,
    }
    assert {name: SEND.get(word, name) for name in expected} == expected
    assert port.writes == [(2, WindowWord.SEND_DOORBELL, 9 | 1 << 16)]
    assert when == 100


def test_a_release_names_its_units(pair, region):
    pair.send(region, region.start, 16, vl=0, kind=Kind.RELEASE, bandwidth=17, generation=3)
    word = int.from_bytes(pair.send_ring.data[:32].tobytes(), "little")
    assert [SEND.get(word, name) for name in ("kind", "bandwidth", "generation")] == [Kind.RELEASE, 17, 3]


def test_a_full_ring_refuses(pair, region):
    for _ in range(4):
        pair.send(region, region.start, 16, vl=0)
    assert pair.send_room == 0
    with pytest.raises(
        QueueFullError, match=r"^node 3, queue pair 9: 4 sends wait already: the ring is full$"
    ):
        pair.send(region, region.start, 16, vl=0)
    # On another VL than those before it.
    pair.ended(2)
    assert pair.send_room == 1
    assert list(pair.under_way) == [0, 1, 3]


@pytest.mark.parametrize(("name", "value"), [("bytes", 1 << 16), ("vl", 16), ("destination", 1024)])
def test_a_field_that_does_not_fit_is_refused(pair, region, name, value):
    fields = {"vl": 0, "destination": 0, "length": 16} | {"length" if name == "bytes" else name: value}
    with pytest.raises(ValueError, match=f"^{name} = {value:#x}: 0 to {value - 1:#x}$"):
        pair.send(region, region.start, **fields)
    assert pair.send_room == 4


def test_buffers_stand_in_the_ring(port, pair, region):
    pair.receive(region, region.start, 64, tag=11, ring=False)
    assert port.writes == []
    pair.receive(region, region.start + 64, 64, tag=12)
    assert port.writes == [(2, WindowWord.RECEIVE_DOORBELL, 9 | 2 << 16)]
    words = [int.from_bytes(pair.receive_ring.data[at : at + 16].tobytes(), "little") for at in (0, 16)]
    assert [RECEIVE.get(word, "tag") for word in words] == [11, 12]
    with pytest.raises(
        QueueFullError, match=r"^node 3, queue pair 9: 2 buffers wait already: the ring is full$"
    ):
        pair.receive(region, region.start, 64, tag=13)
    pair.received += 1
    pair.receive(region, region.start, 64, tag=13)


def test_completions_are_read_in_order_through_many_turns_of_the_ring(port, queue, pair, region):
    found = []
    for index in range(0, 40, 2):
        tags = [pair.send(region, region.start, 16, vl=0)[0] for _ in range(2)]
        for i, tag in enumerate(tags):
            put(queue, index + i, tag=tag, qp=9, bytes=16, status=CqeStatus.OK)
        assert len(found := found + queue.poll()) == index + 2
    assert [one.tag for one in found] == list(range(40))
    assert pair.send_room == 4
    consumed = [value >> 16 for page, word, value in port.writes if word == WindowWord.CONSUME]
    assert consumed[-1] == 40


def test_nothing_is_read_of_an_empty_ring(queue):
    assert queue.poll() == []


def test_a_receive_does_not_end_a_send(queue, pair, region):
    pair.send(region, region.start, 16, vl=0)
    put(queue, 0, receive=1, tag=0, qp=9, source=4, source_qp=8, bytes=30)
    (one,) = queue.poll()
    assert (one.source, one.source_qp, one.bytes, one.ok) == (4, 8, 30, True)
    assert pair.send_room == 3


def test_an_overrun_is_told_after_the_entries_before_it(queue):
    put(queue, 0, receive=1, tag=4)
    put(queue, 1, status=CqeStatus.OVERRUN)
    assert [one.tag for one in queue.poll()] == [4]
    with pytest.raises(
        HcaError,
        match=r"^node 3, completion queue 6: overrun: its ring of 4 entries was full; ",
    ):
        queue.poll()


def test_a_posted_element_is_written_into_the_page_but_for_words_that_are_there(port, region):
    """Two queue pairs of a process share the page's element, which is what the adapter has at each doorbell."""
    page = ElementPage(port, 2)
    pairs = [
        QueuePair(
            port,
            number=number,
            owner=2,
            send_ring=None,
            send_log2=1,
            receive_ring=port.pages.allocate(2 * 16),
            receive_log2=1,
            page=page,
        )
        for number in (4, 5)
    ]
    words, posted = [0] * 8, []
    sends = [(0, 100), (1, 100), (0, 104), (1, 100)]
    for which, length in sends:
        pairs[which].send(
            region, region.start, length, vl=3, destination=9, destination_qp=1, immediate=length
        )
    for owner, word, value in port.writes:
        assert owner == 2
        if word == WindowWord.SEND_DOORBELL:
            posted.append((value & 0xFF, value >> 16, sum(one << 32 * i for i, one in enumerate(words))))
        else:
            assert words[word - WindowWord.WQE] != value
            words[word - WindowWord.WQE] = value
    assert [(number, index) for number, index, _ in posted] == [(4, 1), (5, 1), (4, 2), (5, 2)]
    for n, ((which, length), (_, _, element)) in enumerate(zip(sends, posted, strict=True)):
        found = {name: element >> place.offset & (1 << place.width) - 1 for name, place in SEND_WQE_LAYOUT}
        assert (found["bytes"], found["immediate"], found["tag"]) == (length, length, n // 2), which
        assert (found["address"], found["destination"], found["vl"]) == (region.start, 9, 3)
    with pytest.raises(QueueFullError):
        pairs[0].send(region, region.start, 16, vl=3)


def test_a_page_is_cleared_before_its_first_queue_pair(port):
    """Not all of its words are written again, so none of another process' may be there."""
    page = ElementPage(port, 3)
    page.write(1 << 40)
    port.writes.clear()
    with pytest.raises(StopIteration):
        page.clear().send(None)
    assert port.writes == [(3, WindowWord.WQE + word, 0) for word in range(8)]
    assert page.write(0) == 0


def test_more_elements_than_the_adapter_has_room_for_are_refused(port):
    driver = HcaDriver(port, HcaConfig(wqe="posted", posted_entries=4))
    assert driver.most_send_entries == 4
    assert HcaDriver(port, HcaConfig(posted_entries=4)).most_send_entries == 32768
    made = driver.create_queue_pair(
        owner=1,
        traffic_class=0,
        vls=(),
        send_completions=None,
        receive_completions=None,
        send_entries=8,
    )
    with pytest.raises(HcaError, match=r"^send_entries = 8: a power of two, 1 to 4$"):
        made.send(None)
