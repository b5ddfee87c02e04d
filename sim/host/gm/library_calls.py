"""The GM library of a host as its ports see it.

`library.Gm` is the one `LibraryCalls`. Ports import this file and not the library, which makes the ports.
"""

from __future__ import annotations

from typing import Protocol

from lanikai.firmware.gm.config import GmConfig
from lanikai.firmware.gm.layout import Counts, Layout
from lanikai.hdl.config import NicConfig

from ..bus import HostBus
from ..config import HostConfig
from ..memory import Buffer, PageAllocator

__all__ = ["LibraryCalls"]


class LibraryCalls(Protocol):
    """GM on one host; `library.Gm` says what each attribute and call is."""

    bus: HostBus
    nic: NicConfig
    gm: GmConfig
    host: HostConfig
    layout: Layout
    memory: PageAllocator
    counts: list[Counts]
    advanced_cycle: int

    @property
    def node(self) -> int:
        """This node's number."""

    def cycles(self, nanoseconds: int) -> int:
        """The NIC's cycles of so much of the host CPU's time."""

    def check_target(self, port: int, node: int, target: int, priority: int) -> None:
        """Refuse a target that cannot be, and a flow that there is no room for."""

    def check_idt(self, ticks: int, least_bytes: int | None = None) -> None:
        """Refuse an IDT that cannot be."""

    def remember(self, port: int, node: int, target: int, priority: int) -> None:
        """Note that the NIC is about to be told of a flow."""

    def forget(self, port: int) -> None:
        """Note that a port is closed."""

    def providing(self, buffer: Buffer) -> bool:
        """Whether some port has been given some of these bytes to receive in."""

    def found_dead(self, node: int) -> None:
        """Note that a message failed, as its node is dead."""

    def found_alive(self, node: int) -> None:
        """Note that a node has taken a message, or sent one."""
