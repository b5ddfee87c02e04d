"""The cluster's top module as one Amaranth component: instances of its blocks, and the wires between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import NicConfig
from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.link import FlitLayout
from lanikai.hdl.network import Network
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.nic.ports import due_layout
from lanikai.hdl.nic.rtc import clock_layout
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.register_port import PROCESSOR_REQUEST
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.router import DROPPED_BITS

from ..build.power_wires import add_power_wires, power_wire_members
from ..inside.watchdog import WATCHDOG_BITS, Watchdog
from ..models.pci_host import HOST_COMMAND, HOST_RESPONSE
from ..models.pci_timing import PciTiming
from ..models.processor_mailbox import PROCESSOR_ANSWER, PROCESSOR_COMMAND, STEP_BITS
from ..waves.save_file import KIND_IDLE
from .forwarding import needs_tables
from .node_parts import NodeParts, Wires, instance_of, link_wires, member
from .top import Top, agent_members, fault_members

__all__ = ["ClusterTop", "ComposedClusterTop"]

_ONCE: Mapping[str, Any] = {
    "network_dropped": Out(DROPPED_BITS),
    "watchdog_limit": In(WATCHDOG_BITS),
    "watchdog_fired": Out(1),
    "watchdog_left": Out(WATCHDOG_BITS),
    "skipped": In(WATCHDOG_BITS),
}
"""The members that Python and the main loop use of both tops, besides those of nodes."""


class ClusterTop(Top):
    """A cluster: at every place of the `network` a card `nic`, and a host with a bus `pci` and `memory_bytes`
    of memory.

    Each block is an `Instance` of a module that is converted once: `nic{i}`, `mailbox{i}`, `host{i}`, `memory{i}`,
    `network` and `watchdog`. Names of a second processor end in `_1`. The modules of `blocks` are for the user to
    convert; those that `network` is made of, `held` and `hostmem` come besides.

    Members, for every node i:

    - `nic{i}_command` (in), `nic{i}_answer`, `nic{i}_event` (out): see `ProcessorMailbox`.
    - `nic{i}_step` (in, letters), only with `waves`: the firmware's present step.
    - `nic{i}_interrupt` (out).
    - `host{i}_command` (in), `host{i}_response`, `host{i}_write_event` (out): see `PciHost`.
    - `host{i}_done` (out): the response's toggle.
    - `nic{i}_clock` (out), `nic{i}_clock_set` (in), `nic{i}_timer_due`, `nic{i}_flow_due` (out): see `NicSignature`.

    And once:

    - `clk` (in).
    - `network_dropped` (out, packets): packets that routers threw away.
    - `watchdog_limit` (in), `watchdog_fired`, `watchdog_left` (out), `skipped` (in): see `Watchdog`.
    - `skip` (in): all cards' clocks are set at the end of this cycle.
    - `quiet` (out): nothing moves, and every card rests.
    - Where forwarding tables have to be written, those of `agent_members`.
    - With links that fail (`faults`) or have a guard, those of `fault_members`.

    There is no reset: registers start with their initial values. Latency and throughput: those of the blocks.

    Public attribute: `blocks`, the components that are instantiated, by the names of their modules.
    """

    def __init__(
        self,
        network: Network,
        *,
        nic: NicConfig,
        pci: PciTiming,
        memory_bytes: int,
        waves: bool,
        faults: Sequence[FaultPlace] = (),
        watch: bool = False,
    ) -> None:
        self._network, self._nic = network, nic
        self._nodes = range(len(network.nodes))
        self._parts = NodeParts(
            nic,
            pci=pci,
            memory_bytes=memory_bytes,
            downstream_flits=network.router.input_buffer_flits,
            watch=watch,
        )
        self._ends = self._parts.ends
        self.blocks: Mapping[str, wiring.Component] = {
            **self._parts.blocks,
            "network": NetworkComponent(network, faults=faults),
            "watchdog": Watchdog(),
        }
        clock, due = clock_layout(nic).size, due_layout(nic).size
        members: dict[str, Any] = {}
        for node in self._nodes:
            for end in self._ends:
                members[f"nic{node}_command{end}"] = In(PROCESSOR_COMMAND.size)
                members[f"nic{node}_answer{end}"] = Out(PROCESSOR_ANSWER.size)
                members[f"nic{node}_event{end}"] = Out(1)
                if waves:
                    members[f"nic{node}_step{end}"] = In(STEP_BITS)
            members |= {
                f"nic{node}_interrupt": Out(1),
                f"host{node}_command": In(HOST_COMMAND.size),
                f"host{node}_response": Out(HOST_RESPONSE.size),
                f"host{node}_done": Out(1),
                f"host{node}_write_event": Out(1),
                f"nic{node}_clock": Out(clock),
                f"nic{node}_clock_set": In(clock),
                f"nic{node}_timer_due": Out(due),
                f"nic{node}_flow_due": Out(due),
            }
        self._agents = needs_tables(network)
        agents = agent_members(network) if self._agents else {}
        self._faults = fault_members(network, faults)
        super().__init__({**members, **agents, **self._faults, **_ONCE, "quiet": Out(1), "skip": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        # The number of the present cycle, for the eye alone: the time axis of a wave file counts steps.
        cycle = Signal(40)
        m.d.sync += cycle.eq(cycle + 1 + self.skipped)
        moving, resting = [Signal(name="network_activity")], []
        network = {"dropped": self.network_dropped, "activity": moving[0]}
        for node in self._nodes:
            links = {end: link_wires(self._nic, f"nic{node}_{end}") for end in ("tx", "rx")}
            card_moving, host_moving = (Signal(name=f"{kind}{node}_activity") for kind in ("nic", "host"))
            moving += [card_moving, host_moving]
            resting.append(Signal(name=f"nic{node}_rests"))
            self._add_node(m, node, links, card_moving, host_moving, resting[-1])
            network |= member(f"node{node}_rx", links["tx"]) | member(f"node{node}_tx", links["rx"])
            for end, wires in links.items():
                self._add_views(m, f"nic{node}_{end}", wires)
        for router in range(self._network.routers) if has_agent(self._network.router) else ():
            request, response = (f"router{router}_agent__{end}" for end in ("request", "response"))
            if self._agents:
                network |= {request: getattr(self, request), response: getattr(self, response)}
            else:
                # Agents are not reached: their registers keep what reset gave them.
                network[request] = Const(0, PROCESSOR_REQUEST.size)
        network |= {name: getattr(self, name) for name in self._faults}
        m.submodules.network = instance_of("network", self.blocks["network"], network)
        any_moving = Signal(name="moving")
        m.d.comb += [any_moving.eq(reduce(or_, moving)), self.quiet.eq(~any_moving & reduce(and_, resting))]
        _watch_skipping(self, m, any_moving)
        return m

    def _add_node(
        self,
        m: Module,
        node: int,
        links: Mapping[str, Wires],
        moving: Value,
        host_moving: Value,
        rests: Value,
    ) -> None:
        """One node: NIC, its processors' mailboxes, its host and the host's memory."""
        nic, host = f"nic{node}", f"host{node}"
        card = {
            name: getattr(self, f"{nic}_{name}") for name in ("clock", "clock_set", "timer_due", "flow_due")
        }
        card |= {"interrupt": getattr(self, f"{nic}_interrupt"), "activity": moving, "rests": rests}
        card |= {"set_clock": self.skip, "passed": self.skipped}
        response = getattr(self, f"{host}_response")
        self._parts.join(
            m,
            str(node),
            Const(node, 16),
            card=card,
            links=links,
            processors={
                end: {
                    "command": getattr(self, f"{nic}_command{end}"),
                    "answer": getattr(self, f"{nic}_answer{end}"),
                    "pending": getattr(self, f"{nic}_event{end}"),
                }
                for end in self._ends
            },
            host={
                "command": getattr(self, f"{host}_command"),
                "response": response,
                "write_event": getattr(self, f"{host}_write_event"),
                "activity": host_moving,
            },
        )
        m.d.comb += getattr(self, f"{host}_done").eq(response[0])

    def _add_views(self, m: Module, link: str, wires: Wires) -> None:
        """Wires for the eye alone: head, tail and kind of the packet on a NIC's link. A build without waves drops
        them."""
        layout = FlitLayout(self._nic.link)
        flit, valid = wires["payload"], wires["valid"]
        head, tail = Signal(name=f"{link}_head"), Signal(name=f"{link}_tail")
        field = HEADER_LAYOUT["kind"]
        kind = Signal(field.width, name=f"{link}_kind")
        low = layout["data"].offset + field.offset
        m.d.comb += [
            head.eq(valid & flit[layout["head"].offset]),
            tail.eq(valid & flit[layout["tail"].offset]),
            kind.eq(Mux(head, flit[low : low + field.width], KIND_IDLE)),
        ]


class ComposedClusterTop(Top):
    """The top where nodes and routers are outside (`build/composition.py`): their outputs come in as they are after the
    edge.

    Members: `clk`, `network_dropped`, `watchdog_limit`, `watchdog_fired`, `watchdog_left` and `skipped`,
    as those of `ClusterTop`. For what is outside there are also:

    - `moving` (in): a flit, a bus or a card moves anywhere.
    - `dropped_sum` (in, 32): packets that all routers threw away.
    - `now` (out, 32): cycles since the start.
    - `attention` (out): a router asks for energy credits, or lends some.
    - With routers of `network` that lend each other energy credits, their wires (`power_wires.py`).

    Instance: `watchdog`. There is no reset.

    Public attribute: `blocks`, the component of that instance by the name of its module.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.blocks: Mapping[str, wiring.Component] = {"watchdog": Watchdog()}
        outside = {"moving": In(1), "dropped_sum": In(DROPPED_BITS), "attention": Out(1), "now": Out(32)}
        super().__init__({**_ONCE, **outside, **power_wire_members(network)})

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        # As in `ClusterTop`, for the eye alone.
        cycle = Signal(40)
        m.d.comb += [
            self.network_dropped.eq(self.dropped_sum),
            self.attention.eq(add_power_wires(m, self._network, self)),
        ]
        m.d.sync += [self.now.eq(self.now + 1 + self.skipped), cycle.eq(cycle + 1 + self.skipped)]
        _watch_skipping(self, m, self.moving)
        return m


def _watch_skipping(top: Any, m: Module, activity: Value) -> None:
    """Add the instance `watchdog` to a top, which is told of the cycles that are passed over."""
    watched = {name: getattr(top, f"watchdog_{name}") for name in ("limit", "fired", "left")}
    watched |= {"activity": activity, "skipped": top.skipped}
    m.submodules.watchdog = instance_of("watchdog", top.blocks["watchdog"], watched)
