"""The accesses of one pass of the program, as many lists as they need, carried out with one wake-up."""

from __future__ import annotations

from collections.abc import Sequence

from ...accesses import LONGEST, AccessList, Reading
from ...notice import PortEvent
from ...processor import Processor

__all__ = ["Script"]


class Script:
    """Accesses that firmware has decided on, in their order, and the steps that they pay for.

    It grows while the program looks at what the pass before has found. `run` carries all of it out.
    """

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._lists: list[AccessList] = []

    def __bool__(self) -> bool:
        """Whether there is anything to carry out."""
        return bool(self._lists)

    def room(self, records: int) -> AccessList:
        """The list that has room for so many more records. Raises ValueError for more than a list has."""
        if not 0 < records <= LONGEST:
            raise ValueError(f"records = {records}: 1 to {LONGEST}")
        if not self._lists or len(self._lists[-1]) + records > LONGEST:
            self._lists.append(AccessList())
        return self._lists[-1]

    def pay(self, step: str, times: int = 1) -> None:
        """Spend a step of the cost table before what follows. Raises KeyError for one that it does not have."""
        if times:
            self._processor.pay(self.room(1), **{step: times})

    def write(self, name: str, **fields: int) -> None:
        """Write a register."""
        self.room(1).write(name, **fields)

    def load(self, address: int, words: int) -> list[Reading]:
        """Read words of SRAM."""
        return self.room(words).load(address, words)

    def store(self, address: int, words: Sequence[int]) -> None:
        """Write words of SRAM."""
        if words:
            self.room(len(words)).store(address, *words)

    async def run(self, step: str, look: AccessList, *, after: PortEvent | None = None) -> None:
        """Carry everything out, then `step` with the list `look`, which begins `after` that has come."""
        processor, lists = self._processor, self._lists
        self._lists = []
        if not lists:
            async with processor.step(step, accesses=look, ahead=True, after=after):
                return
        chain = processor.step(step, 0, accesses=lists[0])
        for one in lists[1:]:
            chain.then(step, one, times=0)
        async with chain.then(step, look, after=after):
            pass
