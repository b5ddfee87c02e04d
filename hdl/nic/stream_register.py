"""Registers in a stream."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamRegister"]


class StreamRegister(wiring.Component):
    """Two places for items of `shape`, so that a stream goes on through registers both ways.

    Members: `i` (in), `o` (out): streams of `shape`.

    `o.valid`, `o.payload` and `i.ready` are registers: no path leads through. Latency: 1 cycle. Throughput: an item a
    cycle. Reset: empty.
    """

    def __init__(self, shape: Any) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        # The item that came in while `o` was held.
        waits, kept = Signal(), Signal.like(i.payload)
        m.d.comb += i.ready.eq(~waits)
        with m.If(~waits):
            m.d.sync += kept.eq(i.payload)
        with m.If(~o.valid | o.ready):
            m.d.sync += [o.valid.eq(i.valid | waits), waits.eq(0)]
            with m.If(waits):
                m.d.sync += o.payload.eq(kept)
            with m.Else():
                m.d.sync += o.payload.eq(i.payload)
        with m.Elif(i.valid):
            m.d.sync += waits.eq(1)
        return m
