"""Stage 5 of the pipelined router: a register for what crosses, output VL buffers, and the link."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...link import LinkPacer, LinkSignature
from ..credits import Credits
from ..flit import BufferedFlitLayout
from .turns import above, in_turn
from .vl_buffer import PipelinedVlBuffer

__all__ = ["PipelinedTransmitStage"]


class PipelinedTransmitStage(wiring.Component):
    """Output of one port: what crosses waits in a register; from there it goes to the link or into its VL's buffer.

    The VL that the link sends next is chosen a cycle ahead, in turn. If no other VL has a flit it is the one that
    crosses in this cycle, or the same VL again.

    Parameters: `credit_flits`: depth of the receiver's buffer of each VL, flits.

    Members (vectors of VLs are `vls` wide):

    - `crossing` (in): one-hot or 0, the VL of a flit that may come in this cycle.
    - `write_valid`, `write_data` (in): it comes.
    - `near_full`, `nearer_full` (out): VLs whose buffer has at most one, or two, places left; registers. The flit in
      the register is not counted.
    - `tx` (out, `LinkSignature`): the link, behind `delay_cycles` registers. So are the credits that come back.
    - `sent` (out): a flit goes out in this cycle.
    - `non_empty`, `blocked` (out): VLs with a flit in the buffer or the register, and VLs without a credit.

    Latency: a flit that comes in cycle t is on the link in t + 1 + `delay_cycles`, if nothing is in its way.
    Throughput: the link's rate, at most a flit a cycle.
    """

    def __init__(self, config: RouterConfig, *, credit_flits: int) -> None:
        self._config, self._credit_flits = config, credit_flits
        vls = config.link.vls
        super().__init__(
            {
                "crossing": In(vls),
                "write_valid": In(1),
                "write_data": In(BufferedFlitLayout(config.link)),
                "near_full": Out(vls),
                "nearer_full": Out(vls),
                "tx": Out(LinkSignature(config.link)),
                "sent": Out(1),
                "non_empty": Out(vls),
                "blocked": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        vls, depth = link.vls, config.output_buffer_flits
        layout = BufferedFlitLayout(link)
        m.submodules.buffer = buffer = PipelinedVlBuffer(shape=layout, vls=vls, depth=depth, margins=(1, 2))
        m.submodules.credits = credits = Credits(vls=vls, depth=self._credit_flits, foretells=True)
        m.submodules.pacer = pacer = LinkPacer(link)

        # The flit that has crossed.
        here, here_vl, flit = Signal(), Signal(vls), Signal(layout)
        m.d.sync += [here.eq(self.write_valid), here_vl.eq(self.crossing), flit.eq(self.write_data)]
        waiting = Signal(vls)
        m.d.comb += waiting.eq(Mux(here, here_vl, 0))

        # `link_vl` was chosen in the cycle before; its flit may not have come.
        link_vl, number = Signal(vls), Signal(link.vl_bits)
        stored, straight = Signal(), Signal()
        m.d.comb += [
            number.eq(buffer.read_vl),
            stored.eq((link_vl & buffer.non_empty).any()),
            straight.eq((link_vl & waiting).any() & ~stored),
            self.sent.eq((stored | straight) & pacer.slot),
            pacer.sent.eq(self.sent),
            buffer.read_select.eq(link_vl),
            buffer.pop.eq(self.sent & stored),
            buffer.write_valid.eq(here & ~(straight & pacer.slot)),
            buffer.write_select.eq(here_vl),
            buffer.write_data.eq(flit),
            credits.spend.eq(self.sent),
            credits.spend_vl.eq(number),
            self.near_full.eq(buffer.near_full[0]),
            self.nearer_full.eq(buffer.near_full[1]),
            self.non_empty.eq(buffer.non_empty | waiting),
            self.blocked.eq(~credits.available),
        ]

        # The VL of the next cycle.
        candidates, chosen, later, follows = (Signal(vls) for _ in range(4))
        again = Signal()
        m.d.comb += candidates.eq(self.non_empty & credits.available & ~link_vl)
        m.d.comb += chosen.eq(in_turn(candidates, later))
        first: Value = chosen
        if config.control_vl is not None:
            first = Mux(candidates[config.control_vl], 1 << config.control_vl, chosen)
        m.d.comb += [
            again.eq(stored & (~buffer.last | (link_vl & waiting).any()) & (link_vl & credits.coming).any()),
            follows.eq(Mux(again, link_vl, self.crossing & credits.coming)),
        ]
        with m.If(pacer.slot | ~(stored | straight)):
            m.d.sync += link_vl.eq(Mux(candidates.any(), first, follows))
            with m.If(candidates.any()):
                m.d.sync += later.eq(above(chosen))

        near = Cat(self.sent, number, Mux(stored, buffer.read_data, flit))
        far = self._delayed(m, near, "flit")
        back = self._delayed(m, Cat(self.tx.credit_valid, self.tx.credit_vl), "credit")
        m.d.comb += [
            Cat(
                self.tx.valid,
                self.tx.payload.vl,
                self.tx.payload.head,
                self.tx.payload.tail,
                self.tx.payload.data,
            ).eq(far),
            Cat(credits.refund, credits.refund_vl).eq(back),
        ]
        return m

    def _delayed(self, m: Module, value: Cat, name: str) -> Signal:
        """`value` after `delay_cycles` registers."""
        last = Signal(len(value), name=f"{name}_wire")
        m.d.comb += last.eq(value)
        for stage in range(self._config.link.delay_cycles):
            register = Signal(len(value), name=f"{name}_wire_{stage + 1}")
            m.d.sync += register.eq(last)
            last = register
        return last
