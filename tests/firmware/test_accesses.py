"""Lists of accesses on the plain Python card: what each record does, bounds, marks; steps that are made of lists."""

from __future__ import annotations

import pytest
from lanikai.firmware.accesses import LONGEST, AccessList, Why
from lanikai.firmware.costs import CostTable
from lanikai.firmware.processor import Processor
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.ports import SRAM_BASE
from support.firmware.python_card import Card, Network
from support.firmware.scheduler import World

COSTS = CostTable("test", {"dispatch": 6, "long": 100, "short": 10, "look": 5, "free": 0})


def processor() -> tuple[World, Card, Processor]:
    world = World()
    card = Card(Network(world), 0, preset(NicConfig, "tiny"))
    return world, card, Processor(card, COSTS)


def carried_out(accesses: AccessList) -> tuple[int, list[int | None], Why]:
    """Cycles, words and end of a list in a step without cycles of its own."""
    world, card, cpu = processor()
    card.sram[:16] = bytes(range(16))

    async def main() -> None:
        await cpu.run("free", accesses)

    world.run(main())
    missing = [None] * (accesses.readings - len(accesses.words))
    return world.cycle, accesses.words + missing, accesses.why


def test_accesses_take_their_cycles_one_after_the_other() -> None:
    accesses = AccessList()
    accesses.store(SRAM_BASE + 16, 7, 8)
    accesses.pause(5)
    accesses.load(SRAM_BASE + 12, 3)
    accesses.read("IMR")
    assert carried_out(accesses) == (2 + 5 + 6 + 2, [0x0F0E0D0C, 7, 8, 0], Why.END)
    assert accesses.reached == len(accesses.records) == 7


def test_a_copy_masks_shifts_flips_and_adds() -> None:
    accesses = AccessList()
    (word,) = accesses.load(SRAM_BASE + 4)  # 0x07060504
    accesses.copy(word, "HOST_DMA_HOST", mask=0xFF00, left=-8, flip=1, add=-3, keep=0xFFFFFFFE)
    accesses.read("HOST_DMA_HOST")
    accesses.copy(word, "HOST_DMA_HOST", mask=0xF00, left=20)
    accesses.read("HOST_DMA_HOST")
    assert carried_out(accesses)[1] == [0x07060504, ((5 ^ 1) - 3) & 0xFFFFFFFE, 0x500 << 20 & 0xFFFFFFFF]


def test_conditions_leave_out_and_end() -> None:
    accesses = AccessList()
    (word,) = accesses.load(SRAM_BASE)  # 0x03020100
    accesses.skip_if(word, mask=0xFF, value=0, records=2)
    accesses.store(SRAM_BASE + 4, 1)
    accesses.pause(100)
    accesses.skip_if(word, mask=0xFF, value=0, records=1, differs=True)
    accesses.store(SRAM_BASE + 8, 2)
    accesses.load(SRAM_BASE + 4, 2)
    accesses.stop_if(word, mask=0xFF00, value=0x100)
    (last,) = accesses.load(SRAM_BASE)
    assert carried_out(accesses) == (2 + 1 + 4, [0x03020100, 0x07060504, 2, None], Why.STOPPED)
    with pytest.raises(ValueError, match=r"^a word of SRAM has not been read: its list ended before$"):
        last.get()


def test_a_wait_has_its_bound() -> None:
    """The tiny card's clock goes on by a tick in so many cycles; a wait ends with the word, or at its bound."""
    for bound, why in ((2, Why.LATE), (100, Why.END)):
        accesses = AccessList()
        ticks = accesses.wait("RTC", mask=0xFF, value=9, every_cycles=1, most_reads=bound)
        accesses.pause(1)
        cycles, words, end = carried_out(accesses)
        assert end is why and (words == [9]) == (why is Why.END)
        assert (cycles == 2 * bound + 1) == (why is Why.LATE), (cycles, ticks.word)


