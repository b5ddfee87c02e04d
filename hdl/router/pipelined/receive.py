"""Stages 1 and 2 of the pipelined router: a link register, routing beside it, and VL buffers."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...link import FlitLayout, LinkSignature
from ...packet import HEADER_LAYOUT, Kind
from ..flit import BufferedFlitLayout, route_field
from ..routing import routing_class
from ..vl_buffer import encode
from .input_buffer import PipelinedInputBuffer

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
    - `read_select`, `next_select`, `stays_popped`, `stays_kept`, `pop` (in), `read_vl`, `flit` (out,
      `BufferedFlitLayout`), `tail`, `tail_behind`, `last` (out): read side of the `PipelinedInputBuffer`.
    - `goal` (out, P x `vls`): `goal[p]`, VLs whose packet goes to port p; registers.
    - `want` (out, P x `vls`): those of them that wait for their output VL.
    - `taken` (in): VLs that are given their output VL in this cycle.
    - `owns` (out): VLs whose packet has its output VL, or is thrown away; registers.
    - `drop` (out): VLs whose packet is thrown away; registers. The cases are those of `RouteStage`.
    - `left` (out): one-hot or 0, the VL whose tail has left the buffer in the cycle before; a register.

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
                "stays_popped": In(1),
                "stays_kept": In(1),
                "read_vl": Out(config.link.vl_bits),
                "flit": Out(BufferedFlitLayout(config.link)),
                "tail": Out(1),
                "tail_behind": Out(1),
                "last": Out(1),
                "pop": In(1),
                "goal": Out(vls).array(ports),
                "want": Out(vls).array(ports),
                "taken": In(vls),
                "owns": Out(vls),
                "drop": Out(vls),
                "left": Out(vls),
            }
            | place
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        vls, ports, depth = link.vls, config.ports, config.input_buffer_flits
        # A port's number in the buffer; 0 for a packet that is thrown away.
        port_bits = ports.bit_length()
        m.submodules.buffer = buffer = PipelinedInputBuffer(
            shape=BufferedFlitLayout(link), port_bits=port_bits, vls=vls, depth=depth
        )
        arrival: data.View = Signal(FlitLayout(link))
        valid = Signal()
        m.d.sync += [
            valid.eq(self.rx.valid),
            *(self.arrived[v].eq(self.rx.valid & (self.rx.payload.vl == v)) for v in range(vls)),
        ]
        with m.If(self.rx.valid):
            m.d.sync += arrival.eq(self.rx.payload)
        port = self._route(m, arrival)
        written: data.View = Signal(BufferedFlitLayout(link))
        m.d.comb += [
            written.data.eq(arrival.data),
            written.head.eq(arrival.head),
            written.tail.eq(arrival.tail),
            buffer.write_valid.eq(valid),
            buffer.write_select.eq(self.arrived),
            buffer.write_vl.eq(arrival.vl),
            buffer.write_data.eq(written),
            buffer.write_tail.eq(arrival.tail),
            buffer.write_port.eq(encode(Cat(0, port), port_bits)),
            buffer.read_select.eq(self.read_select),
            buffer.next_select.eq(self.next_select),
            buffer.stays_popped.eq(self.stays_popped),
            buffer.stays_kept.eq(self.stays_kept),
            self.read_vl.eq(buffer.read_vl),
            self.flit.eq(buffer.read_data),
            self.tail.eq(buffer.tail),
            self.tail_behind.eq(buffer.tail_behind),
            self.last.eq(buffer.last),
            buffer.pop.eq(self.pop),
            self.non_empty.eq(buffer.non_empty),
        ]
        if self._routing.strips:
            field = route_field(link)
            with m.If(arrival.head):
                m.d.comb += written.data[field].eq(arrival.data[field] >> link.hop_bits)

        # A header that comes to an idle VL, and one behind a packet that has just left.
        fresh, behind, known = Signal(vls), Signal(vls), Signal(ports)
        waits, done = Signal(vls), Signal(vls)
        m.d.comb += [
            done.eq(Mux(self.pop & self.tail, self.read_select, 0)),
            fresh.eq(self.arrived & ~waits & ~self.owns & ~self.non_empty),
            behind.eq(self.left & self.non_empty),
            known.eq(Cat(buffer.behind == p + 1 for p in range(ports))),
        ]
        for v in range(vls):
            with m.If(fresh[v] | behind[v]):
                m.d.sync += [self.goal[p][v].eq(Mux(behind[v], known[p], port[p])) for p in range(ports)]
        found = Mux(port.any(), fresh, 0) | Mux(known.any(), behind, 0)
        lost = Mux(port.any(), 0, fresh) | Mux(known.any(), 0, behind)
        m.d.sync += [
            self.left.eq(done),
            waits.eq((waits & ~self.taken) | found),
            self.owns.eq((self.owns & ~done) | self.taken | lost),
            self.drop.eq((self.drop & ~done) | lost),
            self.rx.credit_valid.eq(self.pop),
            self.rx.credit_vl.eq(self.read_vl),
        ]
        m.d.comb += [self.want[p].eq(waits & self.goal[p]) for p in range(ports)]
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
