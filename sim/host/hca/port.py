"""The ground of an adapter's host software, as protocols; `sim/systems/adapters/network.py` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from lanikai.firmware.ports import Flag, Scheduler

from ..memory import PageAllocator

__all__ = ["AdapterPort", "Registers"]


class Registers(Protocol):
    """The adapter's registers, for the driver alone."""

    async def write(self, name: str, **fields: int) -> None:
        """Write a register of `hca.rdl`."""

    async def read(self, name: str) -> dict[str, int]:
        """Read the fields of a register."""


class AdapterPort(Scheduler, Protocol):
    """One host: its memory, its adapter's registers and window.

    - `node`: its number in the network. `now`: the cycle that it is.
    - `memory`: all bytes, shared with the adapter. `pages`: hands out parts of them.
    - `registers`: the adapter's registers.
    - `completed`: for each completion queue a flag that is set when an entry has been written, while somebody waits for
      it.
    """

    node: int
    memory: np.ndarray[Any, np.dtype[np.uint8]]
    pages: PageAllocator

    @property
    def now(self) -> int:
        """The cycle that it is."""

    @property
    def registers(self) -> Registers:
        """The adapter's registers."""

    @property
    def completed(self) -> Sequence[Flag]:
        """For each completion queue a flag that is set when an entry has been written, while somebody waits for it."""

    async def write(self, page: int, word: int, value: int, *, not_before: int | None = None) -> int:
        """Write a word of a page of the window; waits while too many wait already. Returns the write's cycle."""

    def write_now(self, page: int, word: int, value: int, *, not_before: int | None = None) -> int:
        """As `write`; raises SimulationError if too many wait already."""
