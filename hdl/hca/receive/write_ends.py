"""The order of data and completions: a message is said to be received when the bus has answered its writes."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config.hca import HcaConfig
from ..completion_writer import COMPLETION_POST
from ..layout import QP_BITS, CqeStatus
from .layout import END_LAYOUT

__all__ = ["BURSTS_UNDER_WAY", "WriteEnds"]

BURSTS_UNDER_WAY = 8
"""Bursts that the bus has not answered, and ends of messages behind them."""


class WriteEnds(wiring.Component):
    """Posts the end of a message after the answers of all its bursts.

    Members:

    - `item` (in, stream of `END_LAYOUT`): a burst, as its address goes to the bus, or an end without one; in order.
    - `answer` (in), `error` (in): the bus answers the oldest burst that it has not answered, with an error or not.
    - `answer_ready` (out): the answer is taken, always.
    - `post` (out, stream of `COMPLETION_POST`): to the completion writer. An end whose message had an error on the bus
      says BUS_ERROR and no bytes.
    - `forget` (in), `forget_qp` (in): errors of the queue pair are forgotten. Only while it is `empty`.
    - `bus_errors` (out, 32): bursts that the bus answered with an error since reset, modulo 2^32.
    - `empty` (out): every burst has been answered, and every end posted.

    Answers are kept until their ends can be posted. If one waited on the bus, those of the completion writer would wait
    behind it, as all come in order; and the post would wait for them.

    Latency: a post stands in the second cycle after the last answer, or after its item if it awaits none.
    Throughput: an answer a cycle, 2 cycles for one that ends a message. Reset: empty, no errors.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "item": In(stream.Signature(END_LAYOUT)),
                "answer": In(1),
                "error": In(1),
                "answer_ready": Out(1),
                "post": Out(stream.Signature(COMPLETION_POST)),
                "forget": In(1),
                "forget_qp": In(QP_BITS),
                "bus_errors": Out(32),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.items = items = fifo.SyncFIFO(width=END_LAYOUT.size, depth=BURSTS_UNDER_WAY)
        # At most as many as items: it always has room.
        m.submodules.answers = answers = fifo.SyncFIFO(width=1, depth=BURSTS_UNDER_WAY)
        front = END_LAYOUT(items.r_data)
        failed = Signal(self.config.queue_pairs)  # a bit a queue pair: its message had an error on the bus
        answered, taken, posted = Signal(), Signal(), Signal()
        bad = failed.bit_select(front.qp, 1)
        post = self.post.payload
        m.d.comb += [
            items.w_en.eq(self.item.valid),
            items.w_data.eq(self.item.payload),
            self.item.ready.eq(items.w_rdy),
            self.answer_ready.eq(1),
            answers.w_en.eq(self.answer),
            answers.w_data.eq(self.error),
            taken.eq(answers.r_rdy & items.r_rdy & front.awaits & ~answered),
            answers.r_en.eq(taken),
            self.post.valid.eq(items.r_rdy & front.ends & (answered | ~front.awaits)),
            posted.eq(self.post.valid & self.post.ready),
            post.eq(front.post),
            items.r_en.eq(posted | (items.r_rdy & ~front.ends & (taken | ~front.awaits))),
            self.empty.eq(items.level == 0),
        ]
        with m.If(bad):
            m.d.comb += [post.entry.status.eq(CqeStatus.BUS_ERROR), post.entry.bytes.eq(0)]
        with m.If(taken):
            m.d.sync += answered.eq(front.ends)
            with m.If(answers.r_data):
                m.d.sync += [
                    failed.bit_select(front.qp, 1).eq(1),
                    self.bus_errors.eq(self.bus_errors + 1),
                ]
        with m.If(posted):
            m.d.sync += [answered.eq(0), failed.bit_select(front.qp, 1).eq(0)]
        with m.If(self.forget):
            m.d.sync += failed.bit_select(self.forget_qp, 1).eq(0)
        return m
