"""The consumer of a completion queue against a plain card: nothing missed, nothing twice, no sleep without an end."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.owner_page import PagePart
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.kit.completion_queue import Completion, CompletionQueue
from lanikai.sim.host.kit.driver import Driver
from lanikai.sim.host.kit.errors import OverrunError
from lanikai.sim.host.kit.pages import OwnerPage
from support.firmware.scheduler import World

NIC = preset(
    NicConfig,
    "tiny",
    owners=2,
    receive_doorbells="merged",
    completion_queues=1,
    regions=1,
    host_dma_queue_entries=2,
)
OWNER = 1
BASE, PIO_CYCLES = 0x3000, 7


class Watch:
    """A watch on all of the ring."""

    def __init__(self, world: World) -> None:
        self.flag = world.flag()

    async def wait(self) -> None:
        await self.flag.wait()
        self.flag.clear()


class CardBus:
    """`HostBus` to a card that has one completion queue of `entries` and nothing else; the rules are those of
    docs/nic.md.

    `post` is the firmware's side: it fills the next entry, or marks the overrun.
    """

    node = 0

    def __init__(self, world: World, entries: int) -> None:
        self.world, self.entries = world, entries
        self.memory = np.zeros(1 << 16, np.uint8)
        self.sleep, self.flag, self.spawn = world.sleep, world.flag, world.spawn
        self.produced = self.consumed = 0
        self.armed = self.event = self.dead = False
        self.line = world.flag()
        self.watches: list[Watch] = []
        self.tells = 0

    @property
    def cycle(self) -> int:
        return self.world.cycle

    def watch(self, start: int, length: int) -> Watch:
        self.watches.append(Watch(self.world))
        return self.watches[-1]

    def post(self, number: int) -> bool:
        """Post an entry. Returns whether it was not lost."""
        overrun = self.produced - self.consumed >= self.entries - 1
        if self.dead:
            return False
        self.dead = overrun
        status = CompletionStatus.OVERRUN if overrun else CompletionStatus.OK
        phase = 1 - self.produced // self.entries % 2
        word = phase << 31 | phase << 63 | status << 16 | (number & 0xFFFF) << 32 | number & 0xFFFF
        at = BASE + 8 * (self.produced % self.entries)
        self.memory[at : at + 8] = np.frombuffer(word.to_bytes(8, "little"), np.uint8)
        self.produced += 1
        for watch in self.watches:
            watch.flag.set()
        if self.armed:
            self.raise_event()
        return not overrun

    def raise_event(self) -> None:
        self.armed, self.event = False, True
        self.line.set()

    async def write(self, address: int, data: int) -> None:
        await self.sleep(PIO_CYCLES)
        if address == REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset:
            return
        assert address == DOORBELL_BASE + 4096 * OWNER + PagePart.COMPLETION.offset and not data & 0x7FFF
        self.tells += 1
        steps = ((data >> 16) - self.consumed) % 65536
        assert self.consumed + steps <= self.produced, "an index that no entry has"
        self.consumed += steps
        if data >> 15 & 1:
            self.armed = True
            if self.produced != self.consumed:
                self.raise_event()

    async def write_all(self, writes: list[tuple[int, int]]) -> None:
        for address, data in writes:
            await self.write(address, data)

    async def read(self, address: int) -> int:
        assert address == REGISTER_BASE + HOST_REGISTERS["HOST_COMPLETION"].offset
        await self.sleep(PIO_CYCLES)
        valid, self.event = self.event, False
        self.line.clear()
        return valid << 31

    async def interrupt(self) -> None:
        await self.line.wait()


def consumer(entries: int) -> tuple[World, CardBus, CompletionQueue]:
    world = World()
    bus = CardBus(world, entries)
    driver = Driver(bus, nic=NIC, routes={}, kit=KitConfig())
    driver.pages.allocate(4096)
    ring = driver.pages.allocate(8 * entries)
    assert ring.start == BASE
    queue = CompletionQueue(driver, OwnerPage(bus, OWNER), 0, ring, entries=entries)
    driver._queues[0] = queue
    driver.start()
    return world, bus, queue


@settings(max_examples=40, deadline=None)
@given(
    entries=st.sampled_from([4, 8, 32]),
    gaps=st.lists(st.sampled_from([0, 0, 1, 5, 60, 250, 900]), min_size=1, max_size=60),
    ways=st.lists(st.sampled_from(["wait", "spin", "reap"]), min_size=1, max_size=5),
)
def test_every_entry_is_had_once_and_no_sleep_is_for_ever(
    entries: int, gaps: list[int], ways: list[str]
) -> None:
    """Entries come in any cycle around looks, arming and acknowledging. A sleep that nothing ends fails the
    scheduler."""
    world, bus, queue = consumer(entries)
    found: list[Completion] = []

    async def firmware() -> None:
        for number, gap in enumerate(gaps):
            if gap:
                await world.sleep(gap)
            while bus.produced - bus.consumed >= entries - 1:
                await world.sleep(40)
            assert bus.post(number)

    async def main() -> None:
        world.spawn(firmware(), "firmware")
        turn = 0
        while len(found) < len(gaps):
            way = ways[turn % len(ways)]
            turn += 1
            if way == "reap":
                some = await queue.reap(len(gaps) - len(found))
                found.extend(some or [await queue.wait()])
            else:
                found.append(await (queue.wait() if way == "wait" else queue.spin()))

    world.run(main(), limit=120_000)
    assert [(one.descriptor, one.bytes, one.status) for one in found] == [
        (number, number, CompletionStatus.OK) for number in range(len(gaps))
    ]
    # It tells the card for half a ring at once, or before it sleeps.
    assert bus.tells <= len(gaps) // (entries // 2) + 2 * queue.interrupts + 1


def test_many_turns_around_the_ring_and_around_the_index() -> None:
    world, bus, queue = consumer(4)
    bus.produced = bus.consumed = queue.index = queue._told = 65536 - 8

    async def main() -> None:
        for number in range(16):
            bus.post(number)
            if number == 7:
                bus.produced, bus.consumed = bus.produced % 65536, bus.consumed % 65536
                bus.consumed -= 65536 * (bus.consumed > bus.produced)
            assert (await queue.wait()).descriptor == number

    world.run(main(), limit=120_000)
    assert queue.index == 8 and queue.interrupts == 0


def test_reaping_many_costs_one_word_to_the_card() -> None:
    world, bus, queue = consumer(16)

    async def main() -> tuple[int, int]:
        for number in range(12):
            bus.post(number)
        start = world.cycle
        assert len(await queue.reap(5)) == 5 and bus.tells == 0
        assert len(await queue.reap()) == 7 and bus.tells == 1
        both = world.cycle - start
        assert await queue.reap() == [] and await queue.poll() is None
        return both, world.cycle - start - both

    cycles, looks = world.run(main())
    kit, hz = KitConfig(), NIC.clock_hz
    least = (2 * kit.miss_ns + 12 * kit.entry_ns) * hz / 1e9 + PIO_CYCLES
    # Each entry's cost is rounded up to a cycle.
    assert least <= cycles <= least + 12 and looks == 2


@pytest.mark.parametrize("seed", range(5))
def test_an_overrun_is_told_after_all_that_came_before_it(seed: int) -> None:
    rng = random.Random(seed)
    world, bus, queue = consumer(4)
    posted: list[int] = []

    had: list[int] = []

    async def guarded() -> None:
        try:
            for number in range(40):
                if bus.post(number):
                    posted.append(number)
                if rng.random() < 0.4:
                    had.extend(one.descriptor for one in await queue.reap(2))
            while True:
                had.append((await queue.wait()).descriptor)
        except OverrunError as error:
            assert str(error) == (
                f"node 0: completion queue 0 of 4 entries was overrun at entry {len(posted)}: reap it more often, "
                "or make it longer"
            )

    world.run(guarded(), limit=120_000)
    assert had == posted
    with pytest.raises(OverrunError):
        world.run(queue.poll())
    queue.restart()
    bus.produced = bus.consumed = 0
    bus.dead = False
    assert bus.post(77)
    assert world.run(queue.wait()).descriptor == 77
