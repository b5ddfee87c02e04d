"""A block on a board: all of its ports behind four pins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

if TYPE_CHECKING:
    from lanikai.constraints.board import Board, Pin

__all__ = ["BoardTop"]


class BoardTop(wiring.Component):
    """`component` (submodule `name`) between two chains of registers, on the pins of `board`.

    A block has hundreds of ports, a board has few free pins. So inputs come from a shift register that the pin `data`
    fills, a bit a cycle, and outputs are folded into another one, whose last bit is the pin `led`. No logic of the
    block can be left out, and every path of it lies between registers. What the LED shows is of no use by itself.

    Pins: `clock`; `reset` and `data` (asynchronous, two flip-flops each); `led`. Latency from `data` to the block: two
    cycles and the port's place in the chain. Reset: all registers 0.
    """

    def __init__(self, component: wiring.Component, *, name: str, board: Board) -> None:
        self._component, self._name, self._board = component, name, board
        super().__init__({"clock": In(1), "reset": In(1), "data": In(1), "led": Out(1)})

    @property
    def pins(self) -> dict[str, Pin]:
        """Each port's pin."""
        board = self._board
        return {"clock": board.clock, "reset": board.reset, "data": board.data, "led": board.leds[0]}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.pins = ClockDomain(reset_less=True)
        m.d.comb += [ClockSignal("sync").eq(self.clock), ClockSignal("pins").eq(self.clock)]
        board, data = self._board, Signal()
        m.submodules.reset_pin = FFSynchronizer(
            ~self.reset if board.reset.inverted else self.reset, ResetSignal("sync"), o_domain="pins"
        )
        m.submodules.data_pin = FFSynchronizer(
            ~self.data if board.data.inverted else self.data, data, o_domain="pins"
        )
        m.submodules[self._name] = self._component
        inputs: list[Any] = []
        outputs: list[Any] = []
        for _, member, value in self._component.signature.flatten(self._component):
            (inputs if member.flow is wiring.In else outputs).append(Value.cast(value))
        shifted = Signal(max(1, len(Cat(inputs))))
        m.d.sync += shifted.eq(Cat(data, shifted))
        m.d.comb += Cat(inputs).eq(shifted)
        folded = Signal(max(1, len(Cat(outputs))))
        m.d.sync += folded.eq(Cat(outputs) ^ (folded << 1))
        m.d.comb += self.led.eq(~folded[-1] if board.leds[0].inverted else folded[-1])
        return m
