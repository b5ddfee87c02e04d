"""The intake of doorbells, of the processes and of the driver."""

from __future__ import annotations

from .. import registers
from ..accesses import AccessList, Reading
from ..driver_mailbox import DRIVER_CHANNEL, DriverMailbox
from .context import WorkQueueContext
from .layout import COUNT_BITS

__all__ = ["Intake"]

RECEIVE_FLAG = 1 << 20
"""Flag in a doorbell's value in the queue: it is a receive doorbell (`receive_doorbells` = merged)."""
LOOKS = 8
"""Most doorbells that a list takes."""
_ENTRY = registers.NIC_REGISTERS["DOORBELL_QUEUE"].fields
_VALID, _CHANNEL = _ENTRY["valid"].mask, _ENTRY["channel"]


class Intake:
    """Takes doorbells in their order; the driver's goes to its `mailbox`."""

    def __init__(self, program: WorkQueueContext, mailbox: DriverMailbox) -> None:
        self._program, self._mailbox = program, mailbox
        self._processor = program.processor
        self._lists: dict[tuple[int, bool], tuple[AccessList, list[Reading]]] = {}

    def look(self, accesses: AccessList) -> Reading:
        """Look for a doorbell. Behind this the list goes on only if there is none. Returns the queue's entry."""
        self._processor.pay(accesses, look=1)
        entry = accesses.read("DOORBELL_QUEUE")
        accesses.stop_if(entry, mask=_VALID, value=_VALID)
        # While the queue has an entry the event comes up again: none is lost by this.
        accesses.write("ISR", doorbell=1)
        return entry

    async def take_doorbells(self, first: Reading | None = None) -> None:
        """Take all doorbells that have been rung, in their order: as many as the card's queue holds.

        It takes no more in one go, or a process that never stops ringing would have the firmware for itself. `first`:
        an entry that has been read.
        """
        left = self._program.nic.doorbell_queue_entries
        unpaid = False
        if first is not None:
            left -= 1
            unpaid = not await self._take(first)
        while left or unpaid:
            accesses, entries = self._looks(min(left, LOOKS), unpaid)
            unpaid = False
            async with self._processor.step("look", 0, accesses=accesses):
                pass
            for entry in entries:
                if entry.word is None:
                    break
                if not entry["valid"]:
                    return
                left -= 1
                await self._take(entry)

    def _looks(self, count: int, unpaid: bool) -> tuple[AccessList, list[Reading]]:
        """Looks for `count` doorbells, up to the first that is the driver's or is not there.

        They begin with the cycles of a doorbell that is `unpaid`.
        """
        if (count, unpaid) not in self._lists:
            accesses, entries = AccessList(), []
            self._processor.pay(accesses, doorbell=int(unpaid))
            for _ in range(count):
                self._processor.pay(accesses, look=1)
                entry = accesses.read("DOORBELL_QUEUE")
                entries.append(entry)
                accesses.skip_if(entry, mask=_VALID, value=_VALID, records=2)
                accesses.write("ISR", doorbell=1)  # as in `look`
                accesses.stop()
                accesses.stop_if(entry, mask=_CHANNEL.mask, value=DRIVER_CHANNEL << _CHANNEL.low)
                self._processor.pay(accesses, doorbell=1)
            self._lists[count, unpaid] = accesses, entries
        return self._lists[count, unpaid]

    async def _take(self, entry: Reading) -> bool:
        """Do what a doorbell says. Returns whether it is the driver's."""
        found = entry.fields()
        if found["channel"] == DRIVER_CHANNEL:
            await self._mailbox.set_up()
            self._program.advance()
            return True
        queue = self._program.queue(found["channel"], receive=bool(found["value"] & RECEIVE_FLAG))
        queue.posted = found["value"] % (1 << COUNT_BITS)
        self._program.may_send(queue)
        return False
