"""The way in of a card's port with packet buffers, behind its counts: packets out of block RAM, one after the other."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import LinkConfig
from ...link import FlitLayout
from ...router.flit import BufferedFlitLayout
from ...router.vl_buffer import encode
from .standing_choice import StandingChoice
from .vl_rows import VlRows

__all__ = ["RegisteredRead"]


class RegisteredRead(wiring.Component):
    """VL buffers of `depth` flits, and the choice of the packet that is read out of them.

    Members (vectors have a bit a VL):

    - `write` (in), `flit` (in, `FlitLayout`): a flit is written; from registers. The writer knows of room.
    - `whole`, `full`, `non_empty` (in): VLs that have a whole packet, that are full, and that have a flit. Registers,
      in which a flit that is written, and one that is `taken`, count from the next cycle on, and `ended` too.
    - `hold` (in): VLs of which no packet is begun.
    - `receive` (out, stream of `FlitLayout`): packets that are whole, or fill their buffer, one after the other, in
      turn (`StandingChoice`).
    - `taken` (out): one-hot or 0, the VL of the flit that is taken from `receive` in this cycle.
    - `ended` (out): the VL whose packet's tail was taken in the cycle before; a register.

    The rows of a packet that is whole are read one after the other, without a look at what comes. What was read beyond
    its tail is dropped. A packet that is not whole is read flit by flit.

    Latency: 6 cycles from `whole` to `receive`. Throughput: a flit a cycle in a packet that is whole, else one in 5
    cycles; 8 cycles from a tail to the next packet. Reset: empty.
    """

    def __init__(self, link: LinkConfig, *, depth: int) -> None:
        self._link, self._depth = link, depth
        vls = link.vls
        super().__init__(
            {
                "write": In(1),
                "flit": In(FlitLayout(link)),
                "whole": In(vls),
                "full": In(vls),
                "non_empty": In(vls),
                "hold": In(vls),
                "receive": Out(stream.Signature(FlitLayout(link))),
                "taken": Out(vls),
                "ended": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, receive = self._link, self.receive
        vls = link.vls
        m.submodules.rows = rows = VlRows(shape=BufferedFlitLayout(link), vls=vls, depth=self._depth)
        m.submodules.choice = choice = StandingChoice(vls=vls)
        m.d.comb += [
            rows.write.eq(self.write),
            rows.write_vl.eq(self.flit.vl),
            rows.write_data.data.eq(self.flit.data),
            rows.write_data.head.eq(self.flit.head),
            rows.write_data.tail.eq(self.flit.tail),
            choice.requests.eq((self.whole | self.full) & ~self.hold),
        ]

        # The packet under way: its VL, the row of its oldest flit, and whether all of it is there.
        current, number, streams, begun = Signal(vls), Signal(link.vl_bits), Signal(), Signal()
        oldest = Signal(rows.row_bits)
        fronts = [Signal(rows.row_bits, name=f"front_{vl}") for vl in range(vls)]
        # The rows on their way: asked for, in the block RAM's register, and on `receive`.
        asks, comes, shows, row = Signal(), Signal(), Signal(), Signal(rows.row_bits)
        moves, takes, ends = Signal(), Signal(), Signal()
        tail = rows.read_data.tail
        m.d.comb += [
            moves.eq(~shows | receive.ready),
            takes.eq(shows & receive.ready),
            ends.eq(takes & tail),
            rows.moves.eq(moves),
            rows.read_vl.eq(number),
            rows.read_row.eq(row),
            receive.valid.eq(shows),
            receive.payload.data.eq(rows.read_data.data),
            receive.payload.head.eq(rows.read_data.head),
            receive.payload.tail.eq(tail),
            receive.payload.vl.eq(number),
            self.taken.eq(Mux(takes, current, 0)),
            choice.done.eq(ends),
        ]
        m.d.sync += self.ended.eq(Mux(ends, current, 0))

        # What is chosen is kept in registers, and then its first row is looked up.
        looks = Signal()
        with m.If(ends):
            m.d.sync += [current.eq(0), looks.eq(0), begun.eq(0)]
        with m.Else():
            m.d.sync += [
                current.eq(choice.chosen),
                number.eq(encode(choice.chosen, link.vl_bits)),
                looks.eq(choice.chosen.any()),
                begun.eq(looks),
            ]
        first = Signal(rows.row_bits)
        for vl, front in enumerate(fronts):
            with m.If(current[vl]):
                m.d.comb += first.eq(front)
                with m.If(takes):
                    m.d.sync += front.eq(oldest + 1)
        starts = looks & ~begun
        with m.If(starts):
            m.d.sync += [oldest.eq(first), streams.eq((self.whole & current).any())]
        with m.Elif(takes):
            m.d.sync += oldest.eq(oldest + 1)

        # A row after the other, or the next one when the one before has been taken.
        waits = begun & ~streams & ~asks & ~comes & ~shows & (self.non_empty & current).any()
        with m.If(ends):
            m.d.sync += [asks.eq(0), comes.eq(0), shows.eq(0)]
        with m.Else():
            with m.If(moves):
                m.d.sync += [comes.eq(asks), shows.eq(comes), row.eq(row + 1), asks.eq(streams & begun)]
            with m.If(starts):
                m.d.sync += [row.eq(first), asks.eq((self.whole & current).any())]
            with m.If(waits):
                m.d.sync += [row.eq(oldest), asks.eq(1)]
        return m
