"""Reports for a router's agent: the senders of the packets that the router throws away."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import data, fifo, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..packet import HEADER_LAYOUT
from .flit import BufferedFlitLayout

__all__ = ["REPORT", "DropReports"]

REPORT = data.StructLayout(
    {"source": HEADER_LAYOUT["source"].width, "destination": HEADER_LAYOUT["destination"].width, "port": 6}
)
"""A report: the packet's source and destination, and the input port that it came in by."""
_DEPTH = 8
"""Reports that can wait for the agent."""


class DropReports(wiring.Component):
    """Watches the flits that are thrown away, and keeps the names in their headers.

    Members (P ports):

    - `thrown`, `flit`, `vl` (in, P): a flit of input i is thrown away in this cycle, and its VL.
    - `report` (out, `REPORT`), `valid` (out): the oldest report.
    - `take` (in): it has been read.
    - `lost` (out, 32): packets without a report since reset, modulo 2^32.

    A packet has no report in these cases:

    - Too many reports wait.
    - Two packets of one input were thrown away flit by flit in turn.
    - Two packets came in one cycle.
    - The packet ended before its names.

    Control packets get no report, so that reports cannot bring forth others. Latency: 2 cycles from the flit that
    holds the names. Throughput: a report a cycle. Reset: no report.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        ports = config.ports
        super().__init__(
            {
                "thrown": In(1).array(ports),
                "flit": In(BufferedFlitLayout(config.link)).array(ports),
                "vl": In(config.link.vl_bits).array(ports),
                "report": Out(REPORT),
                "valid": Out(1),
                "take": In(1),
                "lost": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, bits = self._config, self._config.link.flit_bits
        source, destination = HEADER_LAYOUT["source"], HEADER_LAYOUT["destination"]
        # Both names stand in one word of 32 bits, so in one flit.
        place = destination.offset // bits
        low = destination.offset % bits
        assert source.offset == destination.offset + destination.width
        names = slice(low, low + destination.width + source.width)

        m.submodules.waiting = waiting = fifo.SyncFIFO(width=REPORT.size, depth=_DEPTH)
        found = [Signal(name=f"found_{i}") for i in range(config.ports)]
        missed = [Signal(name=f"missed_{i}") for i in range(config.ports)]
        reports: list[data.View] = []
        for i in range(config.ports):
            flit, thrown = self.flit[i], Signal(name=f"thrown_{i}")
            m.d.comb += thrown.eq(self.thrown[i] & (self.vl[i] != (config.control_vl or 16)))
            if place == 0:
                m.d.comb += found[i].eq(thrown & flit.head)
            else:
                busy, vl = Signal(name=f"busy_{i}"), Signal(config.link.vl_bits, name=f"vl_{i}")
                index = Signal(range(place + 1), name=f"index_{i}")
                mine = Signal(name=f"mine_{i}")
                m.d.comb += [
                    mine.eq(thrown & busy & (vl == self.vl[i])),
                    found[i].eq(mine & (index == place)),
                    missed[i].eq((thrown & flit.head & (busy | flit.tail)) | (mine & flit.tail & ~found[i])),
                ]
                with m.If(thrown & flit.head & ~busy & ~flit.tail):
                    m.d.sync += [busy.eq(1), vl.eq(self.vl[i]), index.eq(1)]
                with m.Elif(mine):
                    m.d.sync += [busy.eq(~(found[i] | flit.tail)), index.eq(index + 1)]
            report: data.View = Signal(REPORT, name=f"report_{i}")
            m.d.comb += [
                Cat(report.destination, report.source).eq(flit.data[names]),
                report.port.eq(i),
            ]
            reports.append(report)
        # The lowest input is first; a packet that comes with it in the same cycle gets no report.
        chosen: data.View = Signal(REPORT)
        for i in reversed(range(config.ports)):
            with m.If(found[i]):
                m.d.comb += chosen.eq(reports[i])
        any_found = Signal()
        m.d.comb += [
            any_found.eq(Cat(*found).any()),
            waiting.w_en.eq(any_found),
            waiting.w_data.eq(chosen),
            self.report.eq(waiting.r_data),
            self.valid.eq(waiting.r_rdy),
            waiting.r_en.eq(self.take),
        ]
        m.d.sync += self.lost.eq(self.lost + sum(missed) + sum(found) - (any_found & waiting.w_rdy))
        return m
