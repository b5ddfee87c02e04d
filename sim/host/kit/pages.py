"""A process' own page of its card's window: doorbells, consumed completions, the shadow window."""

from __future__ import annotations

from lanikai.hdl.nic.owners.owner_page import CONSUME_WORD, DOORBELL_WORD, PART_BYTES, PagePart
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES

from ...inside.words import Fields
from ..bus import BusError, HostBus
from .errors import RefusedError

__all__ = ["OwnerPage"]

_DOORBELL, _CONSUME = Fields(DOORBELL_WORD), Fields(CONSUME_WORD)


class OwnerPage:
    """The page of owner `owner`: all that its process can do to the card (docs/nic.md).

    Every call is one or more writes of a word, which take their time on the simulated bus; a doorbell whose queue is
    full waits there. `writes` counts them. Raises RefusedError for things that are not the owner's, ValueError for a
    word that does not fit.
    """

    def __init__(self, bus: HostBus, owner: int) -> None:
        self._bus, self.owner = bus, owner
        self.writes = 0

    async def ring(self, channel: int, word: int, *, receive: bool = False) -> None:
        """Ring a channel's send doorbell, or its receive doorbell, with `word`.

        The word has 22 bits, of which a queued doorbell keeps 21, and 20 where both kinds share a queue.
        """
        part = PagePart.RECEIVE if receive else PagePart.SEND
        what = f"the {'receive' if receive else 'send'} doorbell of channel {channel}"
        await self._write([(part.offset, _DOORBELL.pack(channel=channel, word=word))], what)

    async def consume(self, queue: int, index: int, *, arm: bool = False) -> None:
        """Say that all entries of completion queue `queue` before running `index` (modulo 2^16) are done with. `arm`:
        interrupt when there is another."""
        word = _CONSUME.pack(queue=queue, index=index, arm=arm)
        await self._write([(PagePart.COMPLETION.offset, word)], f"index {index} of completion queue {queue}")

    async def shadow(self, offset: int, words: tuple[int, ...]) -> None:
        """Write words from byte `offset` of the shadow window on, in the order of their addresses."""
        at = 4 * (len(words) - 1) + offset
        if offset < 0 or at >= PART_BYTES:
            raise RefusedError(
                f"node {self._bus.node}, owner {self.owner}: byte {at:#x} of the shadow window: its part of the "
                f"page ends at {PART_BYTES:#x}"
            )
        start = PagePart.SHADOW.offset + offset
        writes = [(start + 4 * i, word) for i, word in enumerate(words)]
        await self._write(writes, f"bytes {offset:#x} to {at + 3:#x} of the shadow window")

    async def _write(self, writes: list[tuple[int, int]], what: str) -> None:
        """Write words at offsets of the page."""
        self.writes += len(writes)
        page = DOORBELL_BASE + DOORBELL_PAGE_BYTES * self.owner
        try:
            await self._bus.write_all([(page + offset, word) for offset, word in writes])
        except BusError:
            raise RefusedError(
                f"node {self._bus.node}, owner {self.owner}: the card refused {what}: it is not this owner's"
            ) from None
