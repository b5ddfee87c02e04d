"""A serial line of 8 data bits, no parity, one stop bit: bytes out and bytes in."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..config import ConfigError

__all__ = ["LEAST_BIT_CYCLES", "UartReceiver", "UartTransmitter", "bit_cycles"]

LEAST_BIT_CYCLES = 4
"""Fewest clock cycles of a bit: the line is looked at in the middle of one, known to a cycle."""
MOST_ERROR = 0.025
"""Largest relative error of the rate. After 9.5 bits of a byte a line is then off by less than a quarter of a bit. So
may the other end be."""


def bit_cycles(clock_hz: int, baud: int) -> int:
    """Clock cycles of a bit at `baud`. Raises ConfigError where no whole number comes within `MOST_ERROR` of it."""
    cycles = max(1, round(clock_hz / baud))
    if cycles < LEAST_BIT_CYCLES or abs(clock_hz / cycles / baud - 1) > MOST_ERROR:
        raise ConfigError(
            f"baud = {baud}: a clock of {clock_hz} Hz comes within {MOST_ERROR:.1%} of {clock_hz / cycles:.0f} alone, "
            f"and has at most {clock_hz // LEAST_BIT_CYCLES}"
        )
    return cycles


class UartTransmitter(wiring.Component):
    """Sends bytes.

    Members:

    - `data` (in, stream of 8): the bytes.
    - `tx` (out): the line, high when idle.

    `bit_cycles`: clock cycles of a bit. Latency: 1 cycle from a byte taken to its start bit. Throughput: a byte in
    10 bits. Reset: the line is idle.
    """

    def __init__(self, *, bit_cycles: int) -> None:
        self._bit_cycles = bit_cycles
        super().__init__({"data": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The bits that are left, the stop bit last; a one behind them shows when all are sent.
        bits, left = Signal(10), Signal(range(self._bit_cycles))
        busy = bits.any()
        m.d.comb += self.data.ready.eq(~busy)
        with m.If(busy):
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
            with m.Else():
                m.d.sync += [left.eq(self._bit_cycles - 1), bits.eq(bits >> 1)]
                m.d.sync += self.tx.eq(Mux(bits[1:].any(), bits[1], 1))
        with m.Elif(self.data.valid):
            m.d.sync += [bits.eq(Cat(Const(0, 1), self.data.payload, Const(1, 1))), self.tx.eq(0)]
            m.d.sync += left.eq(self._bit_cycles - 1)
        return m


class UartReceiver(wiring.Component):
    """Receives bytes.

    Members:

    - `rx` (in): the line, of any clock.
    - `payload` (out, 8), `valid` (out): a byte, for one cycle.

    A bit is looked at once, in its middle. A start bit that is over by then, and a byte without a stop bit, are thrown
    away. Latency: a byte shows in the middle of its stop bit, and 3 cycles. Throughput: a byte in 10 bits. Reset: waits
    for a start bit.
    """

    def __init__(self, *, bit_cycles: int) -> None:
        self._bit_cycles = bit_cycles
        super().__init__({"rx": In(1, init=1), "payload": Out(8), "valid": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.pin = FFSynchronizer(self.rx, line, init=1)
        left, place, bits = Signal(range(self._bit_cycles)), Signal(range(10)), Signal(8)
        busy = Signal()
        m.d.sync += self.valid.eq(0)
        with m.If(~busy):
            m.d.sync += [left.eq(self._bit_cycles // 2 - 1), place.eq(0), busy.eq(~line)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Else():
            m.d.sync += [left.eq(self._bit_cycles - 1), place.eq(place + 1)]
            with m.If(place == 0):
                m.d.sync += busy.eq(~line)
            with m.Elif(place == 9):
                m.d.sync += [busy.eq(0), self.valid.eq(line), self.payload.eq(bits)]
            with m.Else():
                m.d.sync += bits.eq(Cat(bits[1:], line))
        return m
