"""Coroutines that the tests of build, run and clock run on `counter.py`, inside the simulator."""

import os
import time

from lanikai.sim.inside import native_api


async def count(session):
    """The coroutine of `test_run.py` on the counter: the values that reads give in each phase, and the passing of
    time."""
    enable, value = native_api.signal("enable"), native_api.signal("value")
    clock = session.clock
    seen = [(clock.cycle, native_api.cycle(), value.get())]
    enable.set(1)
    await clock.sample_phase()
    seen.append((clock.cycle, native_api.cycle(), value.get()))
    await clock.drive_phase()
    seen.append((clock.cycle, native_api.cycle(), value.get()))
    await clock.sleep(5)
    seen.append((clock.cycle, native_api.cycle(), value.get()))
    session.progress(0.5, "half way")
    await clock.sample_phase()
    await clock.sleep(2)
    seen.append((clock.cycle, native_api.cycle(), value.get()))
    return {"seen": seen, "spec": dict(session.spec), "random": session.random.random()}


async def wait_for_carry(session):
    """Wait for the rare change of a signal while the clock runs; then once more."""
    native_api.signal("enable").set(1)
    seen = []
    for _ in range(2):
        await session.clock.change(session.dut.carry)
        seen.append((session.clock.cycle, native_api.signal("value").get()))
        await session.clock.sample_phase()
        seen.append((session.clock.cycle, native_api.signal("value").get()))
    return seen


async def wide(session):
    """A port of 100 bits both ways, and the errors of `Signal`."""
    number = (1 << 99) + 5
    native_api.signal("wide").set(number)
    await session.clock.sample_phase()
    errors = []
    for action in (lambda: native_api.signal("wide").set(1 << 100), lambda: native_api.signal("absent")):
        try:
            action()
        except (ValueError, KeyError) as error:
            errors.append(str(error))
    return {"plus_one": native_api.signal("wide_plus_one").get() == number + 1, "errors": errors}


async def handles(session):
    """cocotb's own handles see and set the same ports."""
    session.dut.enable.value = 1
    await session.clock.sleep(3)
    return int(session.dut.value.value)


async def edges(session):
    """With `edges`: after RisingEdge a read gives the value before the edge, as third-party models expect."""
    from cocotb.triggers import RisingEdge

    session.dut.enable.value = 1
    seen = []
    for _ in range(3):
        await RisingEdge(session.dut.clk)
        seen.append(int(session.dut.value.value))
    return seen


async def fail(session):
    """Raise an error in the coroutine itself."""
    await session.clock.sleep(3)
    raise ValueError("the third cycle is\nunlucky")


async def fail_beside(session):
    """Raise an error in a coroutine beside it."""

    async def other():
        await session.clock.sleep(3)
        raise KeyError("beside")

    session.clock.spawn(other(), "other")
    await session.clock.sleep(100)


async def bytes_back(session):
    """Return a value that JSON does not have."""
    return b"bytes"


async def crash(session):
    """End the process under the coroutine's feet."""
    os._exit(7)


async def forever(session):
    """Simulate until killed."""
    session.progress(0.1, "started")
    while True:
        await session.clock.sleep(1_000_000)


async def spin(session):
    """Measure cycles and wall-clock time of an idle stretch."""
    started = time.perf_counter()
    await session.clock.sleep(200_000)
    return time.perf_counter() - started


async def timer_at_a_change(session):
    """Timers that fall on the very step at which another coroutine is woken by a value change.

    Returns the cycles in which they woke. `spec["first"]`: cycle of the carry's first change.
    """
    native_api.signal("enable").set(1)
    clock, woken = session.clock, []
    done = clock.flag()

    async def sleeper():
        await clock.sleep(session.spec["first"] - clock.cycle)
        woken.append(["timer", clock.cycle])
        await clock.sleep(256)
        woken.append(["timer", clock.cycle])
        done.set()

    async def watcher():
        for _ in range(2):
            await clock.change(session.dut.carry)
            woken.append(["change", clock.cycle])

    async def late():
        await clock.sleep(2000)
        done.set()

    for coroutine in (sleeper(), watcher(), late()):
        clock.spawn(coroutine, "")
    await done.wait()
    return woken
