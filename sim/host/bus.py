"""The ground of host software: one host's memory and its I/O bus to its NIC, as a protocol.

`lanikai.sim.systems.cluster` provides it over the simulated PCI bus; host software knows no simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from lanikai.firmware.ports import Scheduler

__all__ = ["BusError", "HostBus", "Watch"]


class BusError(RuntimeError):
    """The NIC refused programmed I/O; one line with the node, the access and its address."""


class Watch(Protocol):
    """Wakes host software when the NIC has written into a range of host memory."""

    async def wait(self, look: Callable[[], int | None] | None = None, *, after_cycles: int = 0) -> Any:
        """Return once a DMA write burst into the range has ended since the last `wait` (or since the watch was made);
        at once if one has.

        With `look`: it is called so many cycles after that. If it gives None, wait for the next burst; else return the
        cycles later that it gives. All that is one wake-up.
        """

    def touch(self) -> None:
        """Note that other software of this host has written into the range: this is as a burst that has ended."""


class HostBus(Scheduler, Protocol):
    """One host: `memory` (bytes, shared with the simulation), programmed I/O to its NIC, watches on memory."""

    @property
    def node(self) -> int:
        """The node's number."""

    @property
    def memory(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The host's memory; the NIC's DMA reads and writes these very bytes."""

    async def write(self, address: int, data: int) -> None:
        """Write a 32-bit word into the NIC's window (`lanikai.hdl.nic.ports`); returns when the bus has taken
        it. Raises BusError if the NIC refused it."""

    async def write_all(self, writes: Sequence[tuple[int, int]], *, after_cycles: int = 0) -> None:
        """Write words, (address, data) each, one after the other, once `after_cycles` are over. All that is one
        wake-up. Raises as `write` does, after the first that is refused."""

    async def read(self, address: int) -> int:
        """Read a 32-bit word of the NIC's window. Raises BusError if the NIC refused it."""

    async def read_all(self, addresses: Sequence[int], *, after_cycles: int = 0) -> list[int]:
        """Read words of the NIC's window, one after the other, once `after_cycles` are over. All that is one wake-up.
        Returns them in their order. Raises as `read` does, after the first that is refused."""

    async def interrupt(self) -> None:
        """Return in the first cycle in which the NIC's interrupt line is up; at once if it is."""

    def watch(self, start: int, length: int) -> Watch:
        """A watch on `length` bytes of memory from `start`."""
