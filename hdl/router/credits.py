"""A transmitter's credits of each virtual lane."""

from __future__ import annotations

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError
from ..working import works_when
from .vl_pointers import VlPointers

__all__ = ["Credits"]


class Credits(wiring.Component):
    """Counts the flits that may be sent on each VL into a receiver's buffer of `depth` flits a VL.

    Members:

    - `available` (out, `vls`): bit v is set if VL v has a credit; a register.
    - `spend` (in): one credit of VL `spend_vl` (in) is used in this cycle; only if it is available.
    - `refund` (in): one credit of VL `refund_vl` (in) comes back; it can be spent from the next cycle on.
    - `stop` (in), only with the parameter `restarts`: from the next cycle on no VL has a credit, and none is counted.
      From the cycle after the one in which `stop` falls all VLs have `depth` credits again.
    - `excess` (out), only with the parameter `guarded`: a credit comes back to a VL that has them all.
    - `home` (out, `vls`), only with the parameter `tells_home`: VLs that have all their credits; a register. Not with
      `restarts`.

    Flits sent and credits returned are two ring pointers a VL in memories. They meet when all credits are spent or all
    are home, and the flag tells which. Reset: every VL has `depth` credits. Raises ConfigError for a depth below 2,
    where the pointers could not tell.

    Latency: a credit that comes back can be spent in the next cycle. Throughput: one spent and one returned a cycle.
    """

    def __init__(
        self,
        *,
        vls: int,
        depth: int,
        restarts: bool = False,
        guarded: bool = False,
        tells_home: bool = False,
    ) -> None:
        if depth < 2:
            raise ConfigError(f"Credits: depth = {depth}: at least 2")
        self._vls, self._depth, self._restarts = vls, depth, restarts
        self._guarded, self._tells_home = guarded, tells_home
        vl_bits = max(1, (vls - 1).bit_length())
        super().__init__(
            {
                "available": Out(vls, init=(1 << vls) - 1),
                "spend": In(1),
                "spend_vl": In(vl_bits),
                "refund": In(1),
                "refund_vl": In(vl_bits),
            }
            | ({"stop": In(1)} if restarts else {})
            | ({"excess": Out(1)} if guarded else {})
            | ({"home": Out(vls, init=(1 << vls) - 1)} if tells_home else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spent = VlPointers(vls=self._vls, modulus=self._depth, reads=int(self._guarded or self._tells_home))
        refunded = VlPointers(vls=self._vls, modulus=self._depth, reads=1)
        resets = ResetInserter(self.stop) if self._restarts else lambda pointers: pointers
        m.submodules.spent, m.submodules.refunded = resets(spent), resets(refunded)
        if not self._restarts:
            works_when(m, self.spend, self.refund)
        m.d.comb += [
            spent.step.eq(self.spend),
            spent.step_vl.eq(self.spend_vl),
            refunded.step.eq(self.refund),
            refunded.step_vl.eq(self.refund_vl),
            refunded.read_vl[0].eq(self.spend_vl),
        ]
        if self._guarded:
            # The pointers meet, and there are credits: all are home.
            home = (spent.read[0] == refunded.here) & self.available.bit_select(self.refund_vl, 1)
            m.d.comb += [spent.read_vl[0].eq(self.refund_vl), self.excess.eq(self.refund & home)]
        if self._tells_home:
            # After a credit has come back some are there: if the pointers meet then, all are.
            m.d.comb += spent.read_vl[0].eq(self.refund_vl)
            full = Signal(self._vls)
            with m.If(self.refund & (refunded.following == spent.read[0])):
                m.d.comb += full.eq(1 << self.refund_vl)
            gone = Signal(self._vls)
            with m.If(self.spend):
                m.d.comb += gone.eq(1 << self.spend_vl)
            m.d.sync += self.home.eq((self.home | full) & ~gone)
        last, back = Signal(self._vls), Signal(self._vls)
        with m.If(self.spend & (spent.following == refunded.read[0])):
            m.d.comb += last.eq(1 << self.spend_vl)
        with m.If(self.refund):
            m.d.comb += back.eq(1 << self.refund_vl)
        left = (self.available & ~last) | back
        if self._restarts:
            stopped = Signal()
            m.d.sync += stopped.eq(self.stop)
            left = Mux(self.stop, 0, left | stopped.replicate(self._vls))
        m.d.sync += self.available.eq(left)
        return m
