"""Waiting for a condition with a bound in time: a bell that whoever changes something rings."""

from __future__ import annotations

from collections.abc import Callable

from .bus import HostBus

__all__ = ["Bell"]


class Bell:
    """Wakes all who wait at it; each looks for itself whether it has what it waits for."""

    def __init__(self, bus: HostBus) -> None:
        self._bus = bus
        self._flag = bus.flag()

    def ring(self) -> None:
        """Have all who wait look."""
        self._flag.set()

    async def until(self, look: Callable[[], bool], deadline: int | None = None) -> bool:
        """Wait until `look` gives True. Returns False if cycle `deadline` has come first; None: there is no bound."""
        alarm = False
        while not look():
            if deadline is not None and self._bus.cycle >= deadline:
                return False
            self._flag.clear()
            if deadline is not None and not alarm:
                alarm = True
                self._bus.spawn(self._alarm(deadline - self._bus.cycle), f"bell[{self._bus.node}].alarm")
            await self._flag.wait()
        return True

    async def _alarm(self, cycles: int) -> None:
        await self._bus.sleep(cycles)
        self._flag.set()
