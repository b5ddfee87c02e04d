"""The base of firmware: the processor port of a NIC and the time of a simulation, as protocols.

The simulation provides them (`lanikai.sim.models.processor_mailbox`), and so does the plain Python card of the firmware
tests. Firmware itself knows no simulator: it awaits these and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from .accesses import AccessList

__all__ = ["CardPorts", "Flag", "ProcessorPort", "Scheduler"]


class Flag(Protocol):
    """A condition between coroutines: `wait` returns at once while it is set."""

    def set(self) -> None:
        """Wake every waiter; the flag stays set."""

    def clear(self) -> None:
        """Unset it."""

    def is_set(self) -> bool:
        """Whether it is set."""

    def wait(self) -> Awaitable[Any]:
        """To be awaited: goes on when it is set."""


class Scheduler(Protocol):
    """Simulated time and coroutines."""

    @property
    def cycle(self) -> int:
        """NIC clock cycles since reset: the cycle in which the caller acts now."""

    async def sleep(self, cycles: int) -> None:
        """Return `cycles` (at least 1) NIC cycles later. One wake-up, however long."""

    def flag(self) -> Flag:
        """A new flag, not set."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine beside the caller; an exception in it ends the simulation with that exception."""


class ProcessorPort(Scheduler, Protocol):
    """The register port of one NIC's processor (`lanikai.hdl.nic.ports`).

    It takes one access at a time; the caller serialises. With two processors on a card each has a port: an access of
    one may wait for one of the other's.
    """

    async def write(self, address: int, data: int) -> None:
        """Write a 32-bit word at a byte address of the processor's map. Takes 1 cycle, more if the SRAM is busy."""

    async def read(self, address: int) -> int:
        """Read a 32-bit word. Takes 2 cycles, more if the SRAM is busy."""

    async def event(self) -> None:
        """Return in the first cycle in which `event` (ISR & IMR) is high; at once if it is."""

    def start(self, accesses: AccessList, ended: Callable[[], None], *, lead_cycles: int = 0) -> None:
        """Carry out a list of accesses from the record on that it has reached, `lead_cycles` from now; call `ended`.

        Every access takes place in the cycle in which `carry_out.carry_out` would make it. `ended` is called in the
        cycle in which the last one has ended, and never before `start` has returned. One list at a time. Raises
        ValueError for a list that `AccessList.check` refuses.
        """

    def interrupt(self) -> None:
        """Have the list under way, if there is one, end at its next mark."""

    def call_on_event(self, function: Callable[[], None]) -> None:
        """Call `function` once in the first cycle in which `event` is high; at once if it is."""

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call `function` in this cycle, behind all that has been woken in it until now."""


class CardPorts(Protocol):
    """A card, as far as firmware stands on it (`lanikai.sim.systems.cluster.Node`)."""

    @property
    def processors(self) -> Sequence[ProcessorPort]:
        """Ports of its processors: one, or one to send and one to receive."""
