"""Stage 5 of the pipelined router: the link, and the credits of its receiver."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...link import FlitLayout, LinkSignature
from .credits import CreditCounters

__all__ = ["PipelinedTransmitStage"]


class PipelinedTransmitStage(wiring.Component):
    """Output of one port: what has crossed goes to the link at once. There is no buffer: inputs wait for credits.

    Parameters: `credit_flits`: depth of the receiver's buffer of each VL, flits.

    Members (vectors of VLs are `vls` wide):

    - `slot` (out): an input may be granted the output in this cycle. `granted` (in): one is.
    - `valid`, `flit` (in, `FlitLayout`): the flit of the grant, a cycle later.
    - `some`, `plenty` (out): VLs with credits (`CreditCounters`).
    - `released` (out): one-hot or 0, the VL of a tail that goes in this cycle.
    - `tx` (out, `LinkSignature`): the link, behind `delay_cycles` registers. So are the credits that come back.
    - `sent` (out): one-hot or 0, the VL of a flit that goes in this cycle.

    Latency: a flit is on the link `delay_cycles` after `valid`. Throughput: the link's rate, at most a flit a cycle.
    """

    def __init__(self, config: RouterConfig, *, credit_flits: int) -> None:
        self._config, self._credit_flits = config, credit_flits
        vls = config.link.vls
        super().__init__(
            {
                "slot": Out(1),
                "granted": In(1),
                "valid": In(1),
                "flit": In(FlitLayout(config.link)),
                "some": Out(vls),
                "plenty": Out(vls),
                "released": Out(vls),
                "tx": Out(LinkSignature(config.link)),
                "sent": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self._config.link
        m.submodules.credits = credits = CreditCounters(vls=link.vls, depth=self._credit_flits)
        m.d.comb += [
            *(self.sent[v].eq(self.valid & (self.flit.vl == v)) for v in range(link.vls)),
            self.released.eq(Mux(self.flit.tail, self.sent, 0)),
            credits.spend.eq(self.sent),
            self.some.eq(credits.some),
            self.plenty.eq(credits.plenty),
        ]
        self._pace(m)
        far = self._delayed(m, Cat(self.valid, self.flit), "flit")
        back = self._delayed(m, Cat(self.tx.credit_valid, self.tx.credit_vl), "credit")
        m.d.comb += [
            Cat(self.tx.valid, self.tx.payload).eq(far),
            *(credits.refund[v].eq(back[0] & (back[1:] == v)) for v in range(link.vls)),
        ]
        return m

    def _pace(self, m: Module) -> None:
        """Holds the grants to the link's rate, as `LinkPacer` does, with `slot` in a register."""
        num, den = self._config.link.rate_num, self._config.link.rate_den
        if num == den:
            m.d.comb += self.slot.eq(1)
            return
        # `debt` is the part of the last flit, in units of 1/den, that the wire has yet to carry.
        debt, slot = Signal(range(den + 1)), Signal(init=1)
        idle, sent = Signal(range(den + 1)), Signal(range(den + 1))
        m.d.comb += [
            self.slot.eq(slot),
            idle.eq(Mux(debt > num, debt - num, 0)),
            sent.eq(debt + den - num),
        ]
        m.d.sync += [
            debt.eq(Mux(self.granted, sent, idle)),
            slot.eq(Mux(self.granted, sent < num, idle < num)),
        ]

    def _delayed(self, m: Module, value: Cat, name: str) -> Signal:
        """`value` after `delay_cycles` registers."""
        last = Signal(len(value), name=f"{name}_wire")
        m.d.comb += last.eq(value)
        for stage in range(self._config.link.delay_cycles):
            register = Signal(len(value), name=f"{name}_wire_{stage + 1}")
            m.d.sync += register.eq(last)
            last = register
        return last
