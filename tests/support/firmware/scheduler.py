"""A tiny discrete-event scheduler for coroutines: time of the firmware tests, no simulator."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Event:
    """A `Flag` of `lanikai.firmware.ports`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._set = False
        self._waiting: list[Task] = []

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._world.ready.append(task)

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    async def wait(self) -> None:
        # A flag that is set lets the others go first who are ready, as in the simulator.
        await _Park(self._world.ready.append if self._set else self._waiting.append)


class Task:
    """A running coroutine."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        self.coroutine = coroutine
        self.name = name
        self.done = False
        self.result: Any = None


class _Park:
    """An awaitable that hands the task to `keep`, which puts it back among the ready ones."""

    def __init__(self, keep: Callable[[Task], None]) -> None:
        self._keep = keep

    def __await__(self) -> Generator[Callable[[Task], None], None, None]:
        yield self._keep


class World:
    """Simulated time. `cycle` is now. Coroutines that are ready run before time goes on, in the order of waking."""

    def __init__(self) -> None:
        self.cycle = 0
        self.ready: deque[Task | Callable[[], None]] = deque()
        self._agenda: list[tuple[int, int, Task | Callable[[], None]]] = []
        self._count = 0

    def flag(self) -> Event:
        return Event(self)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> Task:
        task = Task(coroutine, name)
        self.ready.append(task)
        return task

    def begin(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        """Run a coroutine up to its first wait now, then beside the caller."""
        self._step(Task(coroutine, name))

    def first(self, function: Callable[[], None]) -> None:
        """Call a function; what it wakes comes before all that is ready, as if it had not waited."""
        others, self.ready = self.ready, deque()
        function()
        self.ready.extend(others)

    def at(self, cycle: int, act: Task | Callable[[], None]) -> None:
        """Run a function, or go on with a task, in a cycle to come."""
        self._count += 1
        heapq.heappush(self._agenda, (cycle, self._count, act))

    async def sleep(self, cycles: int) -> None:
        assert cycles >= 1, f"sleep({cycles})"
        await _Park(lambda task: self.at(self.cycle + cycles, task))

    def run(self, main: Coroutine[Any, Any, Any], limit: int = 50_000_000) -> Any:
        """Run until `main` returns. Returns its result. Fails if nothing can happen any more, or after `limit`
        cycles."""
        task = self.spawn(main, "main")
        while not task.done:
            while self.ready:
                self._step(self.ready.popleft())
            if task.done:
                break
            assert self._agenda, f"cycle {self.cycle}: nothing left to happen, main still waits"
            self.cycle, _, act = heapq.heappop(self._agenda)
            assert self.cycle <= limit, f"main still waits after {limit} cycles"
            if isinstance(act, Task):
                self.ready.append(act)
            else:
                act()
        return task.result

    def _step(self, task: Task | Callable[[], None]) -> None:
        if not isinstance(task, Task):
            task()
            return
        try:
            park = task.coroutine.send(None)
        except StopIteration as stop:
            task.done, task.result = True, stop.value
        else:
            park(task)

    async def gather(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run coroutines side by side. Returns their results."""
        left = len(coroutines)
        done = self.flag()
        results: list[Any] = [None] * left

        async def one(place: int, coroutine: Coroutine[Any, Any, Any]) -> None:
            nonlocal left
            results[place] = await coroutine
            left -= 1
            if not left:
                done.set()

        for place, coroutine in enumerate(coroutines):
            self.spawn(one(place, coroutine), f"gather[{place}]")
        if coroutines:
            await done.wait()
        return results
