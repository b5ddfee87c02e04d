"""Lists of accesses of a card's processor, carried out by the main loop (`native/lists.h`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lanikai.firmware.accesses import LONGEST, RECORD_WORDS, AccessList, Why

from . import native_api
from .wakes import NativeEvent

__all__ = ["NativeLists"]

READ, REACHED, WHY, INTERRUPT = range(4)
"""Places in the control words (Control of lists.h)."""
RECORD_BYTES = 4 * RECORD_WORDS
WHYS = tuple(Why)


class NativeLists:
    """The lists of one processor.

    - `command`, `answer`: the ports of its mailbox (`sim/models/processor_mailbox.py`).
    - `event`: an event for this alone.
    - `guarded`: makes a function whose exception ends the simulation (`Clock.guarded`).

    Python is woken at a list's end. Until then the list costs what its accesses cost the main loop, and nothing in the
    cycles between them.
    """

    def __init__(
        self,
        command: native_api.Signal,
        answer: native_api.Signal,
        event: NativeEvent,
        guarded: Callable[[Callable[[], None]], Callable[[], None]],
    ) -> None:
        words, control = np.zeros(LONGEST, np.uint32), np.zeros(4, np.uint32)
        self._begin, self._port = native_api.attach_lists(command, answer, words, control, event.number)
        # Their items cost a third of those of arrays.
        self._words, self._control = words.data, control.data
        event.always(guarded(self._over))
        self._list = AccessList()
        self._from = 0
        self._ended: Callable[[], None] = self._over

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
        before = accesses.words
        self._list, self._ended, self._from = accesses, ended, begin
        for place, word in enumerate(before):
            self._words[place] = word
        self._control[READ] = len(before)
        image = accesses.image()  # which the list keeps
        address, words = image.buffer_info()
        if self._begin(
            self._port,
            lead_cycles,
            address + RECORD_BYTES * begin,
            words // RECORD_WORDS - begin,
            accesses.has_marks,
        ):
            call_soon(self._over)

    def _over(self) -> None:
        """The list has come to its end."""
        accesses, control = self._list, self._control
        if count := control[READ]:
            accesses.words = self._words[:count].tolist()
        accesses.reached = self._from + control[REACHED]
        accesses.why = WHYS[control[WHY]]
        self._ended()

    def interrupt(self) -> None:
        """Have the list under way end at its next mark."""
        self._control[INTERRUPT] = 1
