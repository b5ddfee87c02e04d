"""Stage 5: output VL buffers, and the VLs multiplexed onto the link (yum-2006 3.1)."""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..link import LinkPacer, LinkSignature
from ..link_guard import GUARD_BITS
from ..link_restart import TransmitRestart
from ..working import works_when
from .credits import Credits
from .flit import BufferedFlitLayout
from .routing import needs_loads, routing_class
from .scheduler import table_members, vl_scheduler
from .vl_buffer import VlBuffer

__all__ = ["TransmitStage"]


class TransmitStage(wiring.Component):
    """Output of one port: VL buffers, credits of the receiver, pacing, and the registers of a long wire.

    A VL competes for the link, flit by flit, if its buffer has a flit and the receiver has room. The arbiter is
    `RouterConfig.vl_arbiter`. `LinkPacer` keeps the link's rate.

    Parameters: `credit_flits`: depth of the receiver's buffer of each VL, flits.

    Members (vectors of VLs are `vls` wide):

    - `write_valid`, `write_vl`, `write_data` (in), `full` (out): write side of the buffer (`VlBuffer`).
    - `tx` (out, `LinkSignature`): the link. Its flit comes out of the buffer combinationally, and then through
      `delay_cycles` registers. So do the credits that come back.
    - `sent` (out): a flit leaves the buffer in this cycle.
    - `sent_vl` (out, `vl_bits`): its VL.
    - `non_empty`, `blocked` (out): VLs with a flit in the buffer, and VLs without a credit.
    - `table` (in, `TableSignature`), only if the arbiter has tables: those tables.
    - `returned` (out), only where routing goes by loads (`needs_loads`): a credit has come back.
    - `empty` (out, `vls`), only with adaptive routing on empty VLs: VLs without a flit from here to the end of the
      receiver's buffer, as far as their credits tell.
    - `restarting` (out), only with `LinkConfig.restart`: the link is down, or goes down in this cycle.
    - `ended` (out), only with `LinkConfig.restart`: the last flit of a packet that was cut was thrown away,
      `delay_cycles` ago. The packet's VL is `tx.payload.vl`.
    - `cutting` (out), only with `LinkConfig.restart`: VLs of which a packet was cut in the cycle before.
    - `begun_anew` (out, `GUARD_BITS`), only with `LinkConfig.guard_cycles`: that of `TransmitRestart`.

    Latency: a flit that is written in cycle t is on the link in t + 1 + `delay_cycles`, if nothing is in its way.
    Throughput: the link's rate, at most a flit a cycle.
    """

    def __init__(self, config: RouterConfig, *, credit_flits: int) -> None:
        self._config, self._credit_flits = config, credit_flits
        vls = config.link.vls
        super().__init__(
            {
                "write_valid": In(1),
                "write_vl": In(config.link.vl_bits),
                "write_data": In(BufferedFlitLayout(config.link)),
                "full": Out(vls),
                "tx": Out(LinkSignature(config.link)),
                "sent": Out(1),
                "sent_vl": Out(config.link.vl_bits),
                "non_empty": Out(vls),
                "blocked": Out(vls),
            }
            | table_members(config)
            | self._restart_members(config)
            | ({"returned": Out(1)} if needs_loads(config) else {})
            | ({"empty": Out(vls)} if routing_class(config).options_empty else {})
        )

    @staticmethod
    def _restart_members(config: RouterConfig) -> dict[str, wiring.Member]:
        if not config.link.restart:
            return {}
        guard = {"begun_anew": Out(GUARD_BITS)} if config.link.guard_cycles else {}
        return {"restarting": Out(1), "ended": Out(1), "cutting": Out(config.link.vls), **guard}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self._config.link
        layout = BufferedFlitLayout(link)
        m.submodules.queues = queues = Module()
        queues.submodules.buffer = buffer = VlBuffer(
            shape=layout,
            vls=link.vls,
            depth=self._config.output_buffer_flits,
            memory=self._config.buffer_memory,
        )
        m.submodules.credits = credits = Credits(
            vls=link.vls,
            depth=self._credit_flits,
            restarts=bool(link.restart),
            guarded=link.guard_cycles > 0,
            tells_home=routing_class(self._config).options_empty,
        )
        m.submodules.pacer = pacer = LinkPacer(link)
        m.submodules.arbiter = arbiter = vl_scheduler(self._config)
        if arbiter.has_tables:
            wiring.connect(m, wiring.flipped(self.table), arbiter.table)

        if buffer.rests:
            works_when(queues, self.write_valid, arbiter.requests)

        # Flits and credits on the wire pass `delay_cycles` registers each way.
        sends: Value = self.sent
        requests = buffer.non_empty & credits.available
        near_more, far_more, back_more = [], [], []
        if link.restart:
            m.submodules.restart = restart = TransmitRestart(link)
            peer = Signal()
            # A VL whose packet was cut throws away the rest of it, without credits.
            requests = buffer.non_empty & (credits.available | restart.cut)
            gone = (arbiter.grant & restart.cut).any()
            sends = self.sent & ~gone
            near_more = [restart.restart, self.sent & gone & buffer.read_data.tail]
            far_more = [self.tx.restart, self.ended]
            back_more = [self.tx.credit_restart]
            m.d.comb += [
                restart.peer.eq(peer),
                restart.moved.eq(self.sent),
                restart.vl.eq(buffer.read_vl),
                restart.tail.eq(buffer.read_data.tail),
                credits.stop.eq(restart.stop),
                self.restarting.eq(restart.stop),
            ]
            if link.guard_cycles:
                m.d.comb += [
                    restart.waiting.eq(buffer.non_empty & ~credits.available & ~restart.cut),
                    restart.breach.eq(credits.excess),
                    self.begun_anew.eq(restart.begun_anew),
                ]
            # The cut follows from the flit that goes in the same cycle: a register ends that path.
            m.d.sync += self.cutting.eq(restart.cutting)
        near = Cat(sends, buffer.read_vl, buffer.read_data, *near_more)
        far: data.View = Signal(layout)
        m.d.comb += Cat(self.tx.valid, self.tx.payload.vl, far, *far_more).eq(self._delayed(m, near, "flit"))
        back = self._delayed(m, Cat(self.tx.credit_valid, self.tx.credit_vl, *back_more), "credit")
        if link.restart:
            m.d.comb += peer.eq(back[-1])
        if hasattr(self, "returned"):
            m.d.comb += self.returned.eq(credits.refund)
        if hasattr(self, "empty"):
            m.d.comb += self.empty.eq(credits.home & ~buffer.non_empty)
        m.d.comb += [
            self.tx.payload.data.eq(far.data),
            self.tx.payload.head.eq(far.head),
            self.tx.payload.tail.eq(far.tail),
            Cat(credits.refund, credits.refund_vl).eq(back[: 1 + link.vl_bits]),
        ]

        m.d.comb += [
            buffer.write_valid.eq(self.write_valid),
            buffer.write_vl.eq(self.write_vl),
            buffer.write_data.eq(self.write_data),
            self.full.eq(buffer.full),
            self.non_empty.eq(buffer.non_empty),
            self.blocked.eq(~credits.available),
            arbiter.requests.eq(requests),
            arbiter.tails.eq(buffer.read_data.tail.replicate(link.vls)),
            arbiter.advance.eq(self.sent),
            self.sent.eq(pacer.slot & arbiter.requests.any()),
            pacer.sent.eq(self.sent),
            buffer.read_select.eq(arbiter.grant),
            buffer.pop.eq(self.sent),
            self.sent_vl.eq(buffer.read_vl),
            credits.spend.eq(sends),
            credits.spend_vl.eq(buffer.read_vl),
        ]
        return m

    def _delayed(self, m: Module, value: data.View | Cat, name: str) -> Signal:
        """`value` after `delay_cycles` registers."""
        last = Signal(len(value), name=f"{name}_wire")
        m.d.comb += last.eq(value)
        for stage in range(self._config.link.delay_cycles):
            register = Signal(len(value), name=f"{name}_wire_{stage + 1}")
            m.d.sync += register.eq(last)
            last = register
        return last
