"""The host DMA engine shared by the firmware's own transfers and by those that are checked for it."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .host_dma import HOST_DMA_COMMAND

__all__ = ["DmaGate"]


class DmaGate(wiring.Component):
    """One engine with two users: to the firmware the gate looks as the engine does (`HostDma`).

    Members:

    - `start` (in, stream of `HOST_DMA_COMMAND`), `busy` (out): the firmware's side, or that of its queue.
    - `done` (out): one of the firmware's own transfers ends.
    - `error` (out): the engine's.
    - `checked` (in, stream of `HOST_DMA_COMMAND`), `checked_busy` (in), `checked_done` (out): the side of `CheckedDma`.
    - `engine` (out, stream of `HOST_DMA_COMMAND`), `engine_busy`, `engine_done`, `engine_error` (in): the engine.

    While `checked_busy` is up the firmware's side is busy and starts nothing. A checked transfer starts when the
    transfers that the firmware has under way have ended.

    Latency: none. Throughput: the engine's. Reset: neither has the engine.
    """

    def __init__(self) -> None:
        commands = stream.Signature(HOST_DMA_COMMAND)
        super().__init__(
            {
                "start": In(commands),
                "busy": Out(1),
                "done": Out(1),
                "error": Out(1),
                "checked": In(commands),
                "checked_busy": In(1),
                "checked_done": Out(1),
                "engine": Out(commands),
                "engine_busy": In(1),
                "engine_done": In(1),
                "engine_error": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mine = Signal()  # the transfer under way is a checked one
        m.d.comb += [
            self.busy.eq(self.engine_busy | self.checked_busy),
            self.error.eq(self.engine_error),
            self.done.eq(self.engine_done & ~mine),
            self.checked_done.eq(self.engine_done & mine),
        ]
        with m.If(self.checked_busy):
            m.d.comb += [
                self.engine.payload.eq(self.checked.payload),
                self.engine.valid.eq(self.checked.valid & ~self.engine_busy),
                self.checked.ready.eq(self.engine.ready & ~self.engine_busy),
            ]
        with m.Else():
            m.d.comb += [
                self.engine.payload.eq(self.start.payload),
                self.engine.valid.eq(self.start.valid),
                self.start.ready.eq(self.engine.ready),
            ]
        with m.If(self.checked.valid & self.checked.ready):
            m.d.sync += mine.eq(1)
        with m.Elif(self.engine_done):
            m.d.sync += mine.eq(0)
        return m
