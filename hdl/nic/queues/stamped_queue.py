"""A DMA engine's queue in order of stamps, which the card makes itself if it is asked to."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out, connect, flipped

from .dma_queue import DmaQueue, submit_layout
from .stamper import Stamper

__all__ = ["StampedDmaQueue"]


class StampedDmaQueue(wiring.Component):
    """A `DmaQueue` in order `timestamp`, with a `Stamper` of `flows` before it.

    The queue is a server of its own in the sense of VirtualClock, with an auxVC a flow (nagar-thesis-2001 5.3.3).

    Members beside those of `DmaQueue`:

    - `stamped` (in), `flow` (in, `range(flows)`): a submitted transfer's stamp is the flow's next one, and that of
      `submit` is ignored. In a list that holds for its first transfer; the others have none.
    - `rtc` (in, `stamp_bits`): the clock.
    - `vtick` (in, `stamp_bits`), `vtick_flow` (in, `range(flows)`), `writes_vtick` (in): sets a flow's Vtick, as
      `Stamper.write`.
    - `rests` (out): that of `Stamper`.

    Stamps are made in the order of submitting, by the clock at that time, and a transfer joins the queue with its
    stamp. A transfer that waits for its stamp counts as an entry of the queue: `level` and `room` count both.

    Latency: from `submit` to `start`: 2 cycles for a transfer that brings its stamp, 6 for one that gets it, 4 more
    if the stamper's scan is at it. Throughput: a stamp in 4 cycles. Reset: empty; stamps wait 4 cycles a flow, as
    `Stamper` has it.

    Raises ConfigError as its parts do.
    """

    def __init__(self, command: Any, result: Any, *, entries: int, flows: int, stamp_bits: int) -> None:
        self.entries, self.flows, self.stamp_bits = entries, flows, stamp_bits
        self._queue = DmaQueue(command, result, entries=entries, order="timestamp", stamp_bits=stamp_bits)
        self._stamper = Stamper(channels=flows, bits=stamp_bits)
        self._submit = submit_layout(command, stamp_bits)
        members = dict(self._queue.signature.members.items())
        super().__init__(
            members
            | {
                "stamped": In(1),
                "flow": In(range(flows)),
                "rtc": In(stamp_bits),
                "vtick": In(stamp_bits),
                "vtick_flow": In(range(flows)),
                "writes_vtick": In(1),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = self._queue
        m.submodules.stamper = stamper = self._stamper
        row = data.StructLayout({"submit": self._submit, "stamped": 1, "flow": self.flow.shape()})
        m.submodules.waiting = waiting = SyncFIFO(width=row.size, depth=self.entries)
        first, arrives = data.View(row, waiting.r_data), Signal()

        # A transfer is let in only where the queue has a place for it once it has its stamp.
        goes_on = Signal()  # what is submitted next is the rest of a list
        total = Signal(range(2 * self.entries + 1))
        m.d.comb += [
            total.eq(queue.level + waiting.level),
            self.submit.ready.eq(total < self.entries),
            arrives.eq(self.submit.valid & self.submit.ready),
            waiting.w_en.eq(arrives),
            waiting.w_data.eq(Cat(self.submit.payload.as_value(), self.stamped & ~goes_on, self.flow)),
            self.level.eq(total),
            self.room.eq(self.entries - total),
            self.busy.eq(queue.busy | waiting.r_rdy),
        ]
        with m.If(arrives):
            m.d.sync += goes_on.eq(self.submit.payload.more)
        with m.If(self.submit.valid & ~self.submit.ready):
            m.d.sync += self.refused.eq(self.refused + 1)

        asked = Signal()  # the oldest's stamp is on its way
        m.d.comb += [
            stamper.rtc.eq(self.rtc),
            stamper.write.valid.eq(self.writes_vtick),
            stamper.write.payload.channel.eq(self.vtick_flow),
            stamper.write.payload.ticks.eq(self.vtick),
            stamper.request.valid.eq(waiting.r_rdy & first.stamped & ~asked),
            stamper.request.payload.eq(first.flow),
            stamper.stamp.ready.eq(1),
            self.rests.eq(stamper.rests),
            queue.submit.payload.eq(first.submit),
            queue.submit.valid.eq(waiting.r_rdy & (~first.stamped | stamper.stamp.valid)),
            waiting.r_en.eq(queue.submit.valid & queue.submit.ready),
        ]
        with m.If(stamper.stamp.valid):
            m.d.comb += queue.submit.payload.stamp.eq(stamper.stamp.payload.ticks)
            m.d.sync += asked.eq(0)
        with m.Elif(stamper.request.valid & stamper.request.ready):
            m.d.sync += asked.eq(1)

        connect(m, flipped(self.start), queue.start)
        for name in ("protect", "done", "result", "take"):
            m.d.comb += _value(getattr(queue, name)).eq(_value(getattr(self, name)))
        for name in ("ended", "ended_count", "finished", "finished_valid"):
            m.d.comb += _value(getattr(self, name)).eq(_value(getattr(queue, name)))
        return m


def _value(port: Any) -> Value:
    return Value.cast(port)
