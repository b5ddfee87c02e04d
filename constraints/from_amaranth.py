"""Boards as amaranth-boards has them: pins, device and clock of one of its platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

from .board import Board, Pin

__all__ = ["AmaranthBoard", "Place"]

Place = tuple[str, int] | tuple[str, int, str]
"""A resource of a platform and its number, with a part of it; or a connector, its number and a pin."""


class AmaranthBoard(Board):
    """A board of the package amaranth-boards, which is imported when the first pin is asked for.

    A subclass names the `platform` ("module:class") and the places of pins on it. A place is a resource, its number
    and, if it has parts, the part. Or it is a connector, its number and a pin of it, with `header_attributes`. LEDs are
    the first pins of the resources `led_resource`. Raises ModuleNotFoundError without amaranth-boards.
    """

    platform: ClassVar[str]
    reset_button: ClassVar[Place]
    data_button: ClassVar[Place]
    uart_pins: ClassVar[tuple[Place, Place]] = (("uart", 0, "rx"), ("uart", 0, "tx"))
    header_attributes: ClassVar[Mapping[str, str]] = {}
    led_resource: ClassVar[str] = "led"

    @cached_property
    def _found(self) -> Any:
        module, _, name = self.platform.partition(":")
        return getattr(import_module(f"amaranth_boards.{module}"), name)()

    def _pin(self, name: str, number: int, part: str = "") -> Pin:
        """The pin at a place: the first one of a resource or of a part of it, or a pin of a connector."""
        found = self._found
        if (name, number) in found.connectors:
            site = found._conn_pins[f"{name}_{number}:{part}"]
            return Pin(site=site, attributes=dict(self.header_attributes))
        resource = found.lookup(name, number)
        pins, attributes = resource.ios[0], dict(resource.attrs)
        if hasattr(pins, "ios"):
            chosen = next(one for one in resource.ios if one.name == part) if part else pins
            attributes |= chosen.attrs
            pins = chosen.ios[0]
        pins = getattr(pins, "p", pins)  # the tools find the other pin of a pair by themselves
        return Pin(
            site=pins.map_names(found._conn_pins, resource)[0],
            # A platform has true attributes, and some that speak to Amaranth alone (GLOBAL).
            attributes={key: str(value) for key, value in attributes.items() if key != "GLOBAL"},
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
        """The button, switch or pin `data_button`."""
        return self._pin(*self.data_button)

    @property
    def uart_rx(self) -> Pin:
        """The first of `uart_pins`."""
        return self._pin(*self.uart_pins[0])

    @property
    def uart_tx(self) -> Pin:
        """The second of `uart_pins`."""
        return self._pin(*self.uart_pins[1])

    @property
    def leds(self) -> Sequence[Pin]:
        """All of the platform's resources `led_resource`, by number."""
        wanted = self.led_resource
        numbers = sorted(number for name, number in self._found.resources if name == wanted)
        return [self._pin(wanted, number) for number in numbers]
