"""Stage 2: the routing decision, for header flits only (yum-2006 3.1)."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import RouterConfig
from ..packet import HEADER_LAYOUT, Kind
from ..working import works_when
from .adaptive.random import add_random
from .flit import RouteLayout
from .multicast.sets import set_mark
from .routing import LOAD_BITS, TableWriteSignature, routing_class
from .scheduler import looks_ahead
from .vl_buffer import encode

__all__ = ["RouteStage"]


class RouteStage(wiring.Component):
    """Route registers of one input: for each VL, where the packet at the front of its buffer wants to go.

    With `looks_ahead` it is the packet behind, if the one at the front is on its way. The routing function
    gives the output port (`RouterConfig.routing`). A packet is marked to be dropped whole in these cases:

    - It does not begin with a head flit.
    - Its port does not exist or is not connected.
    - It brings data on the control VL.
    - It wants the management port on another VL.
    - Stage 3 has no output VL for it (`refused`).

    With `RouterConfig.multicast_nodes` a packet whose route is marked as a set (`multicast/sets.py`) wants all ports
    that lead to a node of its set. It is thrown away if there is none.

    With a management port, probes and releases on the control VL go to port 0. There the router's agent reads them and
    sends them on. At port 0 itself they go where their route leads.

    Parameters: `config` is the router's, `in_port` the input's number.

    Members (vectors of VLs are `vls` wide):

    - `connected` (in, P): ports that lead somewhere.
    - `non_empty` (in): VLs with a flit at the front of the buffer, or with look-ahead those with a header that was not
      routed yet (`ReceiveStage.headers`).
    - `held` (in): VLs whose packet has its output VL.
    - `header_select` (out), `header` (in, `RouteLayout`): one VL's header is read, in the same cycle.
    - `found` (out): the VL whose packet is routed in this cycle, one-hot or 0.
    - `found_port` (out, P): the output port of that packet.
    - `service_level` (out): its service level.
    - `found_vl` (out, `vl_bits`), only if the routing function chooses VLs: its output VL.
    - `found_options` (out, P), `found_option_vl` (out, `vl_bits`), only if the routing function is adaptive: the ports
      that the packet may take besides, and the output VL there.
    - `read_select` (in), `new_route` (out), only at a port where the routing function changes the route. They are the
      VL that is read, and the low bits of its packet's new route.
    - `loads` (in, P x `LOAD_BITS`), only there and only if the function goes by them.
    - `refused` (in): that packet is to be dropped.
    - `want` (out, P): `want[p]`, VLs that wait for their output VL at port p; registers.
    - `taken` (in): VLs that are given their output VL in this cycle; they stop waiting. With multicast it is an array
      of P, as a packet goes on waiting for other ports.
    - `reach` (in, P x `multicast_nodes`), only with multicast: the nodes behind each port.
    - `drop` (out): VLs whose packet at the front is thrown away.
    - `done` (in): VLs whose tail leaves the buffer.
    - `position` (in, its `position_layout`), only if the routing function has one.
    - `table` (in, `TableWriteSignature`), only if the routing function has one.

    Latency: a header at the front of its buffer in cycle t is in `want` or `drop` in t + 1. Throughput: a header a
    cycle, the control VL's first.
    """

    def __init__(self, config: RouterConfig, *, in_port: int) -> None:
        self._config, self._in_port = config, in_port
        self._routing = routing_class(config)
        vls, ports = config.link.vls, config.ports
        members: dict[str, Any] = {
            "connected": In(ports),
            "non_empty": In(vls),
            "held": In(vls),
            "header_select": Out(vls),
            "header": In(RouteLayout(config)),
            "found": Out(vls),
            "found_port": Out(ports),
            "service_level": Out(HEADER_LAYOUT["service_level"].width),
            "refused": In(1),
            "want": Out(vls).array(ports),
            "taken": In(vls).array(ports) if config.multicast_nodes else In(vls),
            "drop": Out(vls),
            "done": In(vls),
        }
        if config.multicast_nodes:
            members["reach"] = In(config.multicast_nodes).array(ports)
        if self._routing.changes_vl:
            members["found_vl"] = Out(config.link.vl_bits)
        self._rewrites = in_port in self._routing.rewrites_at(config)
        if self._rewrites:
            members |= {"read_select": In(vls), "new_route": Out(self._routing.route_bits(config))}
            if self._routing.uses_loads:
                members["loads"] = In(LOAD_BITS).array(ports)
        if self._routing.adaptive:
            members |= {"found_options": Out(ports), "found_option_vl": Out(config.link.vl_bits)}
        if self._routing.position_layout is not None:
            members["position"] = In(self._routing.position_layout)
        if self._routing.uses_table:
            members["table"] = Out(TableWriteSignature(config))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, header = self._config, self.header
        vls, ports = config.link.vls, config.ports
        m.submodules.arbiter = arbiter = arbiter_class(config.arbiter)(size=vls)
        m.submodules.routing = routing = self._routing(config, in_port=self._in_port)
        if self._routing.position_layout is not None:
            m.d.comb += routing.position.eq(self.position)
        if self._routing.uses_table:
            wiring.connect(m, wiring.flipped(self.table), routing.table)
        # All but the choice follows a header, or changes the registers.
        m.submodules.decision = decision = Module()
        routed, asking, chosen, control = Signal(vls), Signal(vls), Signal(vls), Signal()
        several = config.multicast_nodes > 0
        taken = list(self.taken) if several else [self.taken] * ports
        works_when(decision, chosen, *(taken if several else taken[:1]), self.done)
        doomed: Value = self.drop
        if looks_ahead(config):
            # A packet behind one that still crosses is thrown away only then.
            doomed = Signal(vls, name="doomed")
            m.d.comb += [self.drop.eq(doomed & ~self.held), routed.eq(reduce(or_, self.want) | doomed)]
        else:
            m.d.comb += routed.eq(reduce(or_, self.want) | self.held | self.drop)
        m.d.comb += [
            asking.eq(self.non_empty & ~routed),
            arbiter.requests.eq(asking),
            # The control VL goes first, and the turns of the others stay as they are.
            control.eq(0 if config.control_vl is None else asking[config.control_vl]),
            arbiter.advance.eq(~control),
            chosen.eq(Mux(control, 1 << (config.control_vl or 0), arbiter.grant)),
            self.header_select.eq(chosen),
            routing.route.eq(header.route),
            self.service_level.eq(header.service_level),
        ]
        if self._routing.depends_on_vl():
            m.d.comb += routing.vl.eq(encode(chosen, config.link.vl_bits))
        if self._routing.changes_vl:
            m.d.comb += self.found_vl.eq(routing.out_vl)
        if self._routing.adaptive:
            m.d.comb += [
                self.found_options.eq(routing.options & self.connected),
                self.found_option_vl.eq(routing.option_vl),
            ]
        if self._rewrites:
            number = self._routing.rewrites_at(config).index(self._in_port)
            add_random(m, self.found.any(), routing, config.routing_seed, number)
            kept = [Signal.like(self.new_route, name=f"new_route_{v}") for v in range(vls)]
            for v in range(vls):
                with m.If(self.found[v]):
                    m.d.sync += kept[v].eq(routing.new_route)
            m.d.comb += self.new_route.eq(
                reduce(or_, (Mux(self.read_select[v], kept[v], 0) for v in range(vls)))
            )
            if self._routing.uses_loads:
                m.d.comb += [mine.eq(load) for mine, load in zip(routing.loads, self.loads, strict=True)]
        port, allowed = Signal(ports), Signal()
        routed_to: Value = routing.port
        if several:
            behind = (header.route[: config.multicast_nodes] & nodes for nodes in self.reach)
            routed_to = Mux(
                header.route[set_mark(config)], Cat(nodes.any() for nodes in behind), routing.port
            )
        decision.d.comb += [port.eq(routed_to & self.connected), allowed.eq(header.head & ~self.refused)]
        if config.control_vl is not None:
            data_kind = Signal()
            decision.d.comb += data_kind.eq(header.kind == Kind.DATA.value)
            with decision.If(control):
                decision.d.comb += allowed.eq(header.head & ~data_kind)
            if config.management:
                with decision.If(~control & port[0]):
                    decision.d.comb += allowed.eq(0)
                if self._in_port:
                    for_agent = (header.kind == Kind.PROBE.value) | (header.kind == Kind.RELEASE.value)
                    with decision.If(control & for_agent):
                        decision.d.comb += port.eq(1)
        with decision.If(allowed):
            decision.d.comb += self.found_port.eq(port)
        known = Signal()
        decision.d.comb += known.eq(self.found_port.any())
        with decision.If(known):
            decision.d.comb += self.found.eq(chosen)
        for p in range(ports):
            found = Signal(vls, name=f"found_{p}")
            with decision.If(self.found_port[p]):
                decision.d.comb += found.eq(chosen)
            decision.d.sync += self.want[p].eq((self.want[p] & ~taken[p]) | found)
        lost = Signal(vls)
        with decision.If(~known):
            decision.d.comb += lost.eq(chosen)
        decision.d.sync += doomed.eq(
            (doomed & ~(self.done & self.drop if looks_ahead(config) else self.done)) | lost
        )
        return m
