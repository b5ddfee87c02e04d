"""The network as one Amaranth component: instances of its routers, and the wires between them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, or_
from typing import Any, Protocol

from amaranth import Cat, ClockSignal, Const, Instance, Module, ResetSignal, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .balanced import balanced
from .fault_link import FAULT_CONTROL, FAULT_COUNTS, FaultLink, FaultPlace
from .link import LinkSignature
from .register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from .router.agent import has_agent
from .router.multicast.sets import reach_of
from .router.router import DROPPED_BITS
from .router.routing import Topology, routing_class

__all__ = ["NetworkComponent"]


class Wired(Topology, Protocol):
    """A network and the blocks it is made of: members as in `lanikai.hdl.network.Network`."""

    @property
    def credit_flits(self) -> list[tuple[int, ...]]: ...
    @property
    def blocks(self) -> dict[str, tuple[int, ...]]: ...
    def connected(self, router: int) -> int: ...
    def position(self, router: int) -> int: ...


class NetworkComponent(wiring.Component):
    """The routers of a network, joined. Each is an `Instance` of one of the network's `blocks`, named `router{r}`, so
    that a block is converted once however many routers there are.

    Members, for every node i and every router r:

    - `node{i}_rx` (in, `LinkSignature`): the link on which the network receives from the node.
    - `node{i}_tx` (out, `LinkSignature`): the link on which the network transmits to the node.
    - `router{r}_agent__request` (in, `PROCESSOR_REQUEST`), `router{r}_agent__response` (out, `PROCESSOR_RESPONSE`): the
      port of its agent, if it has one (`has_agent`).
    - `dropped` (out, 32): packets that all routers dropped.
    - `activity` (out): a flit moved anywhere.
    - `fault{k}_control` (in, `FAULT_CONTROL`), `fault{k}_counts` (out, `FAULT_COUNTS`): of the k-th of `faults`, the
      places of links with a `FaultLink`.
    - `begun_anew`, `refused` (out, 32), only with `LinkConfig.guard_cycles`: the sums of the routers' (`Router`).

    Latency: none. Throughput: the routers'. Reset: the routers'.
    """

    def __init__(self, network: Wired, *, faults: Sequence[FaultPlace] = ()) -> None:
        self.network, self.faults = network, tuple(faults)
        link = LinkSignature(network.router.link)
        members: dict[str, Any] = {"dropped": Out(DROPPED_BITS), "activity": Out(1)}
        for node in range(len(network.nodes)):
            members |= {f"node{node}_rx": In(link), f"node{node}_tx": Out(link)}
        for router in range(network.routers) if has_agent(network.router) else ():
            members |= {
                f"router{router}_agent__request": In(PROCESSOR_REQUEST.size),
                f"router{router}_agent__response": Out(PROCESSOR_RESPONSE.size),
            }
        for i in range(len(self.faults)):
            members |= {
                f"fault{i}_control": In(FAULT_CONTROL.size),
                f"fault{i}_counts": Out(FAULT_COUNTS.size),
            }
        self._sums = ["begun_anew", "refused"] if network.router.link.guard_cycles else []
        super().__init__(members | {name: Out(32) for name in self._sums})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        network = self.network
        link = LinkSignature(network.router.link)
        # A link's wires are named after the port that sends, its credits' wires included.
        wires = {place: link.create(path=(f"router{place[0]}_tx{place[1]}",)) for place in network.neighbours}
        nodes = {place: node for node, place in enumerate(network.nodes)}
        names = {depths: block for block, depths in network.blocks.items()}
        dropped, moving = [], []
        powers = self._power_wires()
        sums: dict[str, list[Signal]] = {name: [] for name in self._sums}
        for router in range(network.routers):
            dropped.append(Signal(DROPPED_BITS, name=f"router{router}_dropped"))
            moving.append(Signal(name=f"router{router}_activity"))
            pins = {
                "i_clk": ClockSignal(),
                "i_rst": ResetSignal(),
                "o_dropped": dropped[-1],
                "o_activity": moving[-1],
                "i_connected": Const(network.connected(router), network.router.ports),
                **powers[router],
            }
            for name, parts in sums.items():
                parts.append(Signal(32, name=f"router{router}_{name}"))
                pins[f"o_{name}"] = parts[-1]
            if has_agent(network.router):
                pins["i_agent__request"] = getattr(self, f"router{router}_agent__request")
                pins["o_agent__response"] = getattr(self, f"router{router}_agent__response")
            position = routing_class(network.router).position_layout
            if position is not None:
                pins["i_position"] = Const(network.position(router), position.size)
            for port, behind in enumerate(reach_of(network, router)):
                pins[f"i_reach__{port}"] = Const(behind, network.router.multicast_nodes)
            for port in range(network.router.ports):
                place = (router, port)
                ends: dict[str, Any] = {}
                if place in nodes:
                    ends = {end: getattr(self, f"node{nodes[place]}_{end}") for end in ("rx", "tx")}
                elif place in network.neighbours:
                    ends = {"rx": wires[network.neighbours[place]], "tx": wires[place]}
                ends = {end: self._faulty(m, link, wire, place, end) for end, wire in ends.items()}
                for end, member in ((end, member) for end in ("rx", "tx") for member in link.members):
                    pin = f"{end}__{port}__{member}"
                    sent = link.members[member].flow == wiring.Out
                    if (end == "tx") == sent:
                        if ends:
                            pins[f"o_{pin}"] = getattr(ends[end], member)
                    else:
                        # Nothing comes in at a port that is not connected.
                        nothing = Const(0, Shape.cast(link.members[member].shape).width)
                        pins[f"i_{pin}"] = getattr(ends[end], member) if ends else nothing
            m.submodules[f"router{router}"] = Instance(names[network.credit_flits[router]], **pins)
        m.d.comb += [self.dropped.eq(balanced(add, dropped)), self.activity.eq(balanced(or_, moving))]
        m.d.comb += [getattr(self, name).eq(balanced(add, parts)) for name, parts in sums.items()]
        return m

    def _power_wires(self) -> list[dict[str, Any]]:
        """The pins of each router by which neighbours lend each other energy credits, joined port to port."""
        network = self.network
        if not network.router.power_share:
            return [{} for _ in range(network.routers)]
        ports, routers = network.router.ports, range(network.routers)
        needs = [Signal(name=f"router{router}_power_needs") for router in routers]
        gives = [Signal(ports, name=f"router{router}_power_gives") for router in routers]
        found = []
        for router in routers:
            there = [network.neighbours.get((router, port)) for port in range(ports)]
            found.append(
                {
                    "o_power_needs": needs[router],
                    "o_power_gives": gives[router],
                    "i_power_neighbour_needs": Cat(needs[one[0]] if one else Const(0, 1) for one in there),
                    "i_power_neighbour_gives": Cat(
                        gives[one[0]][one[1]] if one else Const(0, 1) for one in there
                    ),
                }
            )
        return found

    def _faulty(self, m: Module, link: LinkSignature, wire: Any, place: tuple[int, int], end: str) -> Any:
        """The wires at `end` of a router's port: those of `wire`, or with a `FaultLink` in between new ones."""
        fault = next(
            (
                i
                for i, (*at, way) in enumerate(self.faults)
                if (*at, {"in": "rx", "out": "tx"}[way]) == (*place, end)
            ),
            None,
        )
        if fault is None:
            return wire
        near = link.create(path=(f"router{place[0]}_{end}{place[1]}_near",))
        m.submodules[f"fault{fault}"] = part = FaultLink(link.config)
        before, behind = (wire, near) if end == "rx" else (near, wire)
        for member, description in link.members.items():
            if description.flow == wiring.Out:
                m.d.comb += [getattr(part.rx, member).eq(getattr(before, member))]
                m.d.comb += [getattr(behind, member).eq(getattr(part.tx, member))]
            else:
                m.d.comb += [getattr(part.tx, member).eq(getattr(behind, member))]
                m.d.comb += [getattr(before, member).eq(getattr(part.rx, member))]
        m.d.comb += [
            part.control.eq(getattr(self, f"fault{fault}_control")),
            getattr(self, f"fault{fault}_counts").eq(part.counts),
        ]
        return near
