"""One thing at a time, at its cost; events wake who waits; registers by name."""

from __future__ import annotations

import pytest
from lanikai.firmware import registers
from lanikai.firmware.costs import GM_COSTS, CostTable
from lanikai.firmware.processor import EVENT_ORDER, Processor
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.ports import REGISTER_BASE
from support.firmware.python_card import Card, Network
from support.firmware.scheduler import World

COSTS = CostTable("test", {"dispatch": 6, "long": 100, "short": 10, "free": 0})


def processor() -> tuple[World, Card, Processor]:
    world = World()
    card = Card(Network(world), 0, preset(NicConfig, "tiny"))
    return world, card, Processor(card, COSTS)


def test_steps_exclude_one_another_and_are_granted_in_the_order_of_asking() -> None:
    world, _, cpu = processor()
    log = []

    async def machine(name: str, step: str) -> None:
        async with cpu.step(step):
            log.append((name, world.cycle))
            await cpu.read("RTC")

    world.run(
        world.gather(machine("a", "long"), machine("b", "short"), machine("c", "free"), machine("d", "short"))
    )
    assert log == [("a", 100), ("b", 112), ("c", 114), ("d", 126)]
    assert cpu.cycles_spent == {"long": 100, "short": 20, "free": 0}
    assert cpu.steps_taken == {"long": 1, "short": 2, "free": 1}


def test_an_urgent_step_goes_before_all_that_wait_and_preempts_nothing() -> None:
    world, _, cpu = processor()
    log = []

    async def machine(name: str, *, urgent: bool = False) -> None:
        async with cpu.step("short", urgent=lambda: urgent):
            log.append((name, world.cycle))

    world.run(
        world.gather(
            machine("a"), machine("b"), machine("c", urgent=True), machine("d"), machine("e", urgent=True)
        )
    )
    assert [name for name, _ in log] == ["a", "e", "c", "b", "d"] and log[0][1] == 10


def test_spend_adds_up_several_steps() -> None:
    world, _, cpu = processor()

    async def main() -> int:
        async with cpu.step("short"):
            await cpu.spend(short=2, long=1, free=3)
        return world.cycle

    assert world.run(main()) == 130


def test_the_port_is_refused_outside_a_step() -> None:
    world, _, cpu = processor()
    with pytest.raises(RuntimeError, match=r"^firmware touched the processor port outside a step$"):
        world.run(cpu.read("RTC"))


def test_an_unknown_step_is_an_error_before_anything_waits() -> None:
    _, _, cpu = processor()
    with pytest.raises(
        KeyError, match=r"cost table of test: no step 'sdma'; it has dispatch, long, short, free"
    ):
        cpu.step("sdma")
    with pytest.raises(ValueError, match=r"^cost table of test: long = -1: 0 or more cycles$"):
        COSTS.replace(long=-1)
    with pytest.raises(KeyError, match="no step 'brief'"):
        COSTS.replace(brief=1)
    assert COSTS.replace(long=3).cycles("long") == 3


def test_the_idle_loop_clears_events_and_wakes_in_order() -> None:
    world, card, cpu = processor()
    woken = []

    async def machine(name: str) -> None:
        await cpu.events[name].wait()
        woken.append(name)

    async def main() -> None:
        for name in reversed(EVENT_ORDER):
            world.spawn(machine(name), name)
        async with cpu.step("free"):
            await cpu.enable("send", "receive", "host_dma", "doorbell")
        world.spawn(cpu.idle_loop(), "idle")
        for name in ("timer", "host_dma", "send", "receive"):
            card.raise_event(name)
        card.words[1] = 5
        card.raise_event()
        await world.sleep(200)

    world.run(main())
    assert woken == ["receive", "send", "host_dma", "doorbell"]
    assert card.isr == {"timer"}  # not enabled: neither cleared nor served
    assert cpu.steps_taken["dispatch"] == 1  # the doorbell is a level: masked, so that the loop sleeps
    assert not registers.unpack("ISR", card.registers["IMR"])["doorbell"]


def test_registers_come_from_the_declaration() -> None:
    assert registers.address("ISR") == REGISTER_BASE
    assert registers.unpack("HOST_DMA_CONTROL", registers.pack("HOST_DMA_CONTROL", bytes=77, to_host=1)) == {
        "bytes": 77,
        "to_host": 1,
        "busy": 0,
    }
    with pytest.raises(KeyError, match="no NIC register 'RATE'; there are ISR, IMR, RTC"):
        registers.address("RATE")
    with pytest.raises(ValueError, match="register RTC: no field 'tick'; it has ticks"):
        registers.pack("RTC", tick=1)


def test_every_step_that_gm_takes_is_in_its_table() -> None:
    """A name that is not would only fail when that step is reached."""
    import re
    from pathlib import Path

    import lanikai.firmware.gm.program as program

    taken = set()
    for path in Path(program.__file__).parent.glob("*.py"):
        text = path.read_text()
        taken |= set(re.findall(r'(?:step|then|run)\(\s*"(\w+)"', text))
        for call in re.findall(r"(?:spend|pay)\(([^)]*)", text):
            taken |= set(re.findall(r"(\w+)=", call))
    assert taken | {"dispatch"} == set(GM_COSTS.table)
