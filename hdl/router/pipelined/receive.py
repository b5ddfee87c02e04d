"""Stages 1 and 2 of the pipelined router: a link register, routing beside it, and VL buffers."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...link import FlitLayout, LinkSignature
from ...packet import HEADER_LAYOUT, Kind
from ..flit import BufferedFlitLayout, route_field
from ..routing import routing_class
from .vl_buffer import PipelinedVlBuffer

__all__ = ["PipelinedReceiveStage"]


class PipelinedReceiveStage(wiring.Component):
    """Input of one port: a link register, the route of each packet, the VL buffers, and the credits that go back.

    The first flit of a packet is routed in the link register, and its output port goes into the buffer with it. A
    header that comes to an idle VL has its port at once. Otherwise the port is read when the packet before has left.
    With source routes the header loses its hop on the way into the buffer.

    Parameters: `config` is the router's, `in_port` the input's number.

    Members (vectors of VLs are `vls` wide):

    - `rx` (in, `LinkSignature`): the link. A credit goes out in the cycle after its flit has left the buffer.
    - `connected` (in, P): ports that lead somewhere.
    - `position` (in, its `position_layout`), only if the routing function has one.
    - `arrived` (out, `vls`): one-hot, the VL of the flit in the link register; 0 if there is none.
    - `non_empty` (out): VLs with a flit in the buffer; registers.
    - `read_select`, `next_select`, `next_stays` (in), `flit` (out, `BufferedFlitLayout`), `last` (out), `pop` (in):
      read side of the `PipelinedVlBuffer`.
    - `want` (out, P x `vls`): `want[p]`, VLs that wait for their output VL at port p; registers.
    - `taken` (in): VLs that are given their output VL in this cycle.
    - `drop` (out): VLs whose packet is thrown away; registers. The cases are those of `RouteStage`.
    - `done` (in): VLs whose tail leaves the buffer.

    Latency: a header on the link in cycle t is in the link register in t + 1, in `want` or `drop` in t + 2. That of a
    packet behind another is there 2 cycles after the tail of the other has left. Throughput: a flit a cycle.
    """

    def __init__(self, config: RouterConfig, *, in_port: int) -> None:
        self._config, self._in_port = config, in_port
        self._routing = routing_class(config)
        vls, ports = config.link.vls, config.ports
        place: dict[str, Any] = {}
        if self._routing.position_layout is not None:
            place["position"] = In(self._routing.position_layout)
        super().__init__(
            {
                "rx": In(LinkSignature(config.link)),
                "connected": In(ports),
                "arrived": Out(vls),
                "non_empty": Out(vls),
                "read_select": In(vls),
                "next_select": In(vls),
                "next_stays": In(1),
                "flit": Out(BufferedFlitLayout(config.link)),
                "last": Out(1),
                "pop": In(1),
                "want": Out(vls).array(ports),
                "taken": In(vls),
                "drop": Out(vls),
                "done": In(vls),
            }
            | place
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        vls, ports, depth = link.vls, config.ports, config.input_buffer_flits
        item = data.StructLayout({"port": ports, "flit": BufferedFlitLayout(link)})
        m.submodules.buffer = buffer = PipelinedVlBuffer(
            shape=item, vls=vls, depth=depth, peek=ports, foretold=True
        )
        arrival: data.View = Signal(FlitLayout(link))
        valid = Signal()
        m.d.sync += [
            valid.eq(self.rx.valid),
            self.arrived.eq(Mux(self.rx.valid, 1 << self.rx.payload.vl, 0)),
        ]
        with m.If(self.rx.valid):
            m.d.sync += arrival.eq(self.rx.payload)
        port = self._route(m, arrival)
        written: data.View = Signal(item)
        m.d.comb += [
            written.port.eq(port),
            written.flit.data.eq(arrival.data),
            written.flit.head.eq(arrival.head),
            written.flit.tail.eq(arrival.tail),
            buffer.write_valid.eq(valid),
            buffer.write_select.eq(self.arrived),
            buffer.write_data.eq(written),
            buffer.read_select.eq(self.read_select),
            buffer.next_select.eq(self.next_select),
            buffer.next_stays.eq(self.next_stays),
            self.flit.eq(buffer.read_data.flit),
            self.last.eq(buffer.last),
            buffer.pop.eq(self.pop),
            self.non_empty.eq(buffer.non_empty),
        ]
        if self._routing.strips:
            field = route_field(link)
            with m.If(arrival.head):
                m.d.comb += written.flit.data[field].eq(arrival.data[field] >> link.hop_bits)

        # A header that comes to an idle VL, and one behind a packet that has just left.
        fresh, left, behind = (Signal(vls, name=name) for name in ("fresh", "left", "behind"))
        active = Signal(vls)  # VLs whose packet is routed
        m.d.sync += left.eq(self.done)
        m.d.comb += [
            fresh.eq(self.arrived & ~active & ~self.non_empty),
            buffer.peek_select.eq(left),
            behind.eq(left & self.non_empty),
        ]
        for p in range(ports):
            m.d.sync += self.want[p].eq(
                (self.want[p] & ~self.taken) | Mux(port[p], fresh, 0) | Mux(buffer.peek_data[p], behind, 0)
            )
        m.d.sync += [
            active.eq((active & ~self.done) | fresh | behind),
            self.drop.eq(
                (self.drop & ~self.done) | Mux(port.any(), 0, fresh) | Mux(buffer.peek_data.any(), 0, behind)
            ),
            self.rx.credit_valid.eq(self.pop),
            self.rx.credit_vl.eq(buffer.read_vl),
        ]
        return m

    def _route(self, m: Module, arrival: data.View) -> Signal:
        """The output port of the packet that begins with `arrival`, one-hot; 0 if it is to be dropped."""
        config = self._config
        m.submodules.routing = routing = self._routing(config, in_port=self._in_port)
        route_at = HEADER_LAYOUT["route"].offset
        m.d.comb += routing.route.eq(arrival.data[route_at : route_at + self._routing.route_bits(config)])
        if self._routing.depends_on_vl():
            m.d.comb += routing.vl.eq(arrival.vl)
        if self._routing.position_layout is not None:
            m.d.comb += routing.position.eq(self.position)
        allowed: Value = arrival.head
        if config.control_vl is not None:
            kind_at = HEADER_LAYOUT["kind"].offset
            kind = arrival.data[kind_at : kind_at + HEADER_LAYOUT["kind"].width]
            allowed = allowed & ~((arrival.vl == config.control_vl) & (kind == Kind.DATA.value))
        port = Signal(config.ports)
        m.d.comb += port.eq(Mux(allowed, routing.port & self.connected, 0))
        return port
