"""A flag for which a step of firmware can wait without a coroutine of its own."""

from __future__ import annotations

from collections.abc import Callable

from .ports import Flag, ProcessorPort

__all__ = ["Notice", "PortEvent"]


class Notice:
    """A `lanikai.firmware.ports.Flag` that may also call a function, in the place of a coroutine that waits for it."""

    def __init__(self, port: ProcessorPort) -> None:
        self._port = port
        self._flag = port.flag()
        self._function: Callable[[], None] | None = None
        self._other: Flag | None = None

    def set(self) -> None:
        """Wake whoever waits; it stays set."""
        self._flag.set()
        other, self._other = self._other, None
        if other is not None:
            other.set()
        function, self._function = self._function, None
        if function is not None:
            self._port.call_soon(function)

    def clear(self) -> None:
        """Unset it."""
        self._flag.clear()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._flag.is_set()

    async def wait(self) -> None:
        """Return when it is set."""
        await self._flag.wait()

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` once when it is set; soon if it is. One function at a time."""
        if self._flag.is_set():
            self._port.call_soon(function)
        else:
            self._function = function

    def set_too(self, other: Flag) -> None:
        """Set another flag, too, when it is set; at once if it is. One other flag at a time."""
        if self._flag.is_set():
            other.set()
        else:
            self._other = other


class PortEvent:
    """The event of a processor's port, as something for which a step can wait."""

    def __init__(self, port: ProcessorPort) -> None:
        self._port = port

    def clear(self) -> None:
        """It is high for as long as its cause is there."""

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` once in the first cycle in which it is high; at once if it is."""
        self._port.call_on_event(function)
