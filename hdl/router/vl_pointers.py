"""A ring pointer for each virtual lane, all in one small memory."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["VlPointers"]


class VlPointers(wiring.Component):
    """Pointers 0 to `modulus - 1`, one a VL; one may step in a cycle.

    They are a memory and not registers: simulators index an array quickly, and FPGAs have small memories with a
    free-running read. A memory has no reset, so `touched` remembers which pointers have moved since reset; the others
    read as 0.

    Members (`vl_bits` wide VL numbers, pointers `(modulus - 1).bit_length()` bits wide):

    - `step` (in): the pointer of `step_vl` (in) moves to its successor, which wraps to 0 after `modulus - 1`.
    - `here`, `following` (out): the pointer of `step_vl` and its successor, in the same cycle.
    - `load` (in), `target` (in), only with the parameter `loads`: in a cycle with `step` the pointer goes to `target`.
    - `read_vl` (in), `read` (out), arrays of `reads`: the pointers of other VLs, in the same cycle.

    Latency: none to read, 1 cycle from `step`. Throughput: a step a cycle. Reset: every pointer is 0.
    """

    def __init__(self, *, vls: int, modulus: int, reads: int, loads: bool = False) -> None:
        self._vls, self._modulus, self._loads = vls, modulus, loads
        vl_bits = max(1, (vls - 1).bit_length())
        bits = max(1, (modulus - 1).bit_length())
        super().__init__(
            {
                "step": In(1),
                "step_vl": In(vl_bits),
                "here": Out(bits),
                "following": Out(bits),
                "read_vl": In(vl_bits).array(reads),
                "read": Out(bits).array(reads),
            }
            | ({"load": In(1), "target": In(bits)} if loads else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = self._modulus - 1
        m.d.comb += self.following.eq(Mux(self.here == last, 0, self.here + 1))
        goal: Value = self.following
        if self._loads:
            goal = Mux(self.load, self.target, self.following)
        if self._vls == 1:
            pointer = Signal.like(self.here)
            m.d.comb += [self.here.eq(pointer), *(value.eq(pointer) for value in self.read)]
            with m.If(self.step):
                m.d.sync += pointer.eq(goal)
            return m
        m.submodules.rows = rows = memory.Memory(shape=self.here.shape(), depth=self._vls, init=[])
        touched = Signal(self._vls)
        for vl, value in [(self.step_vl, self.here), *zip(self.read_vl, self.read, strict=True)]:
            port = rows.read_port(domain="comb")
            m.d.comb += [port.addr.eq(vl), value.eq(Mux(touched.bit_select(vl, 1), port.data, 0))]
        write = rows.write_port()
        m.d.comb += [write.addr.eq(self.step_vl), write.data.eq(goal), write.en.eq(self.step)]
        with m.If(self.step):
            m.d.sync += touched.eq(touched | (1 << self.step_vl))
        return m
