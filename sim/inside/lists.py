"""Lists of accesses of a card's processor, carried out by the main loop (`native/lists.h`)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import chain

import numpy as np
from lanikai.firmware.accesses import LONGEST, AccessList, Why

from . import native_api
from .wakes import NativeEvent

__all__ = ["NativeLists"]

RECORD_WORDS = 8
"""Words of a record (kWords of lists.h)."""
_RECORDS, READ, REACHED, WHY, INTERRUPT, _MARKS = range(6)
"""Places in the control words (Control of lists.h)."""


class NativeLists:
    """The lists of one processor.

    - `command`, `answer`: the ports of its mailbox (`sim/models/processor_mailbox.py`).
    - `event`: an event for this alone.

    Python is woken at a list's end. Until then the list costs what its accesses cost the main loop, and nothing in the
    cycles between them.
    """

    def __init__(self, command: native_api.Signal, answer: native_api.Signal, event: NativeEvent) -> None:
        self._event = event
        self._program = np.zeros(LONGEST * RECORD_WORDS, np.uint32)
        self._words = np.zeros(LONGEST, np.uint32)
        self._control = np.zeros(6, np.uint32)
        self._begin = native_api.attach_lists(
            command, answer, self._program, self._words, self._control, event.number
        )

    def start(
        self,
        accesses: AccessList,
        ended: Callable[[], None],
        *,
        lead_cycles: int,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        """Carry out a list from the record on that it has reached, `lead_cycles` from now; then call `ended`.

        If no time passes until then, it is called by `call_soon`.
        """
        begin = accesses.reached
        records = accesses.records[begin:]
        flat = array(
            "I", chain.from_iterable((*record, *(0,) * (RECORD_WORDS - len(record))) for record in records)
        )
        self._program[: len(flat)] = flat
        before = [reading.word for reading in accesses.readings if reading.word is not None]
        self._words[: len(before)] = before
        control = self._control
        control[:] = (len(records), len(before), 0, 0, 0, accesses.has_marks)

        def over() -> None:
            count = int(control[READ])
            words = self._words[len(before) : count].tolist()
            for reading, word in zip(accesses.readings[len(before) :], words, strict=False):
                reading.word = word
            accesses.ended(Why(int(control[WHY])), begin + int(control[REACHED]))
            ended()

        self._event.call(over)
        if self._begin(lead_cycles):
            self._event.cancel()
            call_soon(over)

    def interrupt(self) -> None:
        """Have the list under way end at its next mark."""
        self._control[INTERRUPT] = 1
