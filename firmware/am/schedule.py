"""Turns to send: weighted round robin over resident endpoints, with loitering (chun-1998 4.1)."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Turns"]


class Turns:
    """Weighted round robin over the numbers of frames, `attempts` in a row for each.

    - An endpoint that has nothing to send when its turn comes is skipped.
    - One that has begun its turn keeps it for `attempts` attempts, though it may be empty meanwhile. That is loitering:
      its process may be about to post more. An attempt that finds nothing is a look at the doorbells.
    - If no other endpoint has anything to send, there is nothing to hold up, and the turn does not end.

    Bound: a resident endpoint that has something to send waits for at most `attempts` attempts of every other one.

    `current`: the frame whose turn it is. `turned`: whether it is another one since the last `choose`. Raises
    ValueError for fewer attempts than 1.
    """

    def __init__(self, attempts: int) -> None:
        if attempts < 1:
            raise ValueError(f"attempts = {attempts}: at least 1")
        self.attempts = attempts
        self.current: int | None = None
        self.turned = False
        self._left = 0
        self._ring: list[int] = []

    def add(self, frame: int) -> None:
        """A frame takes part; its turn comes after those of all others."""
        if frame in self._ring:
            return
        at = self._ring.index(self.current) if self.current in self._ring else len(self._ring)
        self._ring.insert(at, frame)

    def remove(self, frame: int) -> None:
        """A frame takes part no longer; its turn, if it has it, goes to the next one."""
        if frame in self._ring:
            if frame == self.current:
                at = self._ring.index(frame)
                self.current = self._ring[at - 1] if len(self._ring) > 1 else None
                self._left = 0
            self._ring.remove(frame)

    def loiter(self, ready: Callable[[int], bool]) -> int:
        """Looks that are to be made before another endpoint's turn begins; 0 if there is no reason to wait.

        `ready(frame)`: whether an endpoint has something to send.
        """
        if self.current is None or not self._left or ready(self.current):
            return 0
        return self._left if any(ready(frame) for frame in self._ring) else 0

    def looked(self, looks: int) -> None:
        """So many looks have been made; each was an attempt."""
        self._left = max(0, self._left - looks)

    def choose(self, ready: Callable[[int], bool]) -> int | None:
        """The frame that may make an attempt now, which is counted; None if none is ready."""
        self.turned = False
        if self._left and self.current is not None and ready(self.current):
            self._left -= 1
            return self.current
        start = self._ring.index(self.current) + 1 if self.current in self._ring else 0
        for frame in self._ring[start:] + self._ring[:start]:
            if ready(frame):
                self.turned = frame != self.current
                self.current, self._left = frame, self.attempts - 1
                return frame
        self._left = 0
        return None
