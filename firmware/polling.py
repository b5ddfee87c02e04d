"""Polling of doorbell words, computed and not stepped (nagar-thesis-2001 5.2.1).

A control program without a doorbell queue walks a pointer over the channels' words, one look every `period_cycles`.
Nothing happens on a look that finds nothing, so the walk need not be simulated. The pointer's place at any cycle, and
the time at which it will look at a channel, are arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PollPointer"]


@dataclass(frozen=True, kw_only=True)
class PollPointer:
    """A pointer that looks at channel 0 in cycle `origin_cycle`, at channel 1 `period_cycles` later, and so on around.

    - `channels`: number of words.
    - `period_cycles`: cycles from a look to the next, at least 1.

    A look sees a word that was rung in an earlier cycle or in the very cycle of the look. Raises ValueError for sizes
    below 1.
    """

    channels: int
    period_cycles: int
    origin_cycle: int = 0

    def __post_init__(self) -> None:
        for name in ("channels", "period_cycles"):
            if getattr(self, name) < 1:
                raise ValueError(f"PollPointer.{name} = {getattr(self, name)}: at least 1")

    def next_look(self, cycle: int) -> tuple[int, int]:
        """(cycle, channel) of the first look in `cycle` or later."""
        looks = max(0, -(-(cycle - self.origin_cycle) // self.period_cycles))
        return self.origin_cycle + looks * self.period_cycles, looks % self.channels

    def seen(self, channel: int, rung_cycle: int) -> int:
        """The cycle of the look that sees `channel`'s doorbell, rung in `rung_cycle`.

        It is up to `channels * period_cycles - 1` cycles later. Raises ValueError for a channel that is not there.
        """
        if not 0 <= channel < self.channels:
            raise ValueError(f"channel {channel}: 0 to {self.channels - 1}")
        first, at = self.next_look(rung_cycle)
        return first + (channel - at) % self.channels * self.period_cycles

    def moved(self, *, channel: int, cycle: int) -> PollPointer:
        """The pointer after the processor has been at other work: it looks at `channel` in `cycle` and goes on."""
        return PollPointer(
            channels=self.channels,
            period_cycles=self.period_cycles,
            origin_cycle=cycle - channel * self.period_cycles,
        )
