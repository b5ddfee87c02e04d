"""Entries of a full queue that are kept for those who have waited longest.

Senders try again at scans, each by its own clock. Without this it is a matter of luck who finds a free entry. So one of
them may have none for any length of time. The paper leaves it at that (chun-1998 4.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["KEEP_SCANS", "NOTE_BYTES", "PATIENCE", "Places"]

PATIENCE = 2
"""Refusals after which a flow stands in the line. One refusal is nothing rare, and keeps no entry."""
KEEP_SCANS = 64
"""Scans after which a flow that has not tried again is forgotten: its process has died, or its page has left."""
NOTE_BYTES = 8
"""SRAM of a note: node and endpoint, refusals, the time of the last one, and the next in the line."""

Flow = tuple[int, int]
"""A sender: its node and its endpoint."""
Queue = tuple[int, bool]
"""A receive queue: its endpoint, and whether it is that of replies."""


@dataclass
class _Notes:
    """The flows that a queue has refused: flow -> tick of its last refusal, flow -> refusals, and the line in order."""

    seen: dict[Flow, int] = field(default_factory=dict)
    refusals: dict[Flow, int] = field(default_factory=dict)
    line: dict[Flow, None] = field(default_factory=dict)

    def forget(self, flow: Flow) -> None:
        for notes in (self.seen, self.refusals, self.line):
            notes.pop(flow, None)


class Places:
    """The lines of a card's receive queues, of `entries` entries each.

    A flow that was refused `PATIENCE` times stands in the line of its queue. Half of the entries may be kept, one for
    each flow at the head of the line. A message has an entry if more are free than are kept for flows before it.

    **Bound.** Let each flow try at least every T, and the process take half as many messages as there are entries in
    each T. Of n flows at a queue each is then served after at most `PATIENCE` + 2 + floor((n - 1) / (entries / 2))
    times T.

    `most`: flows that are noted on the card at once; the bound holds for those. `keep_ticks`: RTC ticks after which one
    that does not come is forgotten. `modulus`: of RTC.
    """

    def __init__(self, entries: int, *, most: int, keep_ticks: int, modulus: int) -> None:
        self._kept, self._most = max(1, entries // 2), most
        self._keep_ticks, self._modulus = keep_ticks, modulus
        self._queues: dict[Queue, _Notes] = {}

    def __len__(self) -> int:
        """Flows that are noted."""
        return sum(len(notes.seen) for notes in self._queues.values())

    def notes(self, queue: Queue) -> bool:
        """Whether a queue has refused anybody who may come again."""
        return queue in self._queues

    def admits(self, queue: Queue, flow: Flow, room: int, now: int) -> bool:
        """Whether a message of a flow may have one of `room` free entries, at RTC tick `now`. If not it is noted."""
        notes = self._queues.get(queue)
        if notes is None:
            if room > 0:
                return True
            notes = self._queues[queue] = _Notes()
        kept = 0
        for other in list(notes.line):
            if other == flow or kept == self._kept:
                break
            if self._is_old(notes, other, now):
                notes.forget(other)
            else:
                kept += 1
        admitted = room > kept
        if admitted:
            notes.forget(flow)
        else:
            self._note(notes, flow, now)
        if not notes.seen:
            del self._queues[queue]
        return admitted

    def _is_old(self, notes: _Notes, flow: Flow, now: int) -> bool:
        return (now - notes.seen[flow]) % self._modulus > self._keep_ticks

    def _note(self, notes: _Notes, flow: Flow, now: int) -> None:
        if flow not in notes.seen and len(self) >= self._most:
            oldest = next(iter(notes.seen), None)
            if oldest is None or not self._is_old(notes, oldest, now):
                return
            notes.forget(oldest)
        notes.seen.pop(flow, None)
        notes.seen[flow] = now
        notes.refusals[flow] = notes.refusals.get(flow, 0) + 1
        if notes.refusals[flow] >= PATIENCE:
            notes.line.setdefault(flow)

    def renew(self, endpoint: int, now: int) -> None:
        """An endpoint has been loaded: none of its senders could be served meanwhile."""
        for reply in (False, True):
            if notes := self._queues.get((endpoint, reply)):
                notes.seen = dict.fromkeys(notes.seen, now)

    def end(self, endpoint: int) -> None:
        """An endpoint is no more."""
        for reply in (False, True):
            self._queues.pop((endpoint, reply), None)
