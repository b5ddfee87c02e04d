"""Memory that adapters may reach on behalf of a process."""

from __future__ import annotations

from dataclasses import dataclass

from ..kit.address_space import VirtualBuffer
from ..memory import Buffer

__all__ = ["Region"]


@dataclass(frozen=True)
class Region:
    """Registered memory: `number` and `key`, which elements name; `buffer`, its bytes; `table`, its page table."""

    number: int
    key: int
    buffer: VirtualBuffer
    table: Buffer

    @property
    def start(self) -> int:
        """Its first virtual address."""
        return self.buffer.start
