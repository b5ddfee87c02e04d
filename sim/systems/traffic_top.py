"""A traffic network's top modules: network, traffic nodes, measurement and watchdog, joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import or_

from amaranth import Cat, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.balanced import balanced
from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.router.router import DROPPED_BITS
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.ports import ALL_NODES, CONTROL, REQUEST, RESPONSE

from ..build.power_wires import add_power_wires, power_wire_members
from ..inside.watchdog import WATCHDOG_BITS
from .top import CLOCK, Top, agent_members, agent_pins, fault_members, link_pins

__all__ = ["PORTS", "ComposedTrafficTop", "TrafficTop"]

PORTS: Mapping[str, Member] = {
    "request": In(REQUEST.size),
    "response": Out(RESPONSE.size),
    "phase_event": Out(1),
    "phase": Out(3),
    "dropped": Out(DROPPED_BITS),
    "watchdog_limit": In(WATCHDOG_BITS),
    "watchdog_fired": Out(1),
}
"""The members that Python touches.

- `request`, `response`: the traffic system's set-up port (`hdl/traffic/ports.py`), with a register of its own before
  it.
- `phase`, and `phase_event`, which changes with it.
- `dropped`: packets that routers threw away.
- `watchdog_limit`, `watchdog_fired`: those of the watchdog.
"""


class _MeasuredTop(Top):
    """The base of both tops: the instances `measurement` and `watchdog`."""

    def _measure(
        self, m: Module, request: Value, control: Value, *, born: Value, done: Value, behind: Value
    ) -> Signal:
        """Adds the instance `measurement`, and the number of the present cycle, for the eye alone. Returns the
        instance's response."""
        cycle = Signal(40, name="cycle")
        m.d.sync += cycle.eq(cycle + 1)
        response = Signal(RESPONSE.size, name="measurement_response")
        m.submodules.measurement = Instance(
            "measurement",
            **CLOCK,
            i_request=request,
            i_born=born,
            i_done=done,
            i_behind=behind,
            o_control=control,
            o_phase=self.phase,
            o_event=self.phase_event,
            o_response=response,
        )
        return response


class TrafficTop(_MeasuredTop):
    """`network`, with a traffic node of `traffic` at each of its places.

    Members: `clk`, `PORTS`; with `agents` each router's `router{r}_agent__request` (in, `PROCESSOR_REQUEST`) and
    `router{r}_agent__response` (out, `PROCESSOR_RESPONSE`).

    `faults`: links that fail; with them, and with links that have a guard, there are the members of `fault_members`.

    Instances: `network`, `node{i}` (module `traffic_node`), `measurement`, `watchdog`.

    Latency: `request` is a cycle later at the nodes. There is no reset.
    """

    def __init__(
        self,
        network: Network,
        traffic: TrafficConfig,
        *,
        agents: bool = False,
        faults: Sequence[FaultPlace] = (),
    ) -> None:
        self._network, self._traffic, self._agents = network, traffic, agents
        self._faults = fault_members(network, faults)
        super().__init__(dict(PORTS) | (agent_members(network) if agents else {}) | self._faults)

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        traffic, link = self._traffic, LinkSignature(self._traffic.link)
        request, control = self._held(m), Signal(CONTROL.size)
        network_activity = Signal()
        pins = {**CLOCK, "o_dropped": self.dropped, "o_activity": network_activity}
        told: dict[str, list[Value]] = {name: [] for name in ("born", "done", "behind", "activity")}
        responses: list[Value] = []
        for i in range(traffic.nodes):
            tx, rx = (link.create(path=(f"node{i}_{end}",)) for end in ("tx", "rx"))
            pins |= link_pins(f"node{i}_rx", tx, transmits=False)
            pins |= link_pins(f"node{i}_tx", rx, transmits=True)
            for name, wires in told.items():
                wires.append(Signal(name=f"node{i}_{name}"))
            responses.append(Signal(RESPONSE.size, name=f"node{i}_response"))
            m.submodules[f"node{i}"] = Instance(
                "traffic_node",
                **CLOCK,
                i_request=request,
                i_control=control,
                i_node=Const(i, traffic.node_bits),
                **link_pins("tx", tx, transmits=True),
                **link_pins("rx", rx, transmits=False),
                o_response=responses[-1],
                **{f"o_{name}": wires[-1] for name, wires in told.items()},
            )
        pins |= agent_pins(self._network, self if self._agents else None)
        pins |= {
            f"{'i' if member.flow == In else 'o'}_{name}": getattr(self, name)
            for name, member in self._faults.items()
        }
        if self._network.router.link.restart:
            # A traffic node is never reset alone, so it never begins its links anew.
            for i in range(traffic.nodes):
                pins |= {f"i_node{i}_rx__restart": Const(0), f"i_node{i}_tx__credit_restart": Const(0)}
        m.submodules.network = Instance("network", **pins)
        born, done, behind = (Cat(*told[name]) for name in ("born", "done", "behind"))
        responses.append(self._measure(m, request, control, born=born, done=done, behind=behind))
        m.d.comb += self.response.eq(balanced(or_, responses))
        self._watch(m, balanced(or_, [network_activity, *told["activity"]]))
        return m


class ComposedTrafficTop(_MeasuredTop):
    """The top of a network whose routers and nodes are outside (`build/composition.py`). Their outputs come in as they
    are after the edge, joined (`Output`).

    Members: `clk`, `PORTS`, and for what is outside:

    - `born`, `done`, `behind` (in, a bit a node): from the nodes, for the measurement.
    - `node_response` (in, `RESPONSE`): their responses, ORed.
    - `moving` (in): a flit moves anywhere.
    - `dropped_sum` (in, 32): packets that all routers threw away.
    - `request_held` (out, `REQUEST`), `control` (out, `CONTROL`): to the nodes.
    - `now` (out, 32): that of `control`.
    - `attention` (out): a change of `control` other than `now`, or a request to all nodes.
    - `addressed` (out, 12): the node that a request is to, plus 1; 0 without one.

    With routers of `network` that lend each other energy credits there are their wires (`power_wires.py`).

    Instances: `measurement`, `watchdog`. Latency: as `TrafficTop`. There is no reset.
    """

    def __init__(self, network: Network, traffic: TrafficConfig) -> None:
        self._network = network
        super().__init__(
            {
                **PORTS,
                **power_wire_members(network),
                **{name: In(traffic.nodes) for name in ("born", "done", "behind")},
                "node_response": In(RESPONSE.size),
                "moving": In(1),
                "dropped_sum": In(DROPPED_BITS),
                "request_held": Out(REQUEST.size),
                "control": Out(CONTROL.size),
                "now": Out(CONTROL["now"].width),
                "attention": Out(1),
                "addressed": Out(REQUEST["node"].width + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        request, now = data.View(REQUEST, self.request_held), CONTROL["now"]
        assert now.offset == 0
        others = self.control[now.width :]
        last_control = Signal(len(others))
        response = self._measure(
            m, self.request_held, self.control, born=self.born, done=self.done, behind=self.behind
        )
        m.d.sync += [self.request_held.eq(self.request), last_control.eq(others)]
        lending = add_power_wires(m, self._network, self)
        m.d.comb += [
            self.attention.eq(
                (request.valid & (request.node == ALL_NODES)) | (last_control != others) | lending
            ),
            self.addressed.eq(Mux(request.valid, request.node + 1, 0)),
            self.now.eq(self.control[: now.width]),
            self.dropped.eq(self.dropped_sum),
            self.response.eq(response | self.node_response),
        ]
        self._watch(m, self.moving)
        return m
