"""Jobs that run side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TypeVar

from lanikai.firmware.ports import Scheduler

__all__ = ["together"]

Result = TypeVar("Result")


async def together(scheduler: Scheduler, jobs: Iterable[Awaitable[Result]], name: str) -> list[Result]:
    """Run `jobs`, tasks of this `name` and a number each. Returns their results, in their order, when the last has
    ended. A job that raises never ends it."""
    waiting = list(jobs)
    results: dict[int, Result] = {}
    done = scheduler.flag()

    async def one(place: int, job: Awaitable[Result]) -> None:
        results[place] = await job
        if len(results) == len(waiting):
            done.set()

    for place, job in enumerate(waiting):
        scheduler.spawn(one(place, job), f"{name}[{place}]")
    if waiting:
        await done.wait()
    return [results[place] for place in range(len(waiting))]
