"""The plain model of completion queues: rings in a memory, and what a post or a consumer's write does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lanikai.hdl.hca.layout import CQE_LAYOUT, CqeStatus

__all__ = ["CompletionModel", "cqe_bits", "cqe_fields"]

TURNS = 1 << 16


def cqe_bits(**fields: int) -> int:
    """An entry of a completion queue as a number; fields that are not given are 0."""
    return sum(value << CQE_LAYOUT[name].offset for name, value in fields.items())


def cqe_fields(bits: int) -> dict[str, int]:
    """The fields of an entry, without those that are reserved."""
    return {
        name: bits >> place.offset & (1 << place.width) - 1
        for name, place in CQE_LAYOUT
        if not name.startswith("reserved")
    }


@dataclass
class Queue:
    """A queue: its set-up and running indices."""

    owner: int
    base: int
    entries_log2: int
    produced: int
    consumed: int
    dead: bool = False


@dataclass
class CompletionModel:
    """Queues by number over `memory`, of which the model has its own copy. `fails(address)`: the bus refuses it."""

    memory: bytearray
    fails: Any = lambda address: False
    first_index: int = 0
    queues: dict[int, Queue] = field(default_factory=dict)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("refusals", "overruns", "dropped", "bus_errors"), 0)
    )
    completed: list[int] = field(default_factory=list)

    def setup(self, queue: int, owner: int, base: int, entries_log2: int) -> None:
        """Make a queue anew, or switch it off."""
        self.queues.pop(queue, None)
        if entries_log2:
            self.queues[queue] = Queue(owner, base, entries_log2, self.first_index, self.first_index)

    def post(self, queue: int, entry: int) -> None:
        """A post, and the bus' answer to it."""
        found = self.queues.get(queue)
        if found is None or found.dead:
            self.counts["dropped"] += 1
            return
        size = 1 << found.entries_log2
        overrun = (found.produced - found.consumed) % TURNS >= size - 1
        if overrun:
            self.counts["overruns"] += 1
            entry, found.dead = cqe_bits(status=CqeStatus.OVERRUN), True
        phase = ~(found.produced >> found.entries_log2) & 1
        address = found.base + found.produced % size * 16
        found.produced = (found.produced + 1) % TURNS
        if self.fails(address):
            self.counts["bus_errors"] += 1
            found.dead = True
            return
        self.memory[address : address + 16] = (entry | cqe_bits(phase=phase)).to_bytes(16, "little")
        self.completed.append(queue)

    def consume(self, queue: int, owner: int, index: int) -> None:
        """A consumer's write."""
        found = self.queues.get(queue)
        if (
            found is None
            or found.owner != owner
            or (index - found.consumed) % TURNS > (found.produced - found.consumed) % TURNS
        ):
            self.counts["refusals"] += 1
        else:
            found.consumed = index
