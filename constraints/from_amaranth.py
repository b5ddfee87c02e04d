"""Boards as amaranth-boards has them: pins, device and clock of one of its platforms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

from .board import Board, Pin

__all__ = ["AmaranthBoard"]


class AmaranthBoard(Board):
    """A board of the package amaranth-boards, which is imported when the first pin is asked for.

    A subclass names the `platform` ("module:class") and two of its buttons, (resource, number) each: `reset_button` and
    `data_button`. Its LEDs are the platform's resources `led`. Raises ModuleNotFoundError without amaranth-boards.
    """

    platform: ClassVar[str]
    reset_button: ClassVar[tuple[str, int]]
    data_button: ClassVar[tuple[str, int]]

    @cached_property
    def _found(self) -> Any:
        module, _, name = self.platform.partition(":")
        return getattr(import_module(f"amaranth_boards.{module}"), name)()

    def _pin(self, name: str, number: int) -> Pin:
        """The first pin of a resource of the platform."""
        resource = self._found.lookup(name, number)
        pins = resource.ios[0]
        return Pin(
            site=pins.map_names(self._found._conn_pins, resource)[0],
            attributes={key: str(value) for key, value in resource.attrs.items()},
            inverted=pins.invert,
        )

    @property
    def device(self) -> str:
        """The platform's."""
        return str(self._found.device)

    @property
    def package(self) -> str:
        """The platform's."""
        return str(self._found.package)

    @property
    def speed(self) -> str:
        """The platform's."""
        return str(self._found.speed)

    @property
    def clock_hz(self) -> int:
        """The frequency of the platform's default clock."""
        return int(self._found.default_clk_frequency)

    @property
    def clock(self) -> Pin:
        """The platform's default clock."""
        return self._pin(self._found.default_clk, 0)

    @property
    def reset(self) -> Pin:
        """The button `reset_button`."""
        return self._pin(*self.reset_button)

    @property
    def data(self) -> Pin:
        """The button `data_button`."""
        return self._pin(*self.data_button)

    @property
    def leds(self) -> Sequence[Pin]:
        """All of the platform's resources `led`, by number."""
        numbers = sorted(number for name, number in self._found.resources if name == "led")
        return [self._pin("led", number) for number in numbers]
