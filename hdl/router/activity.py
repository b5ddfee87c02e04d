"""Activity counters: what the router did, to be turned into energy (yum-2006 3.4)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig

__all__ = ["COUNTED", "ActivityCounters"]

COUNTED = ("buffer_writes", "buffer_reads", "arbitrations", "crossbar_flits")
"""Counters of a whole router."""


class ActivityCounters(wiring.Component):
    """Counts flits and decisions of a router, from one bit a port and cycle each.

    Members (P ports):

    - `arrived` (in, P bits): a flit is written into the input buffer.
    - `popped` (in, P bits): a flit leaves the input buffer.
    - `crossed` (in, P bits): a flit is written into the output buffer.
    - `sent` (in, P bits): a flit leaves the output buffer.
    - `sent_vl` (in, P): VL of the flit that is sent.
    - `ended` (in, P bits): the flit that leaves input i is a tail that goes on.
    - `buffer_writes`, `buffer_reads`, `arbitrations`, `crossbar_flits` (out, 32): counts since reset, modulo 2^32.
    - `select_port`, `select_vl` (in): a link and a VL.
    - `link_flits` (out, 32): flits of that VL on that link since reset, modulo 2^32, in the same cycle.
    - `port_flits` (out, P x 32): flits of all VLs on each link since reset, modulo 2^32.
    - `selected_flits` (out, 32): those of the selected link, in the same cycle.

    An arbitration is a decision that was followed, one of these:

    - the choice of a crossbar input's VL scheduler
    - the choice of a crossbar output
    - the choice of a link's VL scheduler
    - the output VL of a packet, counted as its tail crosses

    The flits of links are counted in a memory a port. Latency: a counter shows an event from the next cycle on.
    Throughput: every event of a cycle.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        ports = config.ports
        members = {name: In(ports) for name in ("arrived", "popped", "crossed", "sent", "ended")}
        members |= {name: Out(32) for name in COUNTED}
        super().__init__(
            members
            | {
                "sent_vl": In(config.link.vl_bits).array(ports),
                "select_port": In(6),
                "select_vl": In(config.link.vl_bits),
                "link_flits": Out(32),
                "port_flits": Out(32).array(ports),
                "selected_flits": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arrived, popped, crossed, sent, ended = (
            sum(value[p] for p in range(self._config.ports))
            for value in (self.arrived, self.popped, self.crossed, self.sent, self.ended)
        )
        m.d.sync += [
            self.buffer_writes.eq(self.buffer_writes + arrived + crossed),
            self.buffer_reads.eq(self.buffer_reads + popped + sent),
            self.arbitrations.eq(self.arbitrations + popped + crossed + sent + ended),
            self.crossbar_flits.eq(self.crossbar_flits + crossed),
        ]
        vls = self._config.link.vls
        self._rows: list[memory.Memory] = []
        for p in range(self._config.ports):
            m.submodules[f"link_{p}"] = rows = memory.Memory(
                shape=unsigned(32), depth=1 << len(self.select_vl), init=[]
            )
            self._rows.append(rows)
            write, before, show = (
                rows.write_port(),
                rows.read_port(domain="comb"),
                rows.read_port(domain="comb"),
            )
            # A memory has no reset: these bits say which rows count.
            touched = Signal(vls, name=f"touched_{p}")
            m.d.comb += [
                before.addr.eq(self.sent_vl[p]),
                write.addr.eq(self.sent_vl[p]),
                write.data.eq(Mux(touched.bit_select(self.sent_vl[p], 1), before.data, 0) + 1),
                write.en.eq(self.sent[p]),
                show.addr.eq(self.select_vl),
            ]
            with m.If(self.sent[p]):
                m.d.sync += touched.bit_select(self.sent_vl[p], 1).eq(1)
            m.d.sync += self.port_flits[p].eq(self.port_flits[p] + self.sent[p])
            with m.If(self.select_port == p):
                m.d.comb += [
                    self.link_flits.eq(Mux(touched.bit_select(self.select_vl, 1), show.data, 0)),
                    self.selected_flits.eq(self.port_flits[p]),
                ]
        return m
