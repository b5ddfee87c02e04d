"""A cluster whose every signal is visible, looked into while its cards do random things."""

from random import Random
from typing import Any

from lanikai.firmware import registers
from lanikai.sim.inside import native_api

from .rest_points import play


async def looked_into(cluster, spec):
    """As `rest_points.play`, while signals are looked at by VPI and by address in random cycles.

    A signal is (part of a node or "network", scope below it, name). Gives what `play` does, and besides:

    - `samples`: the values of `spec["signals"]` in each node, after their cycle;
    - `changes`: cycles of the first changes of `spec["events"]` in node 1;
    - `written`: what comes of registers of card 1 that Python writes, by VPI and then by their addresses. It is the
      cycles until a timer fires, the card's interrupt in the cycle in which Python raises it, and those until the host
      has cleared it.
    """
    clock, dut = cluster.clock, cluster._dut
    chance = Random(f"{cluster.seed} debug")

    def scope(node: int, part: str, inner: str) -> str:
        place = "network" if part == "network" else f"{part}{node}"
        if part != "network" and cluster.config.composed:
            place = f"node{node}.{part}"
        return f"{place}.{inner}" if inner else place

    def handle(path: str, name: str) -> Any:
        found = dut
        for step in path.split("."):
            found = getattr(found, step)
        return getattr(found, name)

    nodes = range(len(cluster.nodes))
    places = [(scope(node, part, inner), name) for node in nodes for part, inner, name in spec["signals"]]
    handles = [handle(*place) for place in places]
    signals = [native_api.signal(name, f"{dut._name}.{path}") for path, name in places]
    samples, changes, ended = [], [], clock.flag()

    async def first_change(part: str, inner: str, name: str) -> None:
        await clock.change(handle(scope(1, part, inner), name))
        changes.append([part, name, clock.cycle])

    async def sample() -> None:
        while not ended.is_set():
            await clock.sleep(chance.randrange(3, 60))
            if chance.random() < 0.5:
                await clock.sample_phase()
            values = [one.get() for one in signals]
            assert values == [int(one.value) for one in handles]
            samples.append([clock.cycle, *values])

    for event in spec["events"]:
        clock.spawn(first_change(*event), event[-1])
    clock.spawn(sample(), "sample")
    value = await play(cluster, spec)
    ended.set()
    # Cards rest by now. A timer that Python arms ends the rest, and an interrupt that it raises reaches the host.
    written = []
    for by_vpi in (True, False):

        def write(inner: str, name: str, word: int, *, by_vpi: bool = by_vpi) -> Any:
            place = (scope(1, "nic", inner), name)
            if by_vpi:
                handle(*place).value = word
            else:
                native_api.signal(name, f"{dut._name}.{place[0]}").set(word)
            return handle(*place)

        await clock.sleep(700)
        now = await cluster.nodes[1].processor.read(registers.address("RTC"))
        await clock.sleep(700)
        write("timer_1", "time", now + 1000 & (1 << cluster.config.nic.rtc_bits) - 1)
        began, armed = clock.cycle, write("timer_1", "armed", 1)
        await clock.sample_phase()
        await clock.change(armed)
        fired = clock.cycle - began
        await clock.sleep(700)
        write("host_registers", "HOST_IMR_mask", 1)
        began, stored = clock.cycle, write("host_status", "stored", 1)
        await clock.sample_phase()
        shown = int(handle(scope(1, "nic", ""), "interrupt").value)
        await clock.change(stored)
        written.append([fired, shown, clock.cycle - began])
    value.pop("skipped"), value.pop("evaluated")
    return value | {"samples": samples, "changes": changes, "written": written}
