"""The ends of messages: each becomes a completion, or is counted, and its queue pair has room for another one."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter.round_robin import RoundRobinArbiter
from ..config.hca import HcaConfig
from .completion_writer import COMPLETION_POST
from .layout import QP_BITS, CqeStatus
from .queue_pair_table import QueuePairTable
from .send_layout import END_LAYOUT, QUEUE_PAIR_LAYOUT

__all__ = ["SOURCES", "Ends"]

SOURCES = ("departed", "refused", "unsent", "unfetched")
"""Where messages end: on the link, in the send engine, in the scheduler, in the fetch."""


class Ends(wiring.Component):
    """Takes the end of each message, one at a time, the sources in turn.

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `departed`, `refused`, `unsent`, `unfetched` (in, streams of `END_LAYOUT`): ends.
    - `retired` (out): an end of the first two is taken, in this cycle.
    - `post` (out, stream of `COMPLETION_POST`): completions.
    - `ended` (out, stream of 8 bits): a message of this queue pair has ended.
    - `sent`, `failed`, `throttled`, `dropped` (out, 32): messages by their end, since reset, modulo 2^32. A throttled
      one has failed, too.
    - `quiet` (out): no end is there, and no register changes but by an input.

    A message has a completion if it was signaled or has failed. One whose queue pair is closed has none: it is dropped.
    So is a completion whose queue pair is closed while it waits for `post`: then `post` falls without `ready`.

    Latency: from an end to `post` 2 cycles. Throughput: an end every 4 cycles, if `post` and `ended` take them at once.
    Longest wait of a source: one end of each other one. Reset: nothing is there.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        members: dict[str, Any] = {source: In(stream.Signature(END_LAYOUT)) for source in SOURCES}
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                **members,
                "retired": Out(1),
                "post": Out(stream.Signature(COMPLETION_POST)),
                "ended": Out(stream.Signature(QP_BITS)),
                "sent": Out(32),
                "failed": Out(32),
                "throttled": Out(32),
                "dropped": Out(32),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = table = QueuePairTable(self.config.queue_pairs, fields=("life",))
        m.submodules.arbiter = arbiter = RoundRobinArbiter(size=len(SOURCES))
        end, took = Signal(END_LAYOUT), Signal()
        entry = self.post.payload.entry
        sources = [getattr(self, source) for source in SOURCES]
        m.d.comb += [
            table.setup_valid.eq(self.setup_valid),
            table.setup.eq(self.setup),
            table.qp.eq(end.qp),
            *(bit.eq(source.valid) for bit, source in zip(arbiter.requests, sources, strict=True)),
            self.post.payload.queue.eq(end.queue),
            entry.bytes.eq(end.bytes),
            entry.tag.eq(end.tag),
            entry.qp.eq(end.qp),
            entry.life.eq(table.row.life),
            entry.status.eq(end.status),
            entry.immediate.eq(end.departed),
            Cat(entry.source, entry.source_qp).eq(end.buffered),
            self.ended.payload.eq(end.qp),
            self.retired.eq((arbiter.grant[:2] & took.replicate(2)).any()),
        ]

        def counted(counter: Signal) -> None:
            m.d.sync += counter.eq(counter + 1)

        def has_ended() -> None:
            with m.If(end.status == CqeStatus.OK):
                counted(self.sent)
            with m.Else():
                counted(self.failed)
            with m.If(end.status == CqeStatus.THROTTLED):
                counted(self.throttled)

        with m.FSM() as fsm:
            with m.State("idle"):
                m.d.comb += [took.eq(arbiter.requests.any()), arbiter.advance.eq(took)]
                for i, source in enumerate(sources):
                    with m.If(arbiter.grant[i]):
                        m.d.comb += source.ready.eq(1)
                        m.d.sync += end.eq(source.payload)
                with m.If(took):
                    m.next = "look"
            with m.State("look"):
                m.next = "ended"
                with m.If(~table.open):
                    counted(self.dropped)
                with m.Elif(end.signaled | (end.status != CqeStatus.OK)):
                    m.next = "post"
                with m.Else():
                    has_ended()
            with m.State("post"):
                # Its completion queue may be another's by now, if the queue pair was closed.
                m.d.comb += self.post.valid.eq(table.open)
                with m.If(~table.open):
                    counted(self.dropped)
                    m.next = "ended"
                with m.Elif(self.post.ready):
                    has_ended()
                    m.next = "ended"
            with m.State("ended"):
                m.d.comb += self.ended.valid.eq(1)
                with m.If(self.ended.ready):
                    m.next = "idle"
        m.d.comb += self.quiet.eq(fsm.ongoing("idle") & ~took)
        return m
