"""Coroutines on `counter.py` that wait for native events."""

from lanikai.sim.inside import native_api
from lanikai.sim.inside.wakes import Wakes


class CountingWakes(Wakes):
    """Counts the times that Python is woken."""

    served = 0

    def _serve(self):
        self.served += 1
        super()._serve()


async def many(session):
    """`spec["events"]` events happen in one cycle, the carry's change: those armed, in a random order, wake those who
    wait for them; the rest do not. Gives the orders of arming and of happening, cycles and wake-ups of Python."""
    clock, carry = session.clock, native_api.signal("carry")
    wakes = CountingWakes()
    events = [wakes.change(carry) for _ in range(session.spec["events"])]
    armed = session.random.sample(range(len(events)), len(events) * 2 // 3)
    seen, told = [], []

    async def follow(number):
        await clock.change(events[number])
        seen.append(["coroutine", number])
        flags[number].set()

    async def follower(number):
        await flags[number].wait()
        seen.append(["follower", number])

    def function(number):
        seen.append(["function", number])
        told.append(clock.cycle)

    flags = {}
    for place, number in enumerate(armed):
        if place % 3:
            clock.call_on_change(events[number], lambda number=number: function(number))
        else:
            flags[number] = clock.flag()
            clock.spawn(follower(number), "follower")
            clock.spawn(follow(number), "follow")
        await clock.sleep(1)
    native_api.signal("enable").set(1)
    began = clock.cycle
    await clock.sleep(300)
    once = wakes.served
    again = []
    clock.call_on_change(events[0], lambda: again.append(clock.cycle - began))
    await clock.sleep(300)
    return {
        "armed": armed,
        "seen": seen,
        "told": sorted({cycle - began for cycle in told}),
        "served": [once, wakes.served],
        "again": again,
    }


async def failing(session):
    """An error of who waits for an event ends the simulation."""
    wakes = Wakes()

    def fail():
        raise ValueError("the carry has come")

    session.clock.call_on_change(wakes.change(native_api.signal("carry")), fail)
    native_api.signal("enable").set(1)
    await session.clock.sleep(1000)


async def wide(session):
    """A register of more than one bit is refused."""
    wakes = Wakes()
    try:
        wakes.change(native_api.signal("value"))
    except ValueError as error:
        return str(error)
