"""The measurement: warm-up, window, drain, the packets that count, and the time when they have all arrived."""

from __future__ import annotations

from operator import add
from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..balanced import balanced
from .config import TrafficConfig
from .packet import BORN_BITS
from .ports import CONTROL, MEASUREMENT, MEASUREMENT_NODE, REQUEST, RESPONSE, Phase, Verdict

__all__ = ["MOST_MEASURED_CYCLES", "MOST_WARMUP_CYCLES", "Measurement"]

STEADY_CYCLES = 8
"""Cycles without anything outstanding after which the drain is over.

Births and arrivals pass registers on their way, a birth 2 cycles and an arrival no fewer. So 4 would do.
"""


MOST_WARMUP_CYCLES = 1 << 31
"""Longest warm-up: differences of times have 32 bits."""
MOST_MEASURED_CYCLES = 1 << BORN_BITS
"""Most cycles of window and drain together: no latency of a packet that counts has more bits than a birth."""


class Measurement(wiring.Component):
    """Conducts a measurement of all nodes.

    Members:

    - `request` (in, `REQUEST`), `response` (out, `RESPONSE`): `measurement.rdl`, at node `MEASUREMENT_NODE`.
    - `control` (out, `CONTROL`): to all nodes.
    - `born`, `done`, `behind` (in, `nodes` each): from the nodes.
    - `phase` (out, `Phase`): the phase of the measurement.
    - `verdict` (out, `Verdict`): its result.
    - `event` (out): changes its value when the phase changes, for a coroutine to wait for.

    A start stops the sources and clears the statistics. This takes `clear_cycles`, and lasts until the tagged packets
    of a saturated measurement before it have arrived, LIMIT cycles at most. Then the sources make packets for WARMUP,
    WINDOW and the drain. Packets born in the window are tagged. Only they count for latencies, and the drain lasts
    until all of them have arrived. Untagged packets go on being made, so that the last tagged ones meet the same load
    as the first. The verdicts:

    - COMPLETE: every tagged packet has arrived.
    - SATURATED: LIMIT cycles of draining did not suffice. So the means of the packets that have arrived are too small
      and must not be used.

    A source's queue that grows during the window takes about (offered - accepted) / accepted * WINDOW cycles to drain.
    So a LIMIT of 0.05 * WINDOW (and a few times the network's latency) tells a network that accepts less than 0.95 of
    the load. Packets that were lost in the network end in SATURATED too; the sinks' errors and the routers' counters
    tell why.

    After the verdict the sources stop, unless CONTROL.go_on. Latency: the phases' cycles, as above. Throughput: one
    measurement at a time. Reset: idle, no verdict.

    `control.now` counts modulo 2^32, and may wrap in a measurement: times are compared by their differences. Counts
    from a start on do not wrap within `MOST_WARMUP_CYCLES`, and `MOST_MEASURED_CYCLES` of window and drain.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        nodes = config.nodes
        super().__init__(
            {
                "request": In(REQUEST),
                "response": Out(RESPONSE),
                "control": Out(CONTROL),
                "born": In(nodes),
                "done": In(nodes),
                "behind": In(nodes),
                "phase": Out(Phase),
                "verdict": Out(Verdict),
                "event": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control, phase = self.control, self.phase
        warmup, window, limit = Signal(32), Signal(32, init=1), Signal(32, init=1)
        go_on, start, stop = Signal(), Signal(), Signal()
        left, drained, outstanding, peak = (Signal(32) for _ in range(4))
        steady = Signal(range(STEADY_CYCLES + 1))

        m.d.sync += [control.now.eq(control.now + 1), left.eq(left - 1)]
        births, arrivals = balanced(add, self.born), balanced(add, self.done)
        with m.If(self.born.any() | self.done.any()):
            m.d.sync += outstanding.eq(outstanding + births - arrivals)
        if not self._config.compact:
            with m.If(~outstanding[31] & (outstanding > peak)):
                m.d.sync += peak.eq(outstanding)

        def enter(new: Any) -> list[Any]:
            return [phase.eq(new), self.event.eq(~self.event)]

        through = Signal()
        m.d.comb += through.eq(left == 0)
        with m.Switch(phase):
            with m.Case(Phase.IDLE, Phase.DONE), m.If(start):
                m.d.sync += [
                    *enter(Phase.CLEAR),
                    left.eq(self._config.clear_cycles - 1),
                    control.clear.eq(1),
                    control.run.eq(0),
                    self.verdict.eq(Verdict.NONE),
                    drained.eq(0),
                ]
            with m.Case(Phase.CLEAR):
                with m.If(through & (outstanding != 0) & (drained != limit)):
                    m.d.sync += [left.eq(0), drained.eq(drained + 1)]
                with m.Elif(through):
                    m.d.sync += [
                        *enter(Phase.WARMUP),
                        outstanding.eq(0),
                        peak.eq(0),
                        drained.eq(0),
                        control.clear.eq(0),
                        control.run.eq(1),
                        control.window_start.eq(control.now + 1 + warmup),
                        control.window_cycles.eq(window),
                        left.eq(warmup - 1),
                    ]
                    with m.If(warmup == 0):
                        m.d.sync += [phase.eq(Phase.WINDOW), control.window.eq(1), left.eq(window - 1)]
            with m.Case(Phase.WARMUP), m.If(through):
                m.d.sync += [*enter(Phase.WINDOW), control.window.eq(1), left.eq(window - 1)]
            with m.Case(Phase.WINDOW), m.If(through):
                m.d.sync += [
                    *enter(Phase.DRAIN),
                    control.window.eq(0),
                    left.eq(limit - 1),
                    steady.eq(0),
                ]
            with m.Case(Phase.DRAIN):
                m.d.sync += [
                    drained.eq(drained + 1),
                    steady.eq(Mux((outstanding == 0) & ~self.behind.any(), steady + 1, 0)),
                ]
                with m.If((steady == STEADY_CYCLES) | through):
                    verdict = Mux(steady == STEADY_CYCLES, Verdict.COMPLETE, Verdict.SATURATED)
                    m.d.sync += [*enter(Phase.DONE), self.verdict.eq(verdict), control.run.eq(go_on)]
        with m.If(stop):
            m.d.sync += control.run.eq(0)

        self._registers(m, warmup, window, limit, go_on, start, stop, outstanding, drained, peak)
        return m

    def _registers(
        self,
        m: Module,
        warmup: Signal,
        window: Signal,
        limit: Signal,
        go_on: Signal,
        start: Signal,
        stop: Signal,
        outstanding: Signal,
        drained: Signal,
        peak: Signal,
    ) -> None:
        """Adds the registers, as software sees them."""
        request = self.request
        mine = request.valid & (request.node == MEASUREMENT_NODE)
        control, status = MEASUREMENT["CONTROL"].fields, MEASUREMENT["STATUS"].fields
        with m.If(mine & request.write), m.Switch(request.address):
            for name, register in {"WARMUP": warmup, "WINDOW": window, "LIMIT": limit}.items():
                with m.Case(MEASUREMENT[name].offset):
                    m.d.sync += register.eq(request.data)
            with m.Case(MEASUREMENT["CONTROL"].offset):
                m.d.sync += go_on.eq(request.data[control["go_on"].low])
                m.d.comb += [
                    start.eq(request.data[control["start"].low]),
                    stop.eq(request.data[control["stop"].low]),
                ]
        shown = {
            "WARMUP": warmup,
            "WINDOW": window,
            "LIMIT": limit,
            "CONTROL": go_on << control["go_on"].low,
            "STATUS": self.phase.as_value() << status["phase"].low
            | self.verdict.as_value() << status["verdict"].low,
            "OUTSTANDING": outstanding,
            "NOW": self.control.now,
            "DRAINED": drained,
            "PEAK": peak,
        }
        # As many registers as in a node, so that all answers come after READ_CYCLES.
        word, later = Signal(32), Signal(32)
        read, read_later = Signal(), Signal()
        m.d.sync += [
            word.eq(0),
            read.eq(mine & ~request.write),
        ]
        if self._config.compact:
            # Whoever asks waits for the answer, and asks for one word at a time.
            m.d.comb += [self.response.data.eq(word), self.response.valid.eq(read)]
        else:
            m.d.sync += [
                later.eq(word),
                read_later.eq(read),
                self.response.data.eq(later),
                self.response.valid.eq(read_later),
            ]
        with m.If(mine & ~request.write), m.Switch(request.address):
            for name, value in shown.items():
                with m.Case(MEASUREMENT[name].offset):
                    m.d.sync += word.eq(value)
