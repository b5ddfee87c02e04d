"""A message network's top modules: network, message nodes, their rings, time and watchdog, joined."""

from __future__ import annotations

from collections.abc import Mapping
from operator import and_, or_
from typing import Any

from amaranth import Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.balanced import balanced
from lanikai.hdl.link import FlitLayout, LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.router.router import DROPPED_BITS
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.message import COMMAND, EVENT, NOW_BITS
from lanikai.hdl.traffic.ports import ALL_NODES, REQUEST

from ..build.power_wires import add_power_wires, power_wire_members
from ..inside.watchdog import WATCHDOG_BITS
from .forwarding import needs_tables
from .top import CLOCK, Top, agent_members, agent_pins, link_pins

__all__ = ["PORTS", "ComposedMessageTop", "MessageTop"]

PORTS: Mapping[str, Member] = {
    "request": In(REQUEST.size),
    "wake": Out(1),
    "now": Out(NOW_BITS),
    "settled": Out(1),
    "dropped": Out(DROPPED_BITS),
    "watchdog_limit": In(WATCHDOG_BITS),
    "watchdog_fired": Out(1),
}
"""The members that Python touches.

- `request`: sets the nodes' routes (`hdl/traffic/ports.py`), with a register of its own before it.
- `wake`: changes when a ring of `native/messages.cpp` has something for Python.
- `now`: cycles since the start.
- `settled`: all nodes are settled.
- `dropped`: packets that routers threw away.
- `watchdog_limit`, `watchdog_fired`: nothing has moved for so long, though not all nodes are settled.
"""


class _TimedTop(Top):
    """The base of both tops: time, the wake-up of Python, and the watchdog."""

    def _timed(self, m: Module, *, told: Value, settled: Value, moving: Value) -> None:
        """`told`: a ring has something for Python; `settled`: all nodes are; `moving`: a flit moves."""
        m.d.sync += [self.now.eq(self.now + 1), self.wake.eq(self.wake ^ told)]
        m.d.comb += self.settled.eq(settled)
        self._watch(m, self.settled | moving)


class MessageTop(_TimedTop):
    """`network`, with a message node of `traffic` at each of its places, and a ring of `native/messages.sv` at each.

    Members: `clk`, `PORTS`. Where forwarding tables have to be written there are those of `agent_members`, too.

    Instances: `network`, `node{i}` (module `message_node`), `messages{i}`, `departures{i}`, `watchdog`.

    Latency: `request` is a cycle later at the nodes. There is no reset.
    """

    def __init__(self, network: Network, traffic: TrafficConfig) -> None:
        self._network, self._traffic = network, traffic
        self._agents = needs_tables(network)
        super().__init__(dict(PORTS) | (agent_members(network) if self._agents else {}))

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        traffic, link = self._traffic, LinkSignature(self._traffic.link)
        request = self._held(m)
        moving, settled, told = [Signal(name="network_activity")], [], []
        pins = {**CLOCK, "o_dropped": self.dropped, "o_activity": moving[0]}
        for i in range(traffic.nodes):
            tx, rx = (link.create(path=(f"node{i}_{end}",)) for end in ("tx", "rx"))
            pins |= link_pins(f"node{i}_rx", tx, transmits=False)
            pins |= link_pins(f"node{i}_tx", rx, transmits=True)
            names = ("event_valid", "settled", "activity", "command_valid", "command_ready", "room")
            wires = {name: Signal(name=f"node{i}_{name}") for name in names}
            wires["command"] = Signal(COMMAND.size, name=f"node{i}_command")
            wires["event"] = Signal(EVENT.size, name=f"node{i}_event")
            settled.append(wires["settled"])
            moving.append(wires["activity"])
            told += [wires["event_valid"], wires["room"]]
            m.submodules[f"node{i}"] = Instance(
                "message_node",
                **CLOCK,
                i_node=Const(i, traffic.node_bits),
                i_now=self.now,
                i_request=request,
                **link_pins("tx", tx, transmits=True),
                **link_pins("rx", rx, transmits=False),
                i_command__payload=wires["command"],
                i_command__valid=wires["command_valid"],
                o_command__ready=wires["command_ready"],
                **{f"o_{name}": wires[name] for name in ("event", "event_valid", "settled", "activity")},
            )
            flit = FlitLayout(traffic.link)(tx.payload)
            m.submodules[f"departures{i}"] = Instance(
                "departures",
                i_clk=CLOCK["i_clk"],
                i_node=Const(i, 16),
                i_head=tx.valid & flit.head,
                i_vl=flit.vl,
                i_now=self.now,
            )
            m.submodules[f"messages{i}"] = Instance(
                "messages",
                p_COMMAND_BITS=COMMAND.size,
                p_EVENT_BITS=EVENT.size,
                i_clk=CLOCK["i_clk"],
                i_node=Const(i, 16),
                i_command_ready=wires["command_ready"],
                i_event_valid=wires["event_valid"],
                i_event_payload=wires["event"],
                **{f"o_{name}": wires[name] for name in ("command_valid", "command", "room")},
            )
        m.submodules.network = Instance(
            "network", **pins, **agent_pins(self._network, self if self._agents else None)
        )
        self._timed(
            m, told=balanced(or_, told), settled=balanced(and_, settled), moving=balanced(or_, moving)
        )
        return m


class ComposedMessageTop(_TimedTop):
    """The top where routers, nodes and rings are outside (`build/composition.py`): their outputs come in as they are
    after the edge.

    Members: `clk`, `PORTS`, and for what is outside:

    - `told` (in): a ring has something for Python.
    - `unsettled` (in, a bit a node): nodes that are not settled.
    - `moving` (in): a flit moves anywhere.
    - `dropped_sum` (in, 32): packets that all routers threw away.
    - `routing` (out, `REQUEST`): to the nodes.
    - `attention` (out): a request to all nodes.
    - `addressed` (out, 12): the node that a request is to, plus 1; 0 without one.

    With routers of `network` that lend each other energy credits there are their wires (`power_wires.py`).

    Instances: `watchdog`. Latency: as `MessageTop`. There is no reset.
    """

    def __init__(self, network: Network, traffic: TrafficConfig) -> None:
        self._network = network
        outside: dict[str, Any] = {
            "told": In(1),
            "unsettled": In(traffic.nodes),
            "moving": In(1),
            "dropped_sum": In(DROPPED_BITS),
            "routing": Out(REQUEST.size),
            "attention": Out(1),
            "addressed": Out(REQUEST["node"].width + 1),
        }
        super().__init__({**PORTS, **outside, **power_wire_members(network)})

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        request = data.View(REQUEST, self.routing)
        lending = add_power_wires(m, self._network, self)
        m.d.comb += [
            self.routing.eq(self._held(m)),
            self.attention.eq((request.valid & (request.node == ALL_NODES)) | lending),
            self.addressed.eq(Mux(request.valid, request.node + 1, 0)),
            self.dropped.eq(self.dropped_sum),
        ]
        self._timed(m, told=self.told, settled=~self.unsettled.any(), moving=self.moving)
        return m
