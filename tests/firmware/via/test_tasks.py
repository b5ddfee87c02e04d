"""Task queues of the parallel design: order, overlap, and how a task ends, on a card in plain Python."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware import registers
from lanikai.firmware.costs import CostTable
from lanikai.firmware.processor import Processor
from lanikai.firmware.via.engines import Move
from lanikai.firmware.via.parallel.tasks import HostTasks, Ordered, Packet, SendTasks
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.hdl.packet import Header
from support.firmware.python_card import Card, Network
from support.firmware.scheduler import World

COSTS = CostTable(
    "tasks", {"dispatch": 6, "work": 30, "queued": 8, "host_ended": 10, "send": 12, "send_ended": 10}
)
TINY = preset(NicConfig, "tiny")


@dataclass
class Stamped:
    """A task that waits, and its place among those that came."""

    stamp: int
    place: int


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(0, 255), st.booleans())
def test_tasks_go_by_stamp_then_by_arrival_across_the_clocks_wrap(offsets, origin, stamped):
    """Against a sort of stamps that do not wrap."""
    queue: Ordered[Stamped] = Ordered(stamped=stamped, bits=8)
    queue.add(Stamped(origin, -1))
    assert queue.take().place == -1
    for place, offset in enumerate(offsets):
        queue.add(Stamped((origin + offset) % 256, place))
    wanted = sorted(range(len(offsets)), key=lambda i: (offsets[i] if stamped else 0, i))
    found = []
    while queue:
        assert queue.first().place == wanted[len(found)]
        found.append(queue.take().place)
    assert found == wanted


@given(st.integers(0, 255), st.integers(0, 255), st.integers(-60, 60))
def test_it_does_not_matter_how_long_ago_the_last_task_was_taken(last, first, more):
    """The order once went by the last stamp taken. Later by more than half the clock's range it was the wrong one."""
    queue: Ordered[Stamped] = Ordered(stamped=True, bits=8)
    queue.add(Stamped(last, -1))
    queue.take()
    for place, stamp in enumerate((first, first + more)):
        queue.add(Stamped(stamp % 256, place))
    assert [queue.take().place for _ in range(2)] == ([1, 0] if more < 0 else [0, 1])


def test_a_task_that_goes_before_others_says_so():
    queue: Ordered[Stamped] = Ordered(stamped=True, bits=16)
    assert [queue.add(Stamped(stamp, 0)) for stamp in (30, 10, 20, 40)] == [0, 1, 1, 0]


class Bench:
    """Two cards, the tasks of the first one."""

    def __init__(self, *, stamped=False):
        self.world = World()
        network = Network(self.world)
        self.card, self.other = Card(network, 0, TINY), Card(network, 1, TINY)
        self.processor = Processor(self.card, COSTS)
        self.host = HostTasks(self.processor, TINY, stamped=stamped)
        self.send = SendTasks(self.processor, TINY, stamped=stamped)
        self.log = []
        self.world.spawn(self.host.run(), "host")
        self.world.spawn(self.send.run(), "send")
        self.world.spawn(self.boot(), "idle")

    async def boot(self):
        async with self.processor.step("dispatch"):
            await self.processor.enable("host_dma", "send")
        await self.processor.idle_loop()

    async def moved(self, name, *moves, stamp=0):
        async with self.processor.step("work"):
            task = await self.host.submit(moves, stamp=stamp, started=lambda: None)
        await task.ended.wait()
        self.log.append((name, task.status))

    async def sent(self, packet, *, stamp):
        async with self.processor.step("work"):
            task = await self.send.submit(packet, stamp=stamp, started=lambda: None)
        await task.sent.wait()


def down(host, sram, count=64):
    return Move(address=host, sram=SRAM_BASE + sram, bytes=count, to_host=False)


def test_the_engine_goes_on_from_task_to_task_while_the_processor_works():
    bench = Bench()
    bench.card.memory[:256] = range(256)

    async def main():
        await bench.world.gather(*(bench.moved(i, down(64 * i, 256 - 64 * (i + 1))) for i in range(4)))

    bench.world.run(main())
    assert bench.log == [(i, CompletionStatus.OK) for i in range(4)]
    assert not bench.host.busy and bench.host.started == 4
    whole = bytes(range(256))
    assert bench.card.sram[:256] == b"".join(whole[64 * i : 64 * (i + 1)] for i in (3, 2, 1, 0))
    # Three of them had to wait.
    assert bench.processor.steps_taken["queued"] == 3 and bench.processor.steps_taken["host_ended"] == 4


def test_stamps_order_what_waits_and_preempt_nothing():
    bench = Bench(stamped=True)
    before = (1 << TINY.rtc_bits) - 5

    async def main():
        tasks = [("first", before + 9), ("late", 40), ("soon", before), ("equal", 40)]
        await bench.world.gather(
            *(bench.moved(name, down(0, 0), stamp=stamp % (1 << TINY.rtc_bits)) for name, stamp in tasks)
        )

    bench.world.run(main())
    assert [name for name, _ in bench.log] == ["first", "soon", "late", "equal"]


def test_a_list_ends_once_as_its_first_part_that_failed():
    bench = Bench()
    bench.card.bad_addresses.update(range(64, 128))

    async def main():
        await bench.world.gather(
            bench.moved("list", down(0, 0), down(64, 64), down(128, 128)), bench.moved("good", down(0, 256))
        )

    bench.world.run(main())
    assert bench.log == [("list", CompletionStatus.BUS_ERROR), ("good", CompletionStatus.OK)]
    assert bench.host.started == 4


@pytest.mark.parametrize(("stamped", "wanted"), [(False, [0, 1, 2, 3]), (True, [0, 3, 2, 1])])
def test_packets_go_one_after_the_other_in_their_order(stamped, wanted):
    bench = Bench(stamped=stamped)
    places = []
    for i in range(4):
        header = Header(route=1, destination=1, source=0, sequence=i, length=8).pack()
        bench.card.sram[64 * i : 64 * i + 16] = header.to_bytes(16, "little")
        places.append(Packet(SRAM_BASE + 64 * i, 8))

    async def take():
        """The other card, which takes packets at its leisure."""
        for _ in range(4):
            await bench.other.write(*arm("RECEIVE_ADDRESS", address=SRAM_BASE))
            await bench.other.write(*arm("RECEIVE_CONTROL", bytes=128))
            while "receive" not in bench.other.isr:
                await bench.world.sleep(50)
            bench.other.isr.discard("receive")

    async def main():
        await bench.world.gather(take(), *(bench.sent(places[i], stamp=100 - 10 * i) for i in range(4)))

    bench.world.run(main())
    assert [header.sequence for _, header in bench.card.network.log] == wanted
    assert not bench.send.busy


def arm(name, **fields):
    return registers.address(name), registers.pack(name, **fields)


def test_a_list_that_no_queue_could_hold_is_refused():
    bench = Bench()
    tasks = HostTasks(bench.processor, TINY.replace(host_dma_queue_entries=2))
    with pytest.raises(ValueError, match=r"^a list of 3 host DMAs; the card's queue has 2 entries$"):
        bench.world.run(tasks.submit([down(0, 0)] * 3, stamp=0, started=lambda: None))
