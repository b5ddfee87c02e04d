"""Counts of each virtual lane in flip-flops, shown as flags: for short paths."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError

__all__ = ["VlCounters", "one_hot"]


def one_hot(enable: Value, vl: Value, vls: int) -> Value:
    """The bit of `vl` if `enable` is set, else 0: a comparison a VL."""
    return Cat(enable & (vl == v) for v in range(vls))


class VlCounters(wiring.Component):
    """Counts 0 to `most` things on each of `vls` VLs.

    Parameters:

    - `filled`: after reset there are `most` on every VL, else none.
    - `full`: how many make a VL full, 1 to `most`; None for `most`.

    Members (a bit a VL):

    - `add`, `take` (in): one more, and one less, on the VL. Any number of VLs in a cycle, and both at once.
    - `fill` (in), only with `filled`: from the next cycle on there are `most` on every VL.
    - `any` (out): VLs on which there are any; a register.
    - `coming` (out): `any` of the next cycle.
    - `full` (out): VLs on which there are at least as many as the parameter says; a register.

    The user must not add beyond `most`, nor take where there are none. What `Credits` and `VlCount` keep in pointers
    stands in a counter a VL here. So a flag follows from a count, and from no memory that must be read first.

    Latency: 1 cycle from `add` and `take` to the flags. Throughput: one more and one less a VL and cycle. Raises
    ConfigError if `most` is less than 1.
    """

    def __init__(self, *, vls: int, most: int, filled: bool = False, full: int | None = None) -> None:
        if most < 1:
            raise ConfigError(f"VlCounters: most = {most}: at least 1")
        if full is not None and not 1 <= full <= most:
            raise ConfigError(f"VlCounters: full = {full}: 1 to {most}")
        self._vls, self._most, self._filled = vls, most, filled
        self._full = most if full is None else full
        everyone = (1 << vls) - 1
        super().__init__(
            {
                "add": In(vls),
                "take": In(vls),
                "any": Out(vls, init=everyone if filled else 0),
                "coming": Out(vls),
                "full": Out(vls, init=everyone if filled else 0),
            }
            | ({"fill": In(1)} if filled else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        most, full = self._most, self._full
        for vl in range(self._vls):
            count = Signal(range(most + 1), init=most if self._filled else 0, name=f"count_{vl}")
            up, down = self.add[vl] & ~self.take[vl], self.take[vl] & ~self.add[vl]
            m.d.sync += [
                count.eq(Mux(up, count + 1, Mux(down, count - 1, count))),
                self.full[vl].eq((up & (count == full - 1)) | (self.full[vl] & ~(down & (count == full)))),
            ]
            if self._filled:
                with m.If(self.fill):
                    m.d.sync += [count.eq(most), self.full[vl].eq(1)]
            left = up | (self.any[vl] & ~(down & (count == 1)))
            m.d.comb += self.coming[vl].eq(left | self.fill if self._filled else left)
        m.d.sync += self.any.eq(self.coming)
        return m
