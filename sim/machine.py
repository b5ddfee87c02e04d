"""The machine that commands run on."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """Processors that this process may use, at least 1.

    It is the smallest of three, rounded up: the machine's processors, those that the process is bound to, and a
    container's quota of processor time.
    """
    from loky.backend.context import cpu_count

    return min(int(cpu_count()), len(os.sched_getaffinity(0)))
