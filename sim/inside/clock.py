"""Simulated time for coroutines, and the one rule of sampling: read just before the clock edge, write just after.

The clock itself is toggled by the simulator's main loop (`native/main.cpp`), whose times stand here again. Each method
returns in a defined phase of a cycle:

- *drive phase*, just after the edge that starts the cycle: here coroutines write, and here they wake;
- *sample phase*, just before the edge that ends the cycle: a read here gives what that edge sees.

A register that no write of the same cycle can change reads the same in both phases. So a mailbox made of registers is
served with one wake-up. Nothing else in the project but `wakes.py` touches cocotb's triggers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import cocotb
import cocotb._event_loop
import cocotb.task
from cocotb import debug, simulator
from cocotb._event_loop import ScheduledCallback
from cocotb.task import Task, _TaskState
from cocotb.triggers import Timer, Trigger, ValueChange

from .wakes import NativeEvent, Wakes

__all__ = ["DRIVE_STEPS", "PERIOD_STEPS", "SAMPLE_STEPS", "Clock", "Clocked", "EventFlag"]

PERIOD_STEPS = 10
"""Steps of a cycle (kPeriod of main.cpp)."""
DRIVE_STEPS = 1
"""Drive phase, steps after the edge (kDrive of main.cpp)."""
SAMPLE_STEPS = 9
"""Sample phase, steps after the edge."""
_LOOP = cocotb._event_loop._inst


class _Waiting:
    """Who waits for a flag, as cocotb's tasks want to hold it: `cancel` gives it up."""

    __slots__ = ("_waiting", "function")

    def __init__(self, waiting: list[_Waiting], function: Callable[[], object]) -> None:
        self._waiting, self.function = waiting, function

    def cancel(self) -> None:
        """Wait no more."""
        self._waiting.remove(self)


class EventFlag(Trigger):
    """`lanikai.firmware.ports.Flag` in the simulator: as cocotb's `Event`, in half of its time.

    It is a trigger itself, of which any number of tasks may wait at once.
    """

    def __init__(self) -> None:
        # Nothing of the base is used but its name: cocotb's tasks wait for triggers only.
        self._waiting: list[_Waiting] = []
        self._set = False

    def set(self) -> None:
        """Wake every waiter; the flag stays set."""
        self._set = True
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                one.function()

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._set

    def wait(self) -> EventFlag:
        """To be awaited: goes on when it is set."""
        return self

    def _register(self, func: Callable[[], object]) -> Any:
        one = _Waiting(self._waiting, func)
        if self._set:
            func()
        else:
            self._waiting.append(one)
        return one

    def _prime(self) -> None:
        """Nothing has to be asked for."""

    def _unprime(self) -> None:
        """Nothing has been asked for."""


class _LeanTask(Task[Any]):
    """A task that goes on and waits with half of the steps of cocotb's; all else is cocotb's."""

    def _schedule_resume(self, exc: BaseException | None = None) -> None:
        self._state = _TaskState.SCHEDULED
        self._exc = exc
        self._schedule_callback = callback = ScheduledCallback(self._resume)
        _LOOP._callbacks.append(callback)

    def _resume(self) -> None:
        if self._exc is not None or self._must_cancel or debug.debug:
            super()._resume()
            return
        self._state = _TaskState.RUNNING
        cocotb.task._current_task = self
        try:
            trigger = self._coro.send(None)
        except StopIteration as end:
            self._set_outcome(end.value, _TaskState.FINISHED)
        except (KeyboardInterrupt, SystemExit) as error:
            self._set_outcome(error, _TaskState.ERRORED)
            raise
        except BaseException as failure:
            self._set_outcome(failure, _TaskState.ERRORED)
        else:
            if not isinstance(trigger, Trigger):
                self._schedule_resume(TypeError(f"a coroutine waits for {trigger!r}, which is no trigger"))
            else:
                self._state = _TaskState.PENDING
                self._trigger = trigger
                try:
                    self._trigger_callback = trigger._register(self._schedule_resume)
                except Exception as error:
                    self._schedule_resume(error)
        finally:
            cocotb.task._current_task = None


class _Steps(Timer):
    """A timer of `steps` (at least 1), made without the arithmetic of units: in a third less time."""

    def __init__(self, steps: int) -> None:
        super(Timer, self).__init__()
        self._sim_steps = steps


class _Later(Trigger):
    """To be awaited: goes on in the drive phase `cycles` later, by a native event."""

    def __init__(self, wakes: Wakes, cycles: int) -> None:
        self._wakes, self._cycles = wakes, cycles

    def _register(self, func: Callable[[], object]) -> Any:
        waiting: list[_Waiting] = []
        waiting.append(_Waiting(waiting, func))

        def over() -> None:
            for one in waiting:
                one.function()

        self._wakes.call_later(self._cycles, over)
        return waiting[0]

    def _prime(self) -> None:
        """Nothing has to be asked for."""

    def _unprime(self) -> None:
        """Nothing has been asked for."""


