"""A count for each virtual lane, of which only one thing is shown: whether there are any."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError
from ...router.vl_pointers import VlPointers

__all__ = ["VlCount"]


class VlCount(wiring.Component):
    """Counts 0 to `most` things on each of `vls` VLs.

    Members:

    - `add` (in), `add_vl` (in): one more on that VL.
    - `take` (in), `take_vl` (in): one less on that VL.
    - `any` (out, `vls`): VLs on which there are any; a register.

    The user must not add beyond `most`, nor take where there are none. Two pointers a VL go round in memories, as in
    `VlBuffer`; the flag tells an empty ring from a full one.

    Latency: 1 cycle from `add` and `take` to `any`. Throughput: one more and one less a cycle. Reset: none on any
    VL. Raises ConfigError if `most` is less than 2, where the pointers could not tell.
    """

    def __init__(self, *, vls: int, most: int) -> None:
        if most < 2:
            raise ConfigError(f"VlCount: most = {most}: at least 2")
        self._vls, self._most = vls, most
        vl_bits = max(1, (vls - 1).bit_length())
        super().__init__(
            {
                "add": In(1),
                "add_vl": In(vl_bits),
                "take": In(1),
                "take_vl": In(vl_bits),
                "any": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.added = added = VlPointers(vls=self._vls, modulus=self._most, reads=1)
        m.submodules.taken = taken = VlPointers(vls=self._vls, modulus=self._most, reads=0)
        m.d.comb += [
            added.step.eq(self.add),
            added.step_vl.eq(self.add_vl),
            added.read_vl[0].eq(self.take_vl),
            taken.step.eq(self.take),
            taken.step_vl.eq(self.take_vl),
        ]
        more, none = Signal(self._vls), Signal(self._vls)
        with m.If(self.add):
            m.d.comb += more.eq(1 << self.add_vl)
        with m.If(self.take & (taken.following == added.read[0])):
            m.d.comb += none.eq(1 << self.take_vl)
        m.d.sync += self.any.eq((self.any & ~none) | more)
        return m
