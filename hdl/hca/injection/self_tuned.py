"""Self-Tuned injection control: the full buffers of the whole network against a threshold that tunes itself."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config.base import ConfigError
from ...config.hca import HcaConfig
from .policy import InjectionPolicy

__all__ = ["DELIVERED_BITS", "GATHER_CYCLES", "TUNING_GATHERS", "SelfTuned", "SelfTuner"]

GATHER_CYCLES = 32
"""Cycles from gathering to gathering over the side band, and those that it takes: those of the original's network."""
TUNING_GATHERS = 3
"""Gatherings in a tuning period: 96 cycles."""
UP_PERCENT, DOWN_PERCENT = 1, 4
"""Steps of the threshold, of all buffers."""
DROP_QUARTERS = 3
"""A throughput below so many quarters of that of the period before is a drop."""
MOST_ADAPTERS = 1024
"""Nodes of a network: a header has 10 bits for one."""
DELIVERED_BITS = MOST_ADAPTERS.bit_length()
COUNT_BITS = 16
"""Width of the counts of buffers."""


class SelfTuned(InjectionPolicy):
    """A message is allowed unless the network throttles (Thottethodi, Lebeck and Mukherjee 2001; yum-2006 7.2).

    All adapters gather the same information and so come to the same result. One `SelfTuner` stands for all of them.

    `side`: its `throttle`, a bit. The VL of control packets is no part of it: its messages are always allowed.

    Latency: none. Throughput: a message a cycle. Longest wait: without a full buffer in the network a message is
    allowed after 97 cycles at most.
    """

    side_name = "throttle"

    @classmethod
    def side_bits(cls, config: HcaConfig) -> int:
        """One bit."""
        return 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.control.allow.eq(~self.side)
        if self.config.link.vls == 16:
            with m.If(self.control.ask.vl == 15):
                m.d.comb += self.control.allow.eq(1)
        return m


class SelfTuner(wiring.Component):
    """The side band of Self-Tuned control, and its threshold.

    Parameters: `buffers`: VL buffers of all routers' inputs and of all adapters, 1 to 32767. `adapters`: as many as the
    network has, 1 to 1024. Raises ConfigError.

    Members:

    - `full` (in, 16): how many of them are full in this cycle. Adapters' packet buffers count, too: the document has
      the scheme see them (7.2).
    - `delivered` (in, 11): flits that adapters receive in this cycle, one of each at most.
    - `throttle` (out): no message may begin, as `estimate` is above `threshold`.
    - `estimate` (out, signed 18), `threshold` (out, 16): full buffers.

    Rules and numbers of the original:

    - *Gathering*: every 32 cycles the number of full buffers is taken, and the flits delivered since. Both are known 32
      cycles later.
    - *Estimate*: the line through the last two known numbers, followed to this cycle.
    - *Tuning*: every 96 cycles. If throughput has dropped by more than 25% since the period before, the threshold goes
      down by 4% of all buffers. If it has not, and the network throttles, it goes up by 1%. Else it stays.

    Assumed, as the document does not say: the threshold begins at 1%. It stays from 0 to `buffers`. Steps are rounded
    up. The original's way out of a local maximum, which goes back to the best threshold so far, is left out.

    Latency: a number taken in cycle t is known in t + 32 and in `throttle` from t + 33 on. Throughput: a number in 32
    cycles, and the flits of every cycle. Longest wait: an empty network throttles nobody. Three gatherings without a
    full buffer, 97 cycles at most, bring the estimate to 0.
    """

    def __init__(self, *, buffers: int, adapters: int) -> None:
        if not 1 <= buffers < 1 << COUNT_BITS - 1:
            raise ConfigError(f"SelfTuner: buffers = {buffers}: 1 to {(1 << COUNT_BITS - 1) - 1}")
        if not 1 <= adapters <= MOST_ADAPTERS:
            raise ConfigError(f"SelfTuner: adapters = {adapters}: 1 to {MOST_ADAPTERS}")
        self._buffers, self._adapters = buffers, adapters
        self.up = -(-buffers * UP_PERCENT // 100)
        self.down = -(-buffers * DOWN_PERCENT // 100)
        super().__init__(
            {
                "full": In(COUNT_BITS),
                "delivered": In(DELIVERED_BITS),
                "throttle": Out(1),
                "estimate": Out(signed(COUNT_BITS + 2)),
                "threshold": Out(COUNT_BITS, init=self.up),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step_bits = (GATHER_CYCLES - 1).bit_length()
        cycle, gather = Signal(range(GATHER_CYCLES)), Signal(range(TUNING_GATHERS))
        gathers, tunes = Signal(), Signal()
        m.d.comb += [
            gathers.eq(cycle == GATHER_CYCLES - 1),
            tunes.eq(gathers & (gather == TUNING_GATHERS - 1)),
        ]
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(gathers):
            m.d.sync += gather.eq(Mux(tunes, 0, gather + 1))

        # What is under way on the side band, and what has arrived. `line` is the estimate, times 32.
        under_way, known = Signal(COUNT_BITS), Signal(COUNT_BITS)
        line, slope = Signal(signed(COUNT_BITS + 2 + step_bits)), Signal(signed(COUNT_BITS + 1))
        with m.If(gathers):
            m.d.sync += [
                under_way.eq(self.full),
                known.eq(under_way),
                slope.eq(under_way - known),
                line.eq((under_way + (under_way - known)) << step_bits),
            ]
        with m.Else():
            m.d.sync += line.eq(line + slope)
        m.d.comb += [self.estimate.eq(line >> step_bits), self.throttle.eq(self.estimate > self.threshold)]

        # Flits since the last gathering, those under way on the side band, those of the period, of the one before.
        counted, sent, period, before = (
            Signal(range(self._adapters * cycles + 1), name=name)
            for name, cycles in (
                ("counted", GATHER_CYCLES),
                ("sent", GATHER_CYCLES),
                ("sum", TUNING_GATHERS * GATHER_CYCLES),
                ("last", TUNING_GATHERS * GATHER_CYCLES),
            )
        )
        arrived = Signal.like(before)
        m.d.comb += arrived.eq(period + sent)
        m.d.sync += counted.eq(counted + self.delivered)
        with m.If(gathers):
            m.d.sync += [counted.eq(0), sent.eq(counted + self.delivered), period.eq(arrived)]
        with m.If(tunes):
            m.d.sync += [period.eq(0), before.eq(arrived)]
            with m.If((arrived << 2) < before * DROP_QUARTERS):
                m.d.sync += self.threshold.eq(Mux(self.threshold < self.down, 0, self.threshold - self.down))
            with m.Elif(self.throttle):
                most = self._buffers - self.up
                m.d.sync += self.threshold.eq(
                    Mux(self.threshold > most, self._buffers, self.threshold + self.up)
                )
        return m
