"""The card's engines as a message sees them: move, send, tell, arm.

A message is a coroutine (`sending.py`, `receive.py`), written once. Its design is in the `Engines` that it is given:
those of the sequential one wait at each, those of the parallel one have tasks of many messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..accesses import AccessList
from ..processor import Processor
from .descriptor import Segment
from .state import Key, Vi
from .trace import Stage

__all__ = ["Engines", "Move", "PacketOut", "Post", "Transfer", "cut", "pages", "write_move", "write_post"]

PAGE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Move:
    """A host DMA: `bytes` between `address` of host memory and `sram`.

    - `to_host`: the direction.
    - `tag`, `channel`: whose memory it is: the access is checked, and the address virtual. With `tag` None it is the
      program's own: a host address that the agent has given, unchecked.
    """

    address: int
    sram: int
    bytes: int
    to_host: bool
    tag: int | None = None
    channel: int = 0


@dataclass(frozen=True, kw_only=True)
class Post:
    """A completion: descriptor `number` of `channel` has ended with `status` and `bytes`.

    `status_address`: where its status word is written; `queue`: the completion queue that gets an entry. Either may be
    None.
    """

    channel: int
    number: int
    status: CompletionStatus
    bytes: int
    status_address: int | None = None
    queue: int | None = None


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A list of moves, of the message `key`.

    - `step`: the processor spends it, and `extra` steps by their number, and programs the engine.
    - `stages`: that is the first of them; the second is the engine's.
    - `stamp`: orders what waits for the engine, where the design has an order. None is the present time.
    """

    moves: Sequence[Move]
    step: str
    key: Key
    stages: tuple[Stage, Stage]
    extra: Mapping[str, int] = field(default_factory=dict)
    stamp: int | None = None

    def lists(self, most: int) -> Iterator[Transfer]:
        """The transfer in lists of at most so many moves. The first has the `extra` steps."""
        for first in range(0, len(self.moves), most):
            yield replace(self, moves=self.moves[first : first + most], extra={} if first else self.extra)


@dataclass(frozen=True, kw_only=True)
class PacketOut:
    """A packet of the message `key` on its way out.

    - `buffer`, `payload_bytes`: its place, and its length behind the header.
    - `step`: the processor spends it as it writes the packet's first `words`.
    - `stamp`: as that of a `Transfer`.
    """

    buffer: int
    payload_bytes: int
    step: str
    words: Sequence[int]
    key: Key
    stamp: int | None = None


class Engines(Protocol):
    """The engines of one card, for the coroutines of one of its processors.

    - `processor`: that one.
    - `stamp` orders what waits for an engine, where the design has an order; the smallest first. None is the present
      time.
    - `key`: the message, for the trace.
    """

    processor: Processor

    async def move(self, transfer: Transfer) -> CompletionStatus:
        """Have the host DMA engine make moves, one after the other; return when the last has ended.

        Returns the status of the first move that failed. Without moves nothing happens.
        """

    async def send_packet(self, packet: PacketOut) -> None:
        """Write the first words of a packet into its buffer; send it; return when it is gone.

        Stages 7 and 8. Meanwhile packets are taken in and doorbells heard.
        """

    async def post(self, post: Post, step: str, done: str, *, key: Key, live: Callable[[], bool]) -> None:
        """Give the completion unit a completion, if `live` says so when the unit can take it.

        The processor spends `step`, and `done` once the unit has it. Stages 9 and 10, or 11 and 12 for a queue's entry.
        """

    async def send_buffer(self, *, key: Key, last: bool = False, stamp: int | None = None) -> int:
        """A buffer for a packet on its way out, when there is one. `send_packet` is to follow, or `free_send_buffer`.

        `last`: it is for the last packet of a message.
        """

    async def turn(self, buffer: int) -> None:
        """Return when the packets of the same VI whose buffers were granted before this one's have been queued."""

    async def free_send_buffer(self, buffer: int) -> None:
        """Give back a buffer from which nothing was, or is, sent."""

    async def rearm(self, buffer: int) -> None:
        """Let a buffer take the next packet; once for each packet that it has had."""

    async def hear(self, vi: Vi) -> None:
        """A message wants a descriptor of a VI, and none is known: look whether one has been posted meanwhile."""

    async def quiet(self, channel: int) -> None:
        """Return when no coroutine is at work for a VI, whose work queues have been emptied."""


def write_move(accesses: AccessList, move: Move, *, queue: bool, tag: int = 0, more: bool = False) -> None:
    """Write down how a move is started; with a `queue` as one that shows `tag` when it, or its list, has ended."""
    if queue:
        accesses.write("HOST_DMA_TAG", notify=1, more=more, tag=tag)
    if move.tag is None:
        accesses.write("HOST_DMA_HOST", address=move.address)
        accesses.write("HOST_DMA_SRAM", address=move.sram)
        accesses.write("HOST_DMA_CONTROL", bytes=move.bytes, to_host=move.to_host)
        return
    accesses.write("ACCESS_ADDRESS", address=move.address)
    accesses.write("ACCESS_TAG", region=move.tag & 0xFF, key=move.tag >> 8, channel=move.channel)
    accesses.write("ACCESS_SRAM", address=move.sram)
    accesses.write("ACCESS_CONTROL", bytes=move.bytes, to_host=move.to_host)


def write_post(accesses: AccessList, post: Post) -> None:
    """Write down how a completion is posted."""
    if post.status_address is not None:
        accesses.write("COMPLETION_STATUS", address=post.status_address)
    accesses.write("COMPLETION_OF", work_queue=post.channel, descriptor=post.number)
    accesses.write(
        "COMPLETION_POST",
        bytes=post.bytes,
        status=post.status,
        queue=post.queue or 0,
        write_back=post.status_address is not None,
        entry=post.queue is not None,
    )


def cut(segments: Iterable[Segment], offset: int, size: int) -> list[Segment]:
    """The part of segments from byte `offset` on, `size` bytes, as segments; none of them is empty."""
    found = []
    for segment in segments:
        if offset < segment.bytes and size:
            length = min(segment.bytes - offset, size)
            found.append(Segment(segment.address + offset, segment.handle, length))
            offset, size = 0, size - length
        else:
            offset = max(0, offset - segment.bytes)
    return found


def pages(segments: Iterable[Segment]) -> int:
    """Pages that segments touch, each by itself."""
    return sum((one.address % PAGE_BYTES + one.bytes - 1) // PAGE_BYTES + 1 for one in segments if one.bytes)
