"""The machine that commands run on."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["MOST_THREADS", "ONE_THREAD", "Threads", "cores"]

MOST_THREADS = 64
"""Most threads of one simulation."""


@dataclass(frozen=True)
class Threads:
    """Threads of one simulation: `count`, or if it is not `asked` for, as many of them as pay (`native/blocks.h`)."""

    count: int = 1
    asked: bool = False

    @classmethod
    def share(cls, asked: int | None, runs: int, workers: int) -> Threads:
        """The threads of each of `runs` simulations, of which `workers` go on at once: those asked for, or a part of
        the cores."""
        return cls(
            max(1, cores() // max(1, min(runs, workers))) if asked is None else asked, asked is not None
        )

    def arguments(self) -> list[str]:
        """Options of the simulator's executable."""
        return ["--threads" if self.asked else "--threads-if-worth", str(self.count)]


def cores() -> int:
    """Processors that this process may use, at least 1.

    It is the smallest of three, rounded up: the machine's processors, those that the process is bound to, and a
    container's quota of processor time.
    """
    from loky.backend.context import cpu_count

    return min(int(cpu_count()), len(os.sched_getaffinity(0)))


ONE_THREAD = Threads()
