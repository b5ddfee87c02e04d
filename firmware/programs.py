"""The firmware programs, by name: a new one is a file (or folder) of this package and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.config import ConfigError

from .am.program import AmProgram
from .gm.program import GmProgram
from .program import FirmwareProgram
from .via.program import ViaProgram
from .work_queue.program import WorkQueueProgram

__all__ = ["PROGRAMS", "find_program"]

PROGRAMS: Mapping[str, type[FirmwareProgram[Any]]] = {
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
