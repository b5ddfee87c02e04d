"""Stage 4: crossbar traversal behind the input ports' VL schedulers (yum-2006 3.1)."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..working import works_when
from .allocators import allocator_class
from .flit import BufferedFlitLayout, route_field
from .multicast.crossing import Crossing, keep_reached
from .routing import routing_class
from .scheduler import has_tables, table_members, weighs_outputs

__all__ = ["CrossbarStage"]

CHAIN_PORTS = 4
"""Most ports for which a chain of choices is the smaller multiplexer of LUT4s; beyond it is an OR of granted data.

Measured on ECP5, chain against OR: 1422 against 1618 LUT4 for the lanai4 router, 5314 against 5003 with 5 ports and 4
VLs.
"""


class CrossbarStage(wiring.Component):
    """Moves at most one flit a cycle from each input, and to each output, into the output's VL buffer.

    A VL of an input competes if it has a flit, owns its output VL, and the output's buffer has room. With source routes
    a header loses the hop that it has just taken: its route moves down by `hop_bits` as it crosses. On the way to the
    management port it stays, as the agent sends the packet on from there. Flits of packets to be dropped leave the
    input without going anywhere, in their turn of the input's scheduler.

    Members (P ports; vectors of VLs are `vls` wide):

    - `non_empty` (in, P): as in `ReceiveStage`.
    - `drop` (in, P): as in `RouteStage`.
    - `holds` (in, P x P): as in `VlAllocationStage`.
    - `full` (in, P x P): `full[i][p]`, VLs of input i for which there is no room in the buffer of output p.
    - `read_select` (out, P), `flit` (in, P), `pop` (out, P): read sides of the input buffers.
    - `out_vl` (in, P): the output VL of the VL that is read.
    - `done` (out, P): VLs of input i whose tail leaves in this cycle.
    - `thrown` (out, P): the flit that leaves input i is thrown away.
    - `dropped` (out, P): that flit is a tail.
    - `write_valid`, `write_vl`, `write_data` (out, P): write sides of the output buffers.
    - `offer` (out, P), `offer_vl` (in, P), only if outputs choose by VL: as in `Allocator`.
    - `output_vl` (in, P x `vls`), only if outputs choose by VL and packets may change theirs: as in `Allocator`.
    - `closed` (in), `waits` (out), only with `RouterConfig.power_budget`: no flit may cross in this cycle; one could
      but for that.
    - `reach` (in, P x `multicast_nodes`), only with multicast: as in `RouteStage`. A VL may hold several outputs, and
      its flit leaves when it has gone to all of them (`Crossing`). In a header's set those behind the output stay.
    - `new_route` with the input's number (in), only for inputs where the routing function changes the route. They are
      the low bits that the header's route is to have.
    - `table`, `output_table` (in, P x `TableSignature`), only if the VL arbiter has tables: those of the inputs'
      schedulers and of the outputs' arbiters.

    Latency: 1 cycle from input to output buffer, combinational from registers to the buffers' write side.
    Throughput: a flit a cycle from each input and to each output.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports, vl_bits = config.link.vls, config.ports, config.link.vl_bits
        flit = BufferedFlitLayout(config.link)
        offers: dict[str, Any] = {"offer": Out(vls).array(ports), "offer_vl": In(vls).array(ports)}
        output_vls: dict[str, Any] = {"output_vl": In(vl_bits).array(ports, vls)}
        super().__init__(
            {
                "non_empty": In(vls).array(ports),
                "drop": In(vls).array(ports),
                "holds": In(vls).array(ports, ports),
                "full": In(vls).array(ports, ports),
                "read_select": Out(vls).array(ports),
                "out_vl": In(vl_bits).array(ports),
                "flit": In(flit).array(ports),
                "pop": Out(1).array(ports),
                "done": Out(vls).array(ports),
                "thrown": Out(1).array(ports),
                "dropped": Out(1).array(ports),
                "write_valid": Out(1).array(ports),
                "write_vl": Out(vl_bits).array(ports),
                "write_data": Out(flit).array(ports),
            }
            | (offers if weighs_outputs(config) else {})
            | (output_vls if weighs_outputs(config) and config.vl_selection != "same" else {})
            | {
                f"new_route_{i}": In(routing_class(config).route_bits(config))
                for i in routing_class(config).rewrites_at(config)
            }
            | ({"closed": In(1), "waits": Out(1)} if config.power_budget else {})
            | ({"reach": In(config.multicast_nodes).array(ports)} if config.multicast_nodes else {})
            | table_members(config, ports)
            | table_members(config, ports, name="output_table")
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, ports = self._config.link, range(self._config.ports)
        layout, route = BufferedFlitLayout(link), route_field(link)
        m.submodules.allocator = allocator = allocator_class(self._config)(self._config)
        for i in ports:
            if weighs_outputs(self._config):
                m.d.comb += [self.offer[i].eq(allocator.offer[i]), allocator.offer_vl[i].eq(self.offer_vl[i])]
                if self._config.vl_selection != "same":
                    m.d.comb += [
                        inner.eq(outer)
                        for inner, outer in zip(allocator.output_vl[i], self.output_vl[i], strict=True)
                    ]
            if has_tables(self._config):
                wiring.connect(m, wiring.flipped(self.table[i]), allocator.table[i])
                wiring.connect(m, wiring.flipped(self.output_table[i]), allocator.output_table[i])
        crossing: list[Value] = []
        ready: list[Value] = []
        several = self._config.multicast_nodes > 0
        for i in ports:
            accepted = allocator.accepted[i]
            crossed = Crossing(m, i, self._config, self.holds[i]) if several else None
            for p in ports:
                goes = self.non_empty[i] & self.holds[i][p] & ~self.full[i][p]
                if self._config.power_budget:
                    ready.append(goes.any())
                    goes = goes & ~self.closed.replicate(link.vls)
                if crossed:
                    goes = goes & ~crossed.sent[p]
                m.d.comb += allocator.request[i][p].eq(goes)
            throw = Signal(link.vls, name=f"throw_{i}")
            m.d.comb += [
                throw.eq(self.non_empty[i] & self.drop[i]),
                allocator.alone[i].eq(throw),
                allocator.tail[i].eq(self.flit[i].tail),
                self.read_select[i].eq(allocator.select[i]),
                self.pop[i].eq(
                    crossed.add(allocator.select[i], accepted, [grant[i] for grant in allocator.grant])
                    if crossed
                    else accepted
                ),
                self.thrown[i].eq((allocator.select[i] & throw).any()),
                self.dropped[i].eq((self.done[i] & self.drop[i]).any()),
            ]
            with m.If(self.pop[i] & self.flit[i].tail):
                m.d.comb += self.done[i].eq(allocator.select[i])
            m.submodules[f"from_{i}"] = leaving = Module()
            flit: data.View = Signal(layout, name=f"flit_{i}")
            works_when(leaving, accepted if several else self.pop[i])
            leaving.d.comb += flit.eq(self.flit[i])
            if routing_class(self._config).strips:
                strip: Value = self.flit[i].head
                if self._config.management:
                    strip = strip & ~(self.holds[i][0] & allocator.select[i]).any()
                with leaving.If(strip):
                    leaving.d.comb += Value.cast(flit.data)[route].eq(
                        self.flit[i].data[route] >> link.hop_bits
                    )
            if hasattr(self, f"new_route_{i}"):
                new = getattr(self, f"new_route_{i}")
                with leaving.If(self.flit[i].head):
                    leaving.d.comb += Value.cast(flit.data)[route.start : route.start + len(new)].eq(new)
            crossing.append(Cat(self.out_vl[i], flit))
        if self._config.power_budget:
            m.d.comb += self.waits.eq(Cat(*ready).any())
        for p in ports:
            m.submodules[f"to_{p}"] = coming = Module()
            works_when(coming, self.write_valid[p])
            m.d.comb += self.write_valid[p].eq(allocator.grant[p].any())
            chosen: Value = crossing[0]
            if len(ports) <= CHAIN_PORTS:
                for i in ports[1:]:
                    chosen = Mux(allocator.grant[p][i], crossing[i], chosen)
            else:
                chosen = reduce(or_, [Mux(allocator.grant[p][i], crossing[i], 0) for i in ports])
            coming.d.comb += Cat(self.write_vl[p], self.write_data[p]).eq(chosen)
            if several:
                keep_reached(coming, self._config, chosen[link.vl_bits :], self.write_data[p], self.reach[p])
        return m
