"""Reports for a router's agent: the connections whose last data packet has passed (yum-2006 4.1)."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..packet import HEADER_LAYOUT, Kind
from .flit import BufferedFlitLayout

__all__ = ["RELEASE", "ReleaseReports"]

RELEASE = data.StructLayout(
    {name: HEADER_LAYOUT[name].width for name in ("source", "destination", "flow", "bandwidth")}
    | {"in_port": 6, "out_port": 6}
)
"""A report: names and bandwidth of the header, and the ports by which the packet came in and goes out."""
_DEPTH = 8
"""Reports that can wait for the agent, beside one of each input."""


class ReleaseReports(wiring.Component):
    """Watches the headers that cross, and keeps those of kind RELEASE that are on a data VL.

    Members (P ports):

    - `crosses`, `flit`, `vl` (in, P): a flit of input i crosses in this cycle, and its VL.
    - `out` (in, P x P bits): the output that it crosses to, one-hot.
    - `report` (out, `RELEASE`), `valid` (out): the oldest report.
    - `take` (in): it has been read.
    - `lost` (out, 32): packets without a report since reset, modulo 2^32.
    - `moves` (out): a report goes from its input to the others in this cycle.

    The packet passes, whatever becomes of its report. It has none in these cases:

    - The agent has too many that wait, and so has the input.
    - On a link of fewer than 128 bits: two such packets of one input cross flit by flit in turn, or the packet ends
      before its names.

    Reports of inputs that come in the same cycle wait at their inputs. The lowest input goes first. Latency: 3 cycles
    from the flit that holds the names. Throughput: a report a cycle. Reset: no report.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        ports = config.ports
        super().__init__(
            {
                "crosses": In(1).array(ports),
                "flit": In(BufferedFlitLayout(config.link)).array(ports),
                "vl": In(config.link.vl_bits).array(ports),
                "out": In(ports).array(ports),
                "report": Out(RELEASE),
                "valid": Out(1),
                "take": In(1),
                "lost": Out(32),
                "moves": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = self._config.ports
        m.submodules.waiting = waiting = fifo.SyncFIFO(width=RELEASE.size, depth=_DEPTH)
        held = [Signal(RELEASE, name=f"held_{i}") for i in range(ports)]
        holds = [Signal(name=f"holds_{i}") for i in range(ports)]
        missed: list[Value] = []
        free: Value = waiting.w_rdy
        for i in range(ports):
            found, report, cut = self._input(m, i)
            goes = Signal(name=f"goes_{i}")
            m.d.comb += goes.eq(holds[i] & free)
            free = free & ~holds[i]
            with m.If(goes):
                m.d.comb += [waiting.w_en.eq(1), waiting.w_data.eq(held[i])]
                m.d.sync += holds[i].eq(0)
            with m.If(found & (goes | ~holds[i])):
                m.d.sync += [holds[i].eq(1), held[i].eq(report)]
            missed += [found & holds[i] & ~goes, cut]
        m.d.comb += [
            self.moves.eq(waiting.w_en),
            self.report.eq(waiting.r_data),
            self.valid.eq(waiting.r_rdy),
            waiting.r_en.eq(self.take),
        ]
        m.d.sync += self.lost.eq(self.lost + sum(missed))
        return m

    def _input(self, m: Module, i: int) -> tuple[Value, data.View, Value]:
        """Whether a report of input i is complete in this cycle, the report, and the packets that lose theirs."""
        bits, flit = self._config.link.flit_bits, self.flit[i]
        bandwidth, names = HEADER_LAYOUT["bandwidth"], ("source", "destination", "flow")
        place = HEADER_LAYOUT["flow"].offset // bits
        # All names stand in one word of 32 bits, so in one flit.
        assert {HEADER_LAYOUT[name].offset // bits for name in names} == {place}
        assert HEADER_LAYOUT["kind"].offset == 0
        last = Signal(name=f"last_{i}")
        found, cut = Signal(name=f"found_{i}"), Signal(2, name=f"cut_{i}")
        report: data.View = Signal(RELEASE, name=f"report_{i}")
        m.d.comb += last.eq(
            self.crosses[i]
            & flit.head
            & (flit.data[: HEADER_LAYOUT["kind"].width] == Kind.RELEASE.value)
            & (self.vl[i] != (self._config.control_vl or 16))
        )

        def word(field: data.Field) -> Value:
            low = field.offset % bits
            return flit.data[low : low + field.width]  # type: ignore[no-any-return]

        units, kept = word(bandwidth), Signal(8, name=f"kept_{i}")
        out_port = Signal(6, name=f"out_port_{i}")
        for p in range(1, self._config.ports):
            with m.If(self.out[i][p]):
                m.d.comb += out_port.eq(p)
        parts = {name: word(HEADER_LAYOUT[name]) for name in names}
        parts |= {"bandwidth": units if place == 0 else kept, "in_port": Const(i, 6), "out_port": out_port}
        # The whole report at once: in Verilog a part that is constant would be a process that nothing starts.
        m.d.comb += report.eq(Cat(*(parts[name] for name in RELEASE.members)))
        if place == 0:
            m.d.comb += found.eq(last)
            return found, report, cut
        busy, vl = Signal(name=f"busy_{i}"), Signal(self._config.link.vl_bits, name=f"vl_{i}")
        index = Signal(range(place + 1), name=f"index_{i}")
        mine, begins = Signal(name=f"mine_{i}"), Signal(name=f"begins_{i}")
        asked = bandwidth.offset // bits
        m.d.comb += [
            mine.eq(self.crosses[i] & busy & (vl == self.vl[i])),
            begins.eq(last & ~busy & ~flit.tail),
            found.eq(mine & (index == place)),
            # The second of two packets at a time, or one that has no names, is lost.
            cut.eq((last & ~begins) + (mine & flit.tail & ~found)),
        ]
        with m.If(begins):
            m.d.sync += [busy.eq(1), vl.eq(self.vl[i]), index.eq(1)]
        with m.Elif(mine):
            m.d.sync += [busy.eq(~(found | flit.tail)), index.eq(index + 1)]
        with m.If(Mux(asked == 0, begins, mine & (index == asked))):
            m.d.sync += kept.eq(units)
        return found, report, cut
