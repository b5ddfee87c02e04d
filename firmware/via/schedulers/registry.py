"""The schedulers, by name: a new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.hdl.config import ConfigError

from .base import Scheduler
from .deficit import DeficitScheduler
from .virtual_clock import VirtualClockScheduler
from .wf2q import Wf2qScheduler

__all__ = ["SCHEDULERS", "find_scheduler"]

SCHEDULERS: Mapping[str, type[Scheduler]] = {
    one.name: one for one in (VirtualClockScheduler, Wf2qScheduler, DeficitScheduler)
}
"""Name, as the firmware's configuration has it -> class."""


def find_scheduler(name: str) -> type[Scheduler]:
    """The scheduler `name`. Raises ConfigError with the names that there are."""
    if name not in SCHEDULERS:
        raise ConfigError(f"unknown scheduler {name!r}; valid schedulers: {', '.join(SCHEDULERS)}")
    return SCHEDULERS[name]
