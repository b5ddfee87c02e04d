"""A design on a board: its clock, its reset and its pins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out
from lanikai.hdl.board.pll import Ecp5Pll

if TYPE_CHECKING:
    from lanikai.constraints.board import Board, Pin

__all__ = ["DesignTop"]


class DesignTop(wiring.Component):
    """`component` (members `rx`, `tx`, `leds`) on the pins of `board`, at `clock_hz`.

    A clock slower than the board's comes from a PLL. The board's button resets all registers; until the PLL is steady
    they are held in reset. Lights that the board lacks are left out. Pins: `clock`, `reset`, `rx`, `tx`, `led_0` and so
    on. Latency, throughput: those of the component; two cycles from the button.
    """

    def __init__(self, component: Any, *, board: Board, clock_hz: int) -> None:
        self._component, self._board, self._clock_hz = component, board, clock_hz
        self._lights = min(len(component.leds), len(board.leds))
        lights = {f"led_{i}": Out(1) for i in range(self._lights)}
        super().__init__({"clock": In(1), "reset": In(1), "rx": In(1), "tx": Out(1), **lights})

    @property
    def pins(self) -> dict[str, Pin]:
        """Each port's pin."""
        board = self._board
        found = {"clock": board.clock, "reset": board.reset, "rx": board.uart_rx, "tx": board.uart_tx}
        return found | {f"led_{i}": board.leds[i] for i in range(self._lights)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        board = self._board
        m.domains.sync = ClockDomain()
        m.domains.pins = ClockDomain(reset_less=True)
        clock, steady = self.clock, Signal(init=1)
        if self._clock_hz != board.clock_hz:
            m.submodules.pll = pll = Ecp5Pll(from_hz=board.clock_hz, to_hz=self._clock_hz)
            m.d.comb += [pll.clock_in.eq(self.clock), steady.eq(pll.locked)]
            clock = pll.clock_out
        m.d.comb += [ClockSignal("sync").eq(clock), ClockSignal("pins").eq(clock)]
        pressed = ~self.reset if board.reset.inverted else self.reset
        m.submodules.reset_pin = FFSynchronizer(pressed | ~steady, ResetSignal("sync"), o_domain="pins")
        m.submodules.design = design = self._component
        m.d.comb += [design.rx.eq(self.rx), self.tx.eq(design.tx)]
        for i in range(self._lights):
            light = design.leds[i]
            m.d.comb += getattr(self, f"led_{i}").eq(~light if board.leds[i].inverted else light)
        return m
