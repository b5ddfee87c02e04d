"""The network as one Amaranth component: instances of its routers, and the wires between them."""

from __future__ import annotations

from operator import add, or_
from typing import Any, Protocol

from amaranth import ClockSignal, Const, Instance, Module, ResetSignal, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .balanced import balanced
from .link import LinkSignature
from .register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from .router.agent import has_agent
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

    Latency: none. Throughput: the routers'. Reset: the routers'.
    """

    def __init__(self, network: Wired) -> None:
        self.network = network
        link = LinkSignature(network.router.link)
        members: dict[str, Any] = {"dropped": Out(DROPPED_BITS), "activity": Out(1)}
        for node in range(len(network.nodes)):
            members |= {f"node{node}_rx": In(link), f"node{node}_tx": Out(link)}
        for router in range(network.routers) if has_agent(network.router) else ():
            members |= {
                f"router{router}_agent__request": In(PROCESSOR_REQUEST.size),
                f"router{router}_agent__response": Out(PROCESSOR_RESPONSE.size),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        network = self.network
        link = LinkSignature(network.router.link)
        # A link's wires are named after the port that sends, its credits' wires included.
        wires = {place: link.create(path=(f"router{place[0]}_tx{place[1]}",)) for place in network.neighbours}
        nodes = {place: node for node, place in enumerate(network.nodes)}
        names = {depths: block for block, depths in network.blocks.items()}
        dropped, moving = [], []
        for router in range(network.routers):
            dropped.append(Signal(DROPPED_BITS, name=f"router{router}_dropped"))
            moving.append(Signal(name=f"router{router}_activity"))
            pins = {
                "i_clk": ClockSignal(),
                "i_rst": ResetSignal(),
                "o_dropped": dropped[-1],
                "o_activity": moving[-1],
                "i_connected": Const(network.connected(router), network.router.ports),
            }
            if has_agent(network.router):
                pins["i_agent__request"] = getattr(self, f"router{router}_agent__request")
                pins["o_agent__response"] = getattr(self, f"router{router}_agent__response")
            position = routing_class(network.router).position_layout
            if position is not None:
                pins["i_position"] = Const(network.position(router), position.size)
            for port in range(network.router.ports):
                place = (router, port)
                ends: dict[str, Any] = {}
                if place in nodes:
                    ends = {end: getattr(self, f"node{nodes[place]}_{end}") for end in ("rx", "tx")}
                elif place in network.neighbours:
                    ends = {"rx": wires[network.neighbours[place]], "tx": wires[place]}
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
        return m
