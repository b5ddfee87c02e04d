"""The firmware programs, by name: a new one is a file (or folder) of this package and a line here."""

from __future__ import annotations

from typing import Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.registry import Registry, class_problem

from .am.program import AmProgram
from .gm.program import GmProgram
from .program import FirmwareProgram
from .via.program import ViaProgram
from .work_queue.program import WorkQueueProgram

__all__ = ["PROGRAMS", "find_program"]

PROGRAMS = Registry[type[FirmwareProgram[Any]]](
    "firmware", "firmware program", class_problem(FirmwareProgram)
) | {
    "am": AmProgram,
    "gm": GmProgram,
    "via": ViaProgram,
    "work_queue": WorkQueueProgram,
}
"""Name, as `ClusterConfig.firmware` has it -> class."""


def find_program(name: str) -> type[FirmwareProgram[Any]]:
    """The program `name`. Raises ConfigError with the names that there are."""
    if name not in PROGRAMS:
        raise ConfigError(f"unknown firmware program {name!r}; valid programs: {', '.join(PROGRAMS)}")
    return PROGRAMS[name]
