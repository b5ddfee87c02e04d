"""A whole design on a board: a system behind a request port, and the serial line before it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from amaranth import Cat, Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .bridge import RegisterBridge
from .config import LineConfig

__all__ = ["LIGHTS", "LineDesign"]

LIGHTS = 3
"""Lights of a design: two of its own, and that the serial line is sending."""


class LineDesign(wiring.Component):
    """A whole design but for clock and pins. A subclass has `make_system`.

    Members:

    - `rx` (in), `tx` (out): the serial line, frames as in `hdl/board/frames.py`.
    - `leds` (out, `LIGHTS`).

    Everything but the line is reset by a write to RESTART. Latency: that of the line. Throughput: that of the line.
    Reset: as after power-on, but for memories.
    """

    def __init__(self, config: LineConfig) -> None:
        self._config = config
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "leds": Out(LIGHTS)})

    @abstractmethod
    def make_system(self) -> tuple[Any, tuple[str, str]]:
        """The system, with members `request` and `response`, and the names of two of its outputs for the lights."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.bridge = bridge = RegisterBridge(
            bit_cycles=config.bit_cycles,
            identity=config.identity,
            clock_hz=config.clock_hz,
            gap_cycles=config.silent_cycles,
            label=config.label,
        )
        system, lights = self.make_system()
        m.submodules.system = ResetInserter(bridge.restart)(system)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            system.request.eq(bridge.request),
            bridge.response.eq(system.response),
            self.leds.eq(Cat(*(getattr(system, name) for name in lights), ~bridge.tx)),
        ]
        return m
