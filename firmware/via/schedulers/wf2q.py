"""WF2Q+: of the messages that an ideal fluid server would have begun, the one that it would end first."""

from __future__ import annotations

from collections.abc import Iterator

from .base import BEST_EFFORT_RATE, Flow, Message, Rate, Scheduler

__all__ = ["Wf2qScheduler"]


class Wf2qScheduler(Scheduler):
    """WF2Q+ (Bennett and Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM ToN 1997).

    Algorithm: a message starts, in virtual time, when the one before it of its flow finishes, or now if its flow has
    none that waits. It finishes after the time that its bytes take at the flow's rate: its stamp. Of the messages whose
    start is not after the virtual time V the smallest stamp goes first. V goes with the clock, and is at least the
    smallest start of a message that waits, so the server never rests while something waits.

    Queues that order by the stamp alone, without `choose`, leave out the test of the start. Delays are bounded all the
    same. But a flow may then be served ahead of its share by as much as the queue holds.

    Memory: 16 bytes a VI: finish, start of its first message, interval, remainder; and 4 for V.

    Wait of a QoS message: the time of the bytes of its VI that wait, at the VI's rate, then the longest message. A
    message of the VI comes on top, as the one before may have been served early. It holds whatever the VI used before.
    Between any two times a flow that waits is served as at its rate, less a message of its own and one of another flow.

    Wait of a best-effort message: the same, at the rate of best effort together, and the bytes of all its VIs.
    """

    name = "wf2q"
    memory_bytes = 16

    def __init__(self, *, vis: int, bits: int = 32, best_effort: Rate = BEST_EFFORT_RATE) -> None:
        super().__init__(vis=vis, bits=bits, best_effort=best_effort)
        self.virtual = 0
        """V, in ticks, without wrap."""
        self._seen = 0

    def wait_bound_ticks(
        self, rate: Rate | None, *, ahead_bytes: int, longest_ticks: int, flows: int
    ) -> int | None:
        """The time of its flow's bytes, and of a message of its rate, then the longest one; 2 ticks of rounding."""
        own = rate or self._best_effort.rate
        return own.ticks(ahead_bytes + own.message_bytes) + longest_ticks + 2

    def _stamp(self, vi: int, flow: Flow, count: int) -> tuple[int, int]:
        start = flow.finish if flow.waiting else max(flow.finish, self.virtual)
        start = min(start, self.virtual + self.most_ahead)
        flow.finish = min(start + flow.charge(count), self.virtual + self.most_ahead)
        return flow.finish, start

    def _correct(self, flow: Flow, more: int) -> None:
        flow.finish += flow.charge(more)

    def _advance(self) -> None:
        self.virtual += self.now - self._seen
        self._seen = self.now
        first = min((one.start for one in super()._eligible()), default=self.virtual)
        self.virtual = max(self.virtual, first)

    def _eligible(self) -> Iterator[Message]:
        return (one for one in super()._eligible() if one.start <= self.virtual)
