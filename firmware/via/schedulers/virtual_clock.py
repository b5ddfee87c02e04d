"""VirtualClock: a stamp is the time at which the message would end if its VI had a link of its rate alone."""

from __future__ import annotations

from ...virtual_clock import VirtualClock
from .base import BEST_EFFORT_RATE, Flow, Rate, Scheduler

__all__ = ["VirtualClockScheduler"]


class VirtualClockScheduler(Scheduler):
    """VirtualClock, as nagar-thesis-2001 5.3.3 writes it, by `lanikai.firmware.virtual_clock`.

    Algorithm: auxVC = max(now, auxVC) + Vtick, and auxVC is the stamp. Vtick is the interval of the VI's rate,
    whatever the message's bytes. Best effort's is infinite: the longest that the clock has.

    Memory: 8 bytes a VI, auxVC and Vtick.

    Wait of a QoS message: its stamp less the clock, and the longest message that may be in service. A VI that keeps to
    its rate has auxVC at most an interval ahead for each message that waits. A VI that has sent faster, while nobody
    else wanted the card, has auxVC far ahead. It then waits until the clock has caught up, even if it has kept to its
    rate since. So it is punished for bandwidth that was idle.

    Wait of a best-effort message: no bound. As long as VIs with a rate have messages, it waits. (Its stamp is a quarter
    of the clock's range ahead, so nobody could pass it for ever: 537 s on a clock of 32 bits and half a microsecond.)
    """

    name = "virtual_clock"
    timed = True
    memory_bytes = 8

    def __init__(self, *, vis: int, bits: int = 32, best_effort: Rate = BEST_EFFORT_RATE) -> None:
        super().__init__(vis=vis, bits=bits, best_effort=best_effort)
        self._clock = VirtualClock(channels=vis, bits=bits)

    def open(self, vi: int, rate: Rate | None) -> None:
        """As `Scheduler.open`. A VI that was closed begins anew."""
        fresh = vi not in self._flows
        super().open(vi, rate)
        if fresh:
            self._clock.forget(vi)
        self._clock.set_vtick(vi, self._clock.max_vtick_ticks if rate is None else rate.interval_ticks)

    def wait_bound_ticks(
        self, rate: Rate | None, *, ahead_bytes: int, longest_ticks: int, flows: int
    ) -> int | None:
        """An interval for each message of its own, then the longest message, for a VI that has kept to its rate."""
        if rate is None:
            return None
        return -(-ahead_bytes // rate.message_bytes) * rate.interval_ticks + longest_ticks

    def _stamp(self, vi: int, flow: Flow, count: int) -> tuple[int, int]:
        ahead = (self._clock.stamp(vi, self.now % (1 << self.bits)) - self.now) % (1 << self.bits)
        return self.now + ahead, self.now

    def _advance(self) -> None:
        self._clock.look(self.now % (1 << self.bits))
