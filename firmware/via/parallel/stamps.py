"""The stamps of messages that wait, of one direction of a card (nagar-thesis-2001 5.3.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from lanikai.hdl.config import NicConfig

from ..layout import ViRecord
from ..schedulers.base import Rate
from ..schedulers.registry import find_scheduler
from ..state import Vi

__all__ = ["Stamps"]


class Stamps:
    """A scheduler, the rates that it knows of a card's VIs, and the stamps of their messages that have not begun.

    `name`: the scheduler's. `received`: the messages come in, so a VI has the rate at which its other end sends. Raises
    ConfigError for an unknown scheduler.
    """

    def __init__(self, name: str, nic: NicConfig, *, received: bool = False) -> None:
        self._scheduler = find_scheduler(name)(vis=nic.channels, bits=nic.rtc_bits)
        self._received, self._half = received, 1 << (nic.rtc_bits - 1)
        self._waiting: dict[int, deque[int]] = {}
        self._rates: dict[int, tuple[int, int, int]] = {}
        self._ticks = 0

    def open(self, vi: Vi, record: ViRecord, ticks: int) -> None:
        """Note a VI's rate as its record has it now, at the clock's value `ticks`."""
        self._ticks = ticks
        vtick = record.receive_vtick if self._received else record.vtick
        rate = vi.generation, vtick, record.most_bytes
        old = self._rates.get(vi.channel)
        if old == rate:
            return
        if old is None or old[0] != vi.generation:
            self._scheduler.close(vi.channel)
            self._waiting.pop(vi.channel, None)
        self._rates[vi.channel] = rate
        asked = Rate(message_bytes=record.most_bytes, interval_ticks=vtick) if vtick else None
        self._scheduler.open(vi.channel, asked)

    def add(self, vi: Vi, count: int, ticks: int) -> int:
        """Stamp `count` more messages of a VI, 1 or more, at the clock's value `ticks`; the last one's stamp."""
        stamps = self._waiting.setdefault(vi.channel, deque())
        stamps.extend(self._scheduler.stamp(vi.channel, ticks) for _ in range(count))
        return stamps[-1]

    def take(self, vi: Vi, waiting: int) -> int | None:
        """The stamp of a VI's next message, which begins; None if it has none.

        `waiting`: its messages that have not begun, this one among them. Stamps beyond them are of flushed messages.
        """
        stamps = self._waiting.get(vi.channel)
        if not stamps:
            return None
        while len(stamps) > max(1, waiting):
            stamps.popleft()
            self._scheduler.served(vi.channel, self._ticks)
        self._scheduler.served(vi.channel, self._ticks)
        return stamps.popleft()

    def choose(self, ready: Sequence[Vi]) -> Vi:
        """The VI of these whose message is to begin next: the scheduler's choice, or that with the smallest stamp."""
        chosen = self._scheduler.choose(self._ticks)
        by_channel = {vi.channel: vi for vi in ready}
        return by_channel[chosen] if chosen in by_channel else min(ready, key=self._ahead)

    def _ahead(self, vi: Vi) -> int:
        """Ticks that the stamp of a VI's next message is ahead of the clock; below 0 if it is behind."""
        stamps = self._waiting.get(vi.channel)
        if not stamps:
            return 0
        return (stamps[0] - self._ticks + self._half) % (2 * self._half) - self._half
