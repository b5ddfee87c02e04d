"""A small design for the tests of build and run."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.sim.build.model import Design, block_design


class Counter(wiring.Component):
    """Counts enabled cycles; `carry` toggles at every multiple of 256; a wide adder and a wake-up bit beside it."""

    def __init__(self):
        super().__init__(
            {
                "enable": In(1),
                "value": Out(16),
                "carry": Out(1),
                "wide": In(100),
                "wide_plus_one": Out(100),
            }
        )

    def elaborate(self, platform):
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.value.eq(self.value + 1)
            with m.If(self.value[:8].all()):
                m.d.sync += self.carry.eq(~self.carry)
        m.d.comb += self.wide_plus_one.eq(self.wide + 1)
        return m


def counter_design(name: str = "counter") -> Design:
    """The counter alone."""
    return block_design(Counter(), name=name)
