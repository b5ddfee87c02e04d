"""A block with a register on every port, for the tool that measures how fast the block can run."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value
from amaranth.lib import wiring

__all__ = ["Registered"]


class Registered(wiring.Component):
    """`component` (submodule `name`) with a register behind each input and before each output.

    Members: those of the component. Latency: one cycle each way, so handshakes do not work through it. It is made to be
    synthesized, so that every path of the component lies between registers. Throughput: the component's. Reset: all
    registers 0.
    """

    def __init__(self, component: wiring.Component, *, name: str) -> None:
        self._component, self._name = component, name
        super().__init__(component.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules[self._name] = self._component
        mine = self.signature.flatten(self)
        inner = self._component.signature.flatten(self._component)
        for (path, member, outside), (_, _, inside) in zip(mine, inner, strict=True):
            source: Any
            source, target = (outside, inside) if member.flow is wiring.In else (inside, outside)
            register = Signal(len(Value.cast(source)), name="__".join(map(str, path)) + "_register")
            m.d.sync += register.eq(Value.cast(source))
            m.d.comb += Value.cast(target).eq(register)
        return m