def test_bounds_and_operands_are_checked() -> None:
    accesses = AccessList()
    for _ in range(LONGEST):
        accesses.pause(1)
    with pytest.raises(ValueError, match=r"^a list of accesses has at most 128 records$"):
        accesses.pause(1)
    accesses = AccessList()
    with pytest.raises(ValueError, match=r"^WRITE: 0x100000000 does not fit 32 bits$"):
        accesses.store(SRAM_BASE, 1 << 32)
    with pytest.raises(ValueError, match=r"^PAUSE: -0x1 does not fit 32 bits$"):
        accesses.pause(-1)
    with pytest.raises(ValueError, match=r"^most_reads = 0: 1 to 65535$"):
        accesses.wait("RTC", mask=1, value=1, every_cycles=0, most_reads=0)
    with pytest.raises(ValueError, match=r"^stop: nothing has been read"):
        accesses.stop()
    (word,) = accesses.load(SRAM_BASE)
    with pytest.raises(ValueError, match=r"^left = 32: -31 to 31$"):
        accesses.copy(word, "IMR", left=32)
    accesses.skip_if(word, mask=1, value=1, records=1)
    with pytest.raises(ValueError, match=r"^record 1 leaves out 1 records, and 0 follow$"):
        accesses.check()
    accesses.load(SRAM_BASE)
    with pytest.raises(ValueError, match=r"^record 1 leaves out a record that reads$"):
        carried_out(accesses)
    with pytest.raises(KeyError, match="no NIC register 'RATE'"):
        accesses.read("RATE")


def test_another_step_comes_in_at_a_mark() -> None:
    """A list of three steps goes on behind one that asked meanwhile, and all its steps are counted."""
    world, _, cpu = processor()
    log = []

    def looks() -> AccessList:
        accesses = AccessList()
        for look in range(3):
            if look:
                accesses.mark(5)
            accesses.write("DOORBELL_SELECT", channel=0)
            accesses.read("DOORBELL_WORD")
        return accesses

    async def walker() -> None:
        accesses = looks()
        async with cpu.step("look", accesses=accesses):
            log.append(("walk", world.cycle, accesses.why.name))

    async def other(at: int) -> None:
        await world.sleep(at)
        async with cpu.step("short"):
            log.append(("other", world.cycle, cpu.waiting))

    world.run(world.gather(walker(), other(4)))
    # A look takes 8 cycles; the other step is between the first and the second.
    assert log == [("other", 18, 1), ("walk", 34, "END")]
    assert cpu.steps_taken == {"look": 3, "short": 1} and cpu.cycles_spent == {"look": 15, "short": 10}

    world, _, cpu = processor()
    world.run(world.gather(walker()))
    assert log[-1] == ("walk", 24, "END")


def test_steps_wait_for_flags_and_locks_and_follow_one_another() -> None:
    """The coroutine wakes once; the processor is free between two steps of a chain."""
    world, _, cpu = processor()
    event, log = cpu.events["host_dma"], []
    first, second = AccessList(), AccessList()
    first.write("SEND_ADDRESS", address=8)
    word = second.read("SEND_ADDRESS")

    async def chain() -> None:
        step = cpu.step("short", accesses=first, after=cpu.events["send"], came=lambda: log.append("came"))
        async with step.then("long", lambda: second, after=event):
            log.append((world.cycle, word["address"], cpu.current))

    async def until() -> None:
        await cpu.run("look", AccessList(), until=event)
        log.append((world.cycle, cpu.current))

    async def main() -> None:
        world.spawn(chain(), "chain")
        await world.sleep(20)
        cpu.events["send"].set()
        await world.sleep(20)
        assert not cpu.events["send"].is_set() and cpu.current is None
        event.set()
        await world.sleep(200)
        assert not event.is_set()
        world.spawn(until(), "until")
        await world.sleep(50)
        event.set()
        await world.sleep(1)

    world.run(main())
    assert log == ["came", (40 + 100 + 2, 8, "long"), (290, None)]


def test_a_list_with_marks_is_no_part_of_a_step() -> None:
    world, _, cpu = processor()
    accesses = AccessList()
    accesses.mark(1)

    async def main() -> None:
        async with cpu.step("free"):
            await cpu.carry_out(accesses)

    with pytest.raises(
        ValueError, match=r"^a list with marks is one of several steps: `step` carries it out$"
    ):
        world.run(main())
