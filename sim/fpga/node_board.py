"""The design `node` on a board, at the end of its serial line."""

from __future__ import annotations

import time

from .line import BoardLine, LineError

__all__ = ["NodeOnBoard"]

MOST_SECONDS = 120.0
"""Longest wait for a card's work: a board needs milliseconds, a simulated one a hundred times as long."""
POLL_SECONDS = 0.02


class NodeOnBoard:
    """The design behind `line`, as `node_load.measure` wants it. Its `seed` is that of the messages' bytes; `cycles`
    are those of the card's work. Raises LineError where the board does not do what it should."""

    def __init__(self, line: BoardLine, *, seed: int) -> None:
        self._line, self.seed, self.cycles = line, seed, 0
        self._ends = 0.0

    async def begin(self) -> None:
        """Reset everything but the line."""
        self._line.restart()
        self._ends = time.monotonic() + MOST_SECONDS

    async def write(self, node: int, address: int, *words: int) -> None:
        """Write words from `address` on."""
        for i, word in enumerate(words):
            self._line.write(node, address + 4 * i, word)

    async def read(self, node: int, address: int, words: int = 1) -> list[int]:
        """Words from `address` on."""
        return self._line.read(node, address, words)

    def took(self, cycles: int) -> None:
        """Note how long the card's work took."""
        self.cycles = cycles

    async def pause(self) -> None:
        """Wait until it is worth while to look again. Raises LineError when it has been long enough."""
        if time.monotonic() > self._ends:
            raise LineError(f"the card is not done after {MOST_SECONDS:g} s; reset the board")
        time.sleep(POLL_SECONDS)