class Clock:
    """The clock of a simulation; implements `lanikai.firmware.ports.Scheduler`.

    `on_failure` gets the exception of a spawned coroutine.
    """

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[Task[Any]] = set()
        self._wakeups: Counter[str] | None = None
        self._wakes: Wakes | None = None

    def use(self, wakes: Wakes) -> None:
        """Let coroutines sleep by native events, which cost half of a timer of VPI's. In a cycle they come behind all
        other native events, and before timers."""
        self._wakes = wakes

    def count_wakeups(self) -> Counter[str]:
        """Count from now on how often each coroutine that is spawned later wakes, by its name.

        It wakes every time that it goes on after it has waited, for whatever. Returns the counter, which goes on
        counting.
        """
        if self._wakeups is None:
            self._wakeups = Counter()
        return self._wakeups

    @property
    def cycle(self) -> int:
        """Clock cycles since the start: the cycle in which the caller acts now."""
        return _now() // PERIOD_STEPS

    async def sleep(self, cycles: int) -> None:
        """Return in the drive phase `cycles` (at least 1) later. One wake-up, however long.
        Raises ValueError for less than 1."""
        if cycles < 1:
            raise ValueError(f"cycles = {cycles}: at least 1")
        if self._wakes is not None:
            await _Later(self._wakes, cycles)
        else:
            await _Steps(cycles * PERIOD_STEPS + DRIVE_STEPS - _now() % PERIOD_STEPS)

    async def sample_phase(self) -> None:
        """Return in the sample phase of this cycle."""
        left = SAMPLE_STEPS - _now() % PERIOD_STEPS
        if left > 0:
            await _Steps(left)

    async def drive_phase(self) -> None:
        """Return in the next drive phase: of this cycle if it has yet to come or is now, else of the next."""
        left = (DRIVE_STEPS - _now()) % PERIOD_STEPS
        if left:
            await _Steps(left)

    async def change(self, handle: Any) -> None:
        """Return in the drive phase of the first cycle in which the signal differs from now.

        `handle`: a cocotb handle of a public signal that rarely changes (an event made in RTL), or its `Wakes.change`,
        which costs less. No wake-ups meanwhile.
        """
        if isinstance(handle, NativeEvent):
            happened = EventFlag()
            handle.call(happened.set)
            await happened.wait()
            return
        await ValueChange(handle)
        await self.drive_phase()

    def call_later(self, cycles: int, function: Callable[[], None]) -> None:
        """Call `function` in the drive phase `cycles` (at least 1) later: cheaper than to wake a coroutine. An
        exception in it ends the simulation with that exception. Raises ValueError for less than 1."""
        if cycles < 1:
            raise ValueError(f"cycles = {cycles}: at least 1")
        self._call(_Steps(cycles * PERIOD_STEPS + DRIVE_STEPS - _now() % PERIOD_STEPS), function)

    def call_on_change(self, handle: Any, function: Callable[[], None]) -> None:
        """Call `function` once, in the drive phase of the first cycle in which the signal differs from now.

        The signal is written by registers only. Otherwise as `change` and `call_later`.
        """
        if isinstance(handle, NativeEvent):
            handle.call(self.guarded(function))
        else:
            self._call(ValueChange(handle), function)

    def _call(self, trigger: Any, function: Callable[[], None]) -> None:
        # A task waits for a trigger in this way. cocotb has no public way to have a function called.
        trigger._register(self.guarded(function))

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call `function` in this cycle, behind all that has been woken in it until now. An exception in it ends the
        simulation with that exception."""
        cocotb._event_loop._inst.schedule(self.guarded(function))

    def guarded(self, function: Callable[[], None]) -> Callable[[], None]:
        """The function, whose exception ends the simulation."""

        def guarded() -> None:
            try:
                function()
            except Exception as error:
                self._on_failure(error)

        return guarded

    def flag(self) -> EventFlag:
        """A new flag, not set."""
        return EventFlag()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine beside the caller; an exception in it ends the simulation with that exception."""
        task: Task[Any] = _LeanTask(self._guarded(coroutine, name), name=name)
        cocotb.start_soon(task)
        # cocotb keeps no reference to a task that waits on a flag nobody holds.
        self._tasks.add(task)

    async def _guarded(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        try:
            if self._wakeups is None:
                await coroutine
            else:
                await _Counted(coroutine, self._wakeups, name)
        except Exception as error:
            self._on_failure(error)


class _Counted:
    """Awaits a coroutine and counts, under `name`, how often it goes on after a wait."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], wakeups: Counter[str], name: str) -> None:
        self._coroutine, self._wakeups, self._name = coroutine, wakeups, name

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._coroutine.__await__()
        try:
            awaited = steps.send(None)
            while True:
                try:
                    answer = yield awaited
                except BaseException as error:
                    awaited = steps.throw(error)
                else:
                    self._wakeups[self._name] += 1
                    awaited = steps.send(answer)
        except StopIteration:
            return


class Clocked:
    """A part of a simulation that is a `lanikai.firmware.ports.Scheduler`, as its clock is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def cycle(self) -> int:
        """Clock cycles since the start."""
        return self._clock.cycle

    def sleep(self, cycles: int) -> Coroutine[Any, Any, None]:
        """To be awaited: returns `cycles` (at least 1) later."""
        return self._clock.sleep(cycles)

    def flag(self) -> EventFlag:
        """A new flag, not set."""
        return self._clock.flag()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine beside the caller; an exception in it ends the simulation with that exception."""
        self._clock.spawn(coroutine, name)


def _now() -> int:
    high, low = simulator.get_sim_time()
    return high << 32 | low
