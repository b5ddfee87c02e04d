"""The real-time clock: ticks of a rational number of cycles, and a timer that compares with it."""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import NicConfig

__all__ = ["PASSED_BITS", "Rtc", "Timer", "clock_layout", "difference", "reached"]

PASSED_BITS = 40
"""Width of a number of cycles that a simulator passes over: hours of a card's time."""


def difference(a: Value, b: Value) -> Value:
    """The ticks by which clock value `a` is ahead of `b`: signed, of their width.

    The result is right across the clock's wrap while the two are less than half the clock's range apart.
    """
    bits = len(b)
    return (a - b)[:bits].as_signed()


def reached(now: Value, then: Value) -> Value:
    """Whether clock value `now` is at or past `then` (one bit), right across the wrap as `difference` is."""
    return ~difference(now, then)[-1]


def clock_layout(config: NicConfig) -> data.StructLayout:
    """The state of a clock.

    - `ticks`: its value.
    - `phase`: the part of the next tick that is over, in units of 1/`rtc_cycles_num` tick.
    """
    return data.StructLayout({"ticks": config.rtc_bits, "phase": range(config.rtc_cycles_num)})


class Rtc(wiring.Component):
    """Real-time clock with a rational prescaler, and a timer.

    With `settable` it can be set, by a simulator that passes over cycles in which nothing happens.

    Members:

    - `ticks` (out, `rtc_bits`): the clock. Tick `k` comes at the end of cycle `ceil(k * num / den) - 1` after
      reset, where `num / den` is `config.tick_cycles`: the error is less than a cycle and never adds up.
    - `compare` (in, `rtc_bits`), `arm` (in): a cycle of `arm` takes the time at which the timer fires. A timer that is
      armed already is set anew.
    - `fired` (out): high for one cycle, the first in which `ticks` is at or past the time taken. This is the cycle
      after `arm` if the time has passed already. It is right across the wrap for times less than half the clock's range
      away.
    - `armed`, `time` (out): whether the timer is armed, and the time taken.
    - `state` (out, `clock_layout`), only if `settable`: the place at which the clock stands.
    - `set` (in), `set_state` (in, `clock_layout`), only if `settable`: at the end of the cycle the clock stands at
      `set_state`, whatever the prescaler says.

    Latency: 1 cycle from `arm` to `fired` for a time that has passed. Throughput: a timer that is set anew in any
    cycle. Reset: 0 ticks, timer not armed. Source: gulati-thesis-2001 4.2.2 (RTC), 5.3 (its half-microsecond tick).
    """

    def __init__(self, config: NicConfig, *, settable: bool = False) -> None:
        self._num, self._den = config.rtc_cycles_num, config.rtc_cycles_den
        self._settable = settable
        bits = config.rtc_bits
        members = {
            "ticks": Out(bits),
            "compare": In(bits),
            "arm": In(1),
            "fired": Out(1),
            "armed": Out(1),
            "time": Out(bits),
        }
        if settable:
            layout = clock_layout(config)
            members |= {"state": Out(layout), "set": In(1), "set_state": In(layout)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # `phase` counts in units of 1/num tick; den <= num, so at most one tick a cycle.
        phase = Signal(range(self._num))
        advanced = Signal(range(2 * self._num))
        m.d.comb += advanced.eq(phase + self._den)
        with m.If(advanced >= self._num):
            m.d.sync += [phase.eq(advanced - self._num), self.ticks.eq(self.ticks + 1)]
        with m.Else():
            m.d.sync += phase.eq(advanced)
        if self._settable:
            m.d.comb += [self.state.ticks.eq(self.ticks), self.state.phase.eq(phase)]
            with m.If(self.set):
                m.d.sync += [self.ticks.eq(self.set_state.ticks), phase.eq(self.set_state.phase)]

        armed, time = self.armed, self.time
        m.d.comb += self.fired.eq(armed & reached(self.ticks, time))
        with m.If(self.arm):
            m.d.sync += [armed.eq(1), time.eq(self.compare)]
        with m.Elif(self.fired):
            m.d.sync += armed.eq(0)
        return m


class Timer(wiring.Component):
    """Another timer on a clock, as the one in `Rtc`: for a second processor.

    Members:

    - `ticks` (in, `rtc_bits`): the clock.
    - `compare`, `arm` (in), `fired`, `armed`, `time` (out): as in `Rtc`.

    Latency: 1 cycle from `arm` to `fired` for a time that has passed. Throughput: a timer that is set anew in any
    cycle. Reset: not armed.
    """

    def __init__(self, config: NicConfig) -> None:
        bits = config.rtc_bits
        super().__init__(
            {
                "ticks": In(bits),
                "compare": In(bits),
                "arm": In(1),
                "fired": Out(1),
                "armed": Out(1),
                "time": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.fired.eq(self.armed & reached(self.ticks, self.time))
        with m.If(self.arm):
            m.d.sync += [self.armed.eq(1), self.time.eq(self.compare)]
        with m.Elif(self.fired):
            m.d.sync += self.armed.eq(0)
        return m
