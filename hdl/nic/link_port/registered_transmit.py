"""The way out of a card's port with packet buffers, with registers between its steps."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Literal

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import NicConfig
from ...link import FlitLayout, LinkSignature
from ...link_restart import TransmitRestart
from ...router.flit import BufferedFlitLayout
from ...router.vl_buffer import encode
from ...vl_arbiter.base import TableSignature
from ...vl_arbiter.registered_two_level import RegisteredTwoLevelArbiter
from .vl_counters import VlCounters, one_hot
from .vl_rows import VlRows

__all__ = ["RegisteredTransmit"]


class RegisteredTransmit(wiring.Component):
    """VL buffers, credits, the VL arbiter and the pace of a link that takes a flit in `DECISION_CYCLES` or more.

    It does what `TransmitStage` does, some cycles later. A flit *goes* in the cycle in which the decision about its VL
    is used. Then it is counted out of its buffer, its credit is spent, and the pace is kept. It is read out of block
    RAM in the next four cycles, and stands on the link in the fifth. So requests follow from counts in flip-flops.

    Parameters:

    - `credit_flits`: depth of the receiver's buffer of each VL, flits.
    - `pointer`: of the tables, "fast" or "slow".
    - `control_vl`: the VL that goes first, or -1.

    Members (vectors have a bit a VL):

    - `write_valid`, `write` (in, `FlitLayout`): a flit is taken in this cycle. Only while its VL has room.
    - `full` (out): VLs without room; a register. A flit that is taken shows 2 cycles later, so there is a place more.
    - `tx` (out, `LinkSignature`): the link, behind `delay_cycles` registers and one more. Credits that come back pass
      as many.
    - `table` (in, `TableSignature`): the arbiter's tables.
    - `non_empty`, `blocked` (out): VLs with a flit that has not gone yet, and VLs without a credit; registers.
    - `gone` (out): VLs whose packet's tail is on the link, or was thrown away; a register.
    - `moved` (out): a flit stands in one of the registers, or goes.
    - `restarting`, `cutting` (out), only with `LinkConfig.restart`: those of `TransmitStage`.

    Latency: a flit that is written in cycle t is on the link in t + 11 + `delay_cycles`, if nothing is in its way.
    Throughput: the link's rate. Reset: buffers empty, all credits home.
    """

    def __init__(
        self, config: NicConfig, *, credit_flits: int, pointer: Literal["fast", "slow"], control_vl: int
    ) -> None:
        self._config, self._credit_flits = config, credit_flits
        self._pointer, self._control_vl = pointer, control_vl
        link = config.link
        vls = link.vls
        restart = {"restarting": Out(1), "cutting": Out(vls)} if link.restart else {}
        super().__init__(
            {
                "write_valid": In(1),
                "write": In(FlitLayout(link)),
                "full": Out(vls),
                "tx": Out(LinkSignature(link)),
                "table": Out(TableSignature(vls=vls, entries=config.vl_table_entries)),
                "non_empty": Out(vls),
                "blocked": Out(vls),
                "gone": Out(vls),
                "moved": Out(1),
                **restart,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        vls, depth = link.vls, config.vl_buffer_flits
        layout = BufferedFlitLayout(link)
        # A place more, for the flit that was taken before `full` showed.
        m.submodules.rows = rows = VlRows(shape=layout, vls=vls, depth=depth + 1)
        m.submodules.flits = flits = VlCounters(vls=vls, most=depth + 1, full=depth)
        m.submodules.credits = credits = VlCounters(vls=vls, most=self._credit_flits, filled=True)
        m.submodules.arbiter = arbiter = RegisteredTwoLevelArbiter(
            vls=vls,
            control_vl=self._control_vl,
            entries=config.vl_table_entries,
            pointer=self._pointer,
        )
        wiring.connect(m, wiring.flipped(self.table), arbiter.table)

        # A flit that comes stands in a register first.
        here, here_vl, number, flit = Signal(), Signal(vls), Signal(link.vl_bits), Signal(layout)
        m.d.sync += [
            here.eq(self.write_valid),
            here_vl.eq(one_hot(self.write_valid, self.write.vl, vls)),
            number.eq(self.write.vl),
            flit.data.eq(self.write.data),
            flit.head.eq(self.write.head),
            flit.tail.eq(self.write.tail),
        ]
        m.d.comb += [
            rows.write.eq(here),
            rows.write_vl.eq(number),
            rows.write_data.eq(flit),
            flits.add.eq(here_vl),
        ]

        # It goes.
        goes, going, available, requests = Signal(), Signal(vls), Signal(vls), Signal(vls)
        cut, stop, stopped = Signal(vls), Signal(), Signal()
        m.d.comb += [
            arbiter.requests.eq(requests),
            arbiter.drop.eq(stop),
            goes.eq(self._slot(m, goes) & arbiter.decided & ~stop),
            going.eq(Mux(goes, arbiter.grant, 0)),
            arbiter.advance.eq(goes),
            flits.take.eq(going),
            credits.take.eq(going & ~cut),
        ]

        # It is read: its VL in the four cycles after the one in which it goes. The first finds its row.
        on_its_way = [(Signal(name=f"leaves_{i}"), Signal(vls, name=f"leaving_{i}")) for i in range(4)]
        m.d.sync += [
            Cat(*register).eq(Cat(*before))
            for register, before in zip(on_its_way, [(goes, going), *on_its_way], strict=False)
        ]
        (first, first_vl), *_, (leaves, leaving) = on_its_way
        fronts = [Signal(rows.row_bits, name=f"front_{vl}") for vl in range(vls)]
        row = reduce(or_, (Mux(first_vl[vl], front, 0) for vl, front in enumerate(fronts)))
        for vl, front in enumerate(fronts):
            with m.If(first & first_vl[vl]):
                m.d.sync += front.eq(front + 1)
        read_row, numbers = Signal(rows.row_bits), [Signal(link.vl_bits, name=f"vl_{i}") for i in range(3)]
        m.d.sync += [
            read_row.eq(row),
            Cat(*numbers).eq(Cat(encode(first_vl, link.vl_bits), *numbers)),
        ]
        leaving_vl = numbers[-1]
        m.d.comb += [rows.moves.eq(1), rows.read_vl.eq(numbers[0]), rows.read_row.eq(read_row)]
        lost: Value = (leaving & cut).any()
        near: list[Value] = [leaves & ~lost, leaves & lost & rows.read_data.tail]
        # A VL whose packet was cut throws away the rest of it, without credits; one flit after the other, as `cut`
        # follows from each.
        throws: Value = Signal(vls)
        if link.restart:
            m.submodules.restart = restart = TransmitRestart(link)
            underway = going | reduce(or_, (vl for _, vl in on_its_way))
            throws = cut & ~underway
            m.d.comb += [
                cut.eq(restart.cut),
                stop.eq(restart.stop & ~stopped),
                restart.moved.eq(leaves),
                restart.vl.eq(leaving_vl),
                restart.tail.eq(rows.read_data.tail),
                self.restarting.eq(restart.stop),
            ]
            near.append(restart.restart)
            m.d.sync += self.cutting.eq(restart.cutting)
        near += [leaving_vl, Value.cast(rows.read_data)]
        m.d.sync += requests.eq(flits.coming & (available | throws))
        far = self._delayed(m, Cat(near), "flit", link.delay_cycles + 1)
        tx, out = self.tx, Signal(layout)
        ended = Signal()
        m.d.comb += Cat(
            tx.valid, ended, *([tx.restart] if link.restart else []), tx.payload.vl, Value.cast(out)
        ).eq(far)
        m.d.comb += [tx.payload.data.eq(out.data), tx.payload.head.eq(out.head), tx.payload.tail.eq(out.tail)]

        # Credits that come back.
        levels = [tx.credit_restart] if link.restart else []
        back = self._delayed(m, Cat(tx.credit_valid, tx.credit_vl, *levels), "credit", link.delay_cycles)
        refunds = Signal(vls)
        m.d.sync += refunds.eq(one_hot(back[0], back[1 : 1 + link.vl_bits], vls))
        m.d.comb += credits.add.eq(refunds & ~credits.full)
        if link.restart:
            m.d.sync += stopped.eq(restart.stop)
            m.d.comb += [
                restart.peer.eq(back[-1]),
                credits.fill.eq(restart.stop),
                available.eq(Mux(restart.stop, 0, credits.coming)),
            ]
        else:
            m.d.comb += available.eq(credits.coming)

        m.d.sync += self.gone.eq(one_hot((tx.valid & tx.payload.tail) | ended, tx.payload.vl, vls))
        m.d.comb += [
            self.full.eq(flits.full),
            self.non_empty.eq(flits.any),
            self.blocked.eq(~credits.any | stopped.replicate(vls)),
            self.moved.eq(
                here | goes | Cat(one for one, _ in on_its_way).any() | tx.valid | ended | self.gone.any()
            ),
        ]
        return m

    def _slot(self, m: Module, sent: Value) -> Signal:
        """Whether a flit may be sent: what `LinkPacer` says, from a register. A slot is never followed by another one,
        as a flit takes the link for several cycles.
        """
        num, den = self._config.link.rate_num, self._config.link.rate_den
        debt, slot = Signal(range(den + 1)), Signal(init=1)
        m.d.sync += slot.eq(~sent & (debt < 2 * num))
        with m.If(sent):
            m.d.sync += debt.eq(debt + den - num)
        with m.Elif(debt > num):
            m.d.sync += debt.eq(debt - num)
        with m.Else():
            m.d.sync += debt.eq(0)
        return slot

    def _delayed(self, m: Module, value: Value, name: str, stages: int) -> Value:
        """`value` after so many registers."""
        for stage in range(stages):
            register = Signal(len(value), name=f"{name}_wire_{stage}")
            m.d.sync += register.eq(value)
            value = register
        return value
