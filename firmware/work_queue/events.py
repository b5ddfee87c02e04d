"""The card's events, for a program that waits for them by itself: it has no coroutine beside it, and no idle loop."""

from __future__ import annotations

from .. import registers
from ..accesses import AccessList, Reading
from ..notice import PortEvent
from ..processor import Processor

__all__ = ["Events", "bits", "names"]


def bits(*sources: str) -> int:
    """The bits of ISR of these events."""
    return registers.pack("ISR", **dict.fromkeys(sources, 1))


def names(status: Reading, *sources: str) -> set[str]:
    """The events of these that stand in ISR."""
    return {name for name in sources if status[name]}


class Events:
    """Lists to wait for events. A wait is a step that ends in `arm`, and one after `port` that begins with `take`."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self.port = PortEvent(processor.port)

    def arm(self, accesses: AccessList, *sources: str) -> None:
        """Let these events, and no others, wake the processor."""
        self._processor.pay(accesses, look=1)
        accesses.write("IMR", mask=bits(*sources))

    @staticmethod
    def take(accesses: AccessList, *sources: str) -> Reading:
        """Read ISR, and clear those of these events that have come. Returns ISR."""
        status = accesses.read("ISR")
        accesses.copy(status, "ISR", mask=bits(*sources))
        return status

    def look(self, accesses: AccessList, *sources: str) -> Reading:
        """See whether these events have come; if so they are cleared. Returns ISR."""
        self._processor.pay(accesses, look=1)
        status = accesses.read("ISR")
        accesses.skip_if(status, mask=bits(*sources), value=0, records=1)
        accesses.copy(status, "ISR", mask=bits(*sources))
        return status

    async def wait(self, *sources: str) -> set[str]:
        """Sleep until one of these events; those that have come are cleared."""
        first, second = AccessList(), AccessList()
        self.arm(first, *sources)
        status = self.take(second, *sources)
        step = self._processor.step("look", 0, accesses=first)
        async with step.then("dispatch", second, after=self.port):
            return names(status, *sources)
