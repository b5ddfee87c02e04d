"""A post to the completion unit of a card with owners."""

from __future__ import annotations

from collections.abc import Mapping

from . import registers
from .accesses import AccessList, Reading
from .processor import Processor

__all__ = ["CompletionPost"]

BUSY = registers.pack("COMPLETION_POST", busy=1)


class CompletionPost:
    """A post: the status of descriptor `number` of `channel`, and with `entry` an entry of a completion queue.

    - `status_address`: the place of the status word in host memory, None for none.
    - `fields`: those of COMPLETION_POST.
    - `step`: the step of the cost table that it spends.
    """

    def __init__(
        self,
        status_address: int | None,
        *,
        channel: int,
        number: int,
        fields: Mapping[str, int],
        step: str = "complete",
    ) -> None:
        self._status_address, self._channel, self._number = status_address, channel, number
        self._fields, self._step = fields, step
        self._busy: Reading | None = None

    def look(self, processor: Processor, accesses: AccessList) -> None:
        """See whether the unit is busy: then the list ends."""
        processor.pay(accesses, **{self._step: 1})
        self._busy = accesses.read("COMPLETION_POST")
        accesses.stop_if(self._busy, mask=BUSY, value=BUSY)

    def write(self, accesses: AccessList) -> None:
        """Post to a unit that is not busy."""
        if self._status_address is not None:
            accesses.write("COMPLETION_STATUS", address=self._status_address)
        accesses.write("COMPLETION_OF", work_queue=self._channel, descriptor=self._number)
        write_back = self._status_address is not None
        accesses.write("COMPLETION_POST", write_back=write_back, **self._fields)

    @property
    def begun(self) -> bool:
        """Whether the list has come to its look."""
        return self._busy is not None and self._busy.word is not None

    @property
    def held(self) -> bool:
        """Whether the unit was busy at the look."""
        return self._busy is not None and bool(self._busy.get() & BUSY)
