"""A node's sink: takes every flit, checks it, counts it."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..link import FlitLayout, LinkSignature
from .arrivals import Arrivals
from .checker import Checker
from .config import TrafficConfig
from .credit_return import CreditReturn
from .packet import BORN_BITS, IDENTITY
from .ports import ACCESS, CONTROL, HISTOGRAM_BASE, NODE
from .statistics import Kind, Tally, TallyBank, bin_number

__all__ = ["Sink"]

_ERROR_COUNTS = ("FRAMING_ERRORS", "INTEGRITY_ERRORS", "ORDER_ERRORS", "DESTINATION_ERRORS")
"""Registers of the counts of errors, in the order of `checker.ERRORS`."""


class Sink(wiring.Component):
    """Receives at the full rate of the link, into no buffer: a flit is checked as it comes.

    Members:

    - `node` (in): its number.
    - `control` (in, `CONTROL`): from the measurement.
    - `access` (in, `ACCESS`), `answer` (out, 32): statistics, histogram, SINK and the error registers.
    - `load` (in), `word` (in, 32): state of the random stalls.
    - `rx` (in, `LinkSignature`): the link.
    - `done` (out): a tagged packet has arrived whole, 2 cycles after its tail was on the link.
    - `received` (out): any packet has arrived whole.
    - `idle` (out): nothing is under way.

    The latency of a packet is the cycle of its tail on `rx` less that of its birth. Latency: 2 cycles from a tail on
    `rx` to `done`. Throughput: a flit a cycle. Reset: no credit is owed, there is no error.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        self.arrivals = Arrivals(config) if config.watched else None
        """The registers that a simulation reads (`watched_signals`), if it does."""
        super().__init__(
            {
                "node": In(config.node_bits),
                "control": In(CONTROL),
                "access": In(ACCESS),
                "answer": Out(32),
                "load": In(1),
                "word": In(32),
                "rx": In(LinkSignature(config.link)),
                "done": Out(1),
                "received": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        m.submodules.checker = checker = Checker(config)
        m.submodules.credits = credits = CreditReturn(config)
        wiring.connect(m, wiring.flipped(self.rx), credits.rx)
        flit: data.View = Signal(FlitLayout(link))
        arrived, window, unordered = Signal(), Signal(), Signal()
        m.d.sync += [arrived.eq(self.rx.valid), window.eq(self.control.window)]
        with m.If(self.rx.valid):
            m.d.sync += flit.eq(self.rx.payload)
        m.d.comb += [
            checker.node.eq(self.node),
            checker.ordered.eq(~unordered),
            checker.flit.eq(flit),
            checker.valid.eq(arrived),
            credits.load.eq(self.load),
            credits.word.eq(self.word),
        ]

        # The statistics count these values, in the cycle after the check.
        identity: data.View = Signal(IDENTITY)
        latency, flits, done, tagged = Signal(BORN_BITS), Signal.like(checker.flits), Signal(), Signal()
        m.d.sync += [
            flits.eq(Mux(window, checker.flits, 0)),
            done.eq(checker.done),
            tagged.eq(checker.done & checker.identity.tagged),
        ]
        with m.If(arrived):
            m.d.sync += [
                identity.eq(checker.identity),
                latency.eq(self.control.now - 1 - checker.identity.born),
            ]
        m.d.comb += [self.done.eq(tagged), self.received.eq(done), self.idle.eq(credits.idle & ~arrived)]

        kept: dict[str, tuple[int, int, Kind]] = {
            "accepted_flits": (32, len(flits), "sum"),
            "latency_packets": (32, 1, "sum"),
            "latency_sum": (64, BORN_BITS, "sum"),
            "latency_min": (32, BORN_BITS, "min"),
            "latency_max": (32, BORN_BITS, "max"),
        }
        if not config.compact:
            kept["frames"] = (32, 1, "sum")
        m.submodules.statistics = statistics = TallyBank(config, kept)
        given: dict[str, tuple[Any, Any]] = {
            "accepted_flits": (flits != 0, flits),
            "latency_packets": (tagged, 1),
            "latency_sum": (tagged, latency),
            "latency_min": (tagged, latency),
            "latency_max": (tagged, latency),
            "frames": (tagged & identity.frame_end, 1),
        }
        for name in kept:
            give, (valid, amount) = getattr(statistics, name), given[name]
            m.d.comb += [give.valid.eq(valid), give.row.eq(identity.traffic_class), give.amount.eq(amount)]

        if self.arrivals is not None:
            m.submodules.arrivals = self.arrivals
            all_flits, length = Signal.like(checker.flits), Signal.like(checker.length)
            m.d.sync += [all_flits.eq(checker.flits), length.eq(checker.length)]
            m.d.comb += [
                self.arrivals.flits.eq(all_flits),
                self.arrivals.done.eq(done),
                self.arrivals.packet.identity.eq(identity),
                self.arrivals.packet.latency.eq(latency),
                self.arrivals.packet.flits.eq(length),
            ]

        m.submodules.histogram = histogram = Tally(
            rows=1 << config.class_bits + config.bin_bits,
            bits=32,
            amount_bits=1,
            block=config.histogram_memory == "block",
        )
        in_histogram = self.access.address[16:] == HISTOGRAM_BASE >> 16
        m.d.comb += [
            statistics.control.eq(self.control),
            statistics.access.eq(self.access),
            histogram.give.valid.eq(tagged),
            histogram.give.row.eq(
                Cat(bin_number(m, latency, config), identity.traffic_class[: config.class_bits])
            ),
            histogram.give.amount.eq(1),
            histogram.clear.eq(self.control.clear),
            histogram.clear_row.eq(self.control.now),
            histogram.read.eq(self.access.read & in_histogram),
            histogram.read_row.eq(self.access.address[2:]),
        ]
        counted = Signal()
        with m.If(self.access.read):
            m.d.sync += counted.eq(in_histogram)
        own = self._registers(m, checker, credits, unordered, flit)
        m.d.comb += self.answer.eq(statistics.answer | own | Mux(counted, histogram.value, 0))
        return m

    def _registers(
        self, m: Module, checker: Checker, credits: CreditReturn, unordered: Signal, flit: data.View
    ) -> Signal:
        """SINK and the error registers; returns the word read in the cycle before."""
        access, address = self.access, self.access.address
        hold, stall = Signal(), Signal(8)
        m.d.comb += [credits.hold.eq(hold), credits.stall.eq(stall)]
        sink = NODE["SINK"].fields
        with m.If(access.write & (address == NODE["SINK"].offset)):
            m.d.sync += [
                hold.eq(access.data[sink["hold"].low]),
                unordered.eq(access.data[sink["unordered"].low]),
                stall.eq(access.data[sink["stall"].low :]),
            ]
        errors = checker.errors.as_value()
        seen, first, first_cycle = Signal(4), Signal(18), Signal(32)
        counts = [Signal(32, name=f"errors_{i}") for i in range(0 if self._config.compact else 4)]
        with m.If(self.control.clear):
            m.d.sync += [seen.eq(0), first.eq(0), first_cycle.eq(0), *(count.eq(0) for count in counts)]
        with m.Elif(errors.any()):
            m.d.sync += [
                seen.eq(seen | errors),
                *(count.eq(count + error) for count, error in zip(counts, errors, strict=False)),
            ]
            with m.If(seen == 0):
                # The flit was on the link a cycle before.
                m.d.sync += [
                    first[:4].eq(errors),
                    first[4:8].eq(flit.vl),
                    first[8:18].eq(checker.identity.source),
                    first_cycle.eq(self.control.now - 1),
                ]
        answer = Signal(32)
        shown = {
            "SINK": hold << sink["hold"].low
            | unordered << sink["unordered"].low
            | stall << sink["stall"].low,
            "ERRORS": seen,
            "FIRST_ERROR": first,
            "FIRST_ERROR_CYCLE": first_cycle,
        }
        shown |= dict(zip(_ERROR_COUNTS, counts, strict=False))
        with m.If(access.read):
            m.d.sync += answer.eq(0)
            with m.Switch(address):
                for name, value in shown.items():
                    with m.Case(NODE[name].offset):
                        m.d.sync += answer.eq(value)
        return answer
