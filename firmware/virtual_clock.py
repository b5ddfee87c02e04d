"""VirtualClock stamps, as the card's program reckons them (nagar-thesis-2001 5.3.3)."""

from __future__ import annotations

__all__ = ["VirtualClock", "before"]


def before(a: int, b: int, bits: int) -> bool:
    """Whether stamp `a` is before `b`, on a clock of `bits` bits: right within half its range."""
    return 0 < (b - a) % (1 << bits) < 1 << (bits - 1)


class VirtualClock:
    """auxVC and Vtick of `channels` channels, on a clock of `bits` bits that wraps.

    A packet's stamp is auxVC = max(now, auxVC) + Vtick. It is kept at most a quarter of the clock's range (less one)
    ahead of the clock, so that stamps compare right. `lanikai.hdl.nic.queues.stamper.Stamper` is the same in RTL.

    `set_vtick` sets a channel's Vtick, in ticks: the time between packets of its size at its rate. Best effort's
    infinite Vtick is `max_vtick_ticks`, the longest. Raises ValueError for a clock of less than 3 bits, a channel or a
    Vtick out of range.
    """

    def __init__(self, *, channels: int, bits: int = 32) -> None:
        if bits < 3:
            raise ValueError(f"bits = {bits}: at least 3")
        self.bits = bits
        self.max_vtick_ticks = (1 << (bits - 2)) - 1
        self._aux = [0] * channels
        self._vtick = [0] * channels
        # The clock without its wrap.
        self._now = 0

    def set_vtick(self, channel: int, ticks: int) -> None:
        """Set a channel's Vtick, from its next packet on."""
        self._check(channel)
        if not 0 <= ticks <= self.max_vtick_ticks:
            raise ValueError(f"ticks = {ticks}: 0 to {self.max_vtick_ticks}")
        self._vtick[channel] = ticks

    def forget(self, channel: int) -> None:
        """Begin a channel's auxVC anew: its next packet pays nothing for those before."""
        self._check(channel)
        self._aux[channel] = self._now

    def look(self, now_ticks: int) -> None:
        """Note the clock's value, as `stamp` does.

        Where no stamp is asked for, a look once in the clock's range keeps the clock exact.
        """
        self._now += (now_ticks - self._now) % (1 << self.bits)

    def stamp(self, channel: int, now_ticks: int) -> int:
        """The stamp of the channel's next packet, at the clock value `now_ticks`; `bits` bits."""
        self._check(channel)
        self.look(now_ticks)
        ahead = max(self._now, self._aux[channel]) + self._vtick[channel]
        self._aux[channel] = min(ahead, self._now + self.max_vtick_ticks)
        return self._aux[channel] % (1 << self.bits)

    def _check(self, channel: int) -> None:
        if not 0 <= channel < len(self._aux):
            raise ValueError(f"channel = {channel}: 0 to {len(self._aux) - 1}")
