"""DMA on behalf of a process: an access is checked and translated, then done, or not touched at all."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..dma.host_dma import HOST_DMA_COMMAND
from .completion_layout import CompletionStatus
from .protection import ACCESS_LAYOUT, SEGMENT_LAYOUT

__all__ = ["CHECKED_COMMAND", "CheckedDma"]

CHECKED_COMMAND = data.StructLayout({"access": ACCESS_LAYOUT, "sram_address": 20})
"""An access, and the place in the SRAM to which its bytes go, or from which they come if it is a write.

Both are byte addresses with the alignment that `HOST_DMA_COMMAND` asks for.
"""


class CheckedDma(wiring.Component):
    """Turns an access into commands for the host DMA engine (nagar-thesis-2001 5.2.2).

    Members:

    - `start` (in, stream of `CHECKED_COMMAND`): ready when idle.
    - `busy` (out): an access is under way.
    - `done` (out): it ends in this cycle.
    - `status` (out): its end (`CompletionStatus`), from the cycle after `done` until the next start.
    - `access` (out, stream of `ACCESS_LAYOUT`), `segment` (in, stream of `SEGMENT_LAYOUT`): to `Protection`.
    - `command` (out, stream of `HOST_DMA_COMMAND`), `dma_done`, `dma_error` (in): to the engine, which has this block's
      commands alone while `busy` is up.

    An access that is forbidden ends without a command. After an error on the bus no further command is given.

    Latency: a cycle to `access`, a cycle from a segment to its command; the next command follows when the engine is
    done. Throughput: one access at a time. Reset: idle.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(stream.Signature(CHECKED_COMMAND)),
                "busy": Out(1),
                "done": Out(1),
                "status": Out(CompletionStatus),
                "access": Out(stream.Signature(ACCESS_LAYOUT)),
                "segment": In(stream.Signature(SEGMENT_LAYOUT)),
                "command": Out(stream.Signature(HOST_DMA_COMMAND)),
                "dma_done": In(1),
                "dma_error": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wanted, piece = Signal(CHECKED_COMMAND), Signal(SEGMENT_LAYOUT)
        command = self.command.payload
        m.d.comb += [
            self.access.payload.eq(wanted.access),
            command.host_address.eq(piece.address),
            command.sram_address.eq(wanted.sram_address),
            command.bytes.eq(piece.bytes),
            command.to_host.eq(wanted.access.write),
            self.busy.eq(1),
        ]
        failed = Signal()  # the bus has failed: the other pieces are dropped
        with m.FSM():
            with m.State("idle"):
                m.d.comb += [self.busy.eq(0), self.start.ready.eq(1)]
                m.d.sync += [wanted.eq(self.start.payload), failed.eq(0)]
                with m.If(self.start.valid):
                    m.d.sync += self.status.eq(CompletionStatus.OK)
                    m.next = "check"
            with m.State("check"):
                m.d.comb += self.access.valid.eq(1)
                with m.If(self.access.ready):
                    m.next = "segment"
            with m.State("segment"):
                m.d.comb += self.segment.ready.eq(1)
                m.d.sync += piece.eq(self.segment.payload)
                with m.If(self.segment.valid):
                    m.next = "command"
                    with m.If((self.segment.payload.status != CompletionStatus.OK) | failed):
                        m.next = "end"
            with m.State("command"):
                m.d.comb += self.command.valid.eq(1)
                with m.If(self.command.ready):
                    m.next = "transfer"
            with m.State("transfer"), m.If(self.dma_done):
                m.d.sync += wanted.sram_address.eq(wanted.sram_address + piece.bytes)
                with m.If(self.dma_error):
                    m.d.sync += [failed.eq(1), self.status.eq(CompletionStatus.BUS_ERROR)]
                m.next = "end"
            with m.State("end"):
                with m.If(piece.status != CompletionStatus.OK):
                    m.d.sync += self.status.eq(piece.status)
                m.next = "segment"
                with m.If(piece.last):
                    m.d.comb += self.done.eq(1)
                    m.next = "idle"
        return m
