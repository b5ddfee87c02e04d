"""Deadlines of video frames: the missing probability and the missing time (yum-2006 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanikai.hdl.config import ConfigError

__all__ = ["Deadlines", "DeadlinesMissed", "total"]


@dataclass(frozen=True, kw_only=True)
class DeadlinesMissed:
    """The result of one or more streams.

    - `frames`: frames delivered.
    - `missed`: those that came after their deadline.
    - `late_cycles`: sum of what those were late.
    """

    frames: int = 0
    missed: int = 0
    late_cycles: float = 0

    @property
    def probability(self) -> float | None:
        """DMP: frames that missed, of those delivered. None without frames."""
        return self.missed / self.frames if self.frames else None

    @property
    def mean_late_cycles(self) -> float | None:
        """DMT: mean time that a frame that missed was late, cycles. None if none missed."""
        return self.late_cycles / self.missed if self.missed else None


@dataclass(kw_only=True)
class Deadlines:
    """The deadlines of one stream, whose frames arrive in order.

    A deadline is an interval after the one before. If the frame before has missed its deadline, it is an interval after
    that frame's arrival. The document does not say when the first deadline is. Here the first frame starts the clock:
    it has none, and the second one's is an interval after its arrival. A receiver that shows the first frame as it
    comes needs just this. `arrive` may be told frames of a warm-up, before `measure_from`: they move the deadlines and
    do not count.

    - `interval_cycles`: time of a frame.
    - `measure_from`: frames that arrive from this cycle on count.
    """

    interval_cycles: float
    measure_from: float = 0
    deadline: float | None = field(default=None, init=False)
    frames: int = field(default=0, init=False)
    missed: int = field(default=0, init=False)
    late_cycles: float = field(default=0, init=False)
    _last: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        if not self.interval_cycles > 0:
            raise ConfigError(f"Deadlines: interval_cycles = {self.interval_cycles}: above 0")

    def arrive(self, cycle: float) -> float:
        """The last packet of the next frame has come in this cycle. Returns what it is late, 0 for a frame in time.

        Raises ValueError if it comes before the frame before it.
        """
        if cycle < self._last:
            raise ValueError(
                f"a frame arrives in cycle {cycle}, before the one before it (cycle {self._last})"
            )
        self._last = cycle
        late = 0 if self.deadline is None else max(0, cycle - self.deadline)
        if late or self.deadline is None:
            self.deadline = cycle
        self.deadline += self.interval_cycles
        if cycle >= self.measure_from:
            self.frames += 1
            self.missed += late > 0
            self.late_cycles += late
        return late

    @property
    def result(self) -> DeadlinesMissed:
        """The counts until now."""
        return DeadlinesMissed(frames=self.frames, missed=self.missed, late_cycles=self.late_cycles)


def total(results: list[DeadlinesMissed]) -> DeadlinesMissed:
    """The result of all streams together."""
    return DeadlinesMissed(
        frames=sum(one.frames for one in results),
        missed=sum(one.missed for one in results),
        late_cycles=sum(one.late_cycles for one in results),
    )
