"""Doorbell words: the driver's, and those of resident endpoints.

A card without a doorbell queue has a word a channel, and ISR says that one of them is new. The program looks at the
words of frames with an endpoint and at the driver's, in one go; each look has its cost. So a doorbell is seen within
the pass of the loop that is under way and one round of looks. If none of them is new, the word is a stray: it has been
rung at a frame without an endpoint. Then all words are looked at, once, and it is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable

from ..accesses import Reading
from .endpoints import FrameState
from .layout import DRIVER_CHANNEL
from .state import AmState

__all__ = ["Intake"]


class Intake:
    """Doorbells in. `driver`: called when the driver has rung."""

    def __init__(self, state: AmState, driver: Callable[[], None]) -> None:
        self.state, self._driver = state, driver
        self._stray = False

    def look(self) -> None:
        """ISR has shown a doorbell: look at the words in the next pass."""
        state = self.state
        frames = [number for number, frame in state.frames.items() if frame.state is FrameState.RESIDENT]
        if state.turns.current in frames:
            at = frames.index(state.turns.current)
            frames = frames[at:] + frames[:at]
        channels = list(range(state.nic.channels)) if self._stray else [*frames, DRIVER_CHANNEL]
        seen: list[tuple[int, Reading]] = []
        for channel in channels:
            state.script.pay("doorbell_look")
            accesses = state.script.room(2)
            accesses.write("DOORBELL_SELECT", channel=channel)
            seen.append((channel, accesses.read("DOORBELL_WORD")))
        # It comes up again for a word that has been rung behind the look at it.
        state.script.write("ISR", doorbell=1)
        state.then(lambda: self._seen(seen))

    def _seen(self, words: list[tuple[int, Reading]]) -> None:
        found = False
        for channel, word in words:
            if not word["valid"]:
                continue
            found = True
            frame = self.state.frames.get(channel)
            if channel == DRIVER_CHANNEL:
                self._driver()
            elif frame is not None and frame.state is FrameState.RESIDENT:
                frame.rung(word["value"])
            else:
                self.state.drops["stray doorbell"] += 1
        self._stray = not found
