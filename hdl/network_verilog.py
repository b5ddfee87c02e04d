"""The structural Verilog of a network: instances of its routers, and the wires between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from .link import FlitLayout
from .register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from .router.agent import has_agent
from .router.router import DROPPED_BITS
from .router.routing import Topology, routing_class

__all__ = ["network_verilog"]


class Wired(Topology, Protocol):
    """A network and the blocks it is made of: members as in `lanikai.hdl.network.Network`."""

    @property
    def credit_flits(self) -> list[tuple[int, ...]]: ...
    @property
    def blocks(self) -> dict[str, tuple[int, ...]]: ...
    def connected(self, router: int) -> int: ...
    def position(self, router: int) -> int: ...


def network_verilog(network: Wired, name: str) -> Iterator[str]:
    """The lines of `Network.verilog`."""
    flit, vl = FlitLayout(network.router.link).size, network.router.link.vl_bits
    forward, back = {"payload": flit, "valid": 1}, {"credit_vl": vl, "credit_valid": 1}
    if network.router.link.restart:
        forward, back = forward | {"restart": 1}, back | {"credit_restart": 1}
    names = {depths: block for block, depths in network.blocks.items()}
    node_of = {place: node for node, place in enumerate(network.nodes)}

    def declare(kind: str, signal: str, bits: int) -> str:
        return f"{kind} {f'[{bits - 1}:0] ' if bits > 1 else ''}{signal}"

    ports = ["input clk", "input rst", f"output [{DROPPED_BITS - 1}:0] dropped", "output activity"]
    for node in range(len(network.nodes)):
        for end, kinds in (("rx", ("input", "output")), ("tx", ("output", "input"))):
            for kind, members in zip(kinds, (forward, back), strict=True):
                ports += [
                    declare(kind, f"node{node}_{end}__{member}", bits) for member, bits in members.items()
                ]
    agents = has_agent(network.router)
    for router in range(network.routers) if agents else ():
        ports.append(declare("input", f"router{router}_agent__request", PROCESSOR_REQUEST.size))
        ports.append(declare("output", f"router{router}_agent__response", PROCESSOR_RESPONSE.size))
    yield f"module {name} ("
    yield ",\n".join(f"  {port}" for port in ports)
    yield ");"
    for router in range(network.routers):
        yield f"  wire [{DROPPED_BITS - 1}:0] router{router}_dropped;"
        yield f"  wire router{router}_activity;"
        for port in range(network.router.ports):
            if (router, port) in network.neighbours:
                # A link's wires are named after the port that sends, its credits' wires included.
                for member, bits in (forward | back).items():
                    yield f"  {declare('wire', f'router{router}_tx{port}__{member}', bits)};"
    for router in range(network.routers):
        pins = ["clk(clk)", "rst(rst)", f"dropped(router{router}_dropped)"]
        pins.append(f"activity(router{router}_activity)")
        if agents:
            pins += [f"agent__{end}(router{router}_agent__{end})" for end in ("request", "response")]
        position = routing_class(network.router).position_layout
        if position is not None:
            pins.append(f"position({position.size}'d{network.position(router)})")
        for port in range(network.router.ports):
            place = (router, port)
            if place in node_of:
                rx, tx = f"node{node_of[place]}_rx", f"node{node_of[place]}_tx"
            elif place in network.neighbours:
                there = network.neighbours[place]
                rx, tx = f"router{there[0]}_tx{there[1]}", f"router{router}_tx{port}"
            else:
                # Nothing comes in, nothing is sent: `connected` says so.
                pins += [f"rx__{port}__{member}({bits}'d0)" for member, bits in forward.items()]
                pins += [f"tx__{port}__{member}({bits}'d0)" for member, bits in back.items()]
                pins += [f"rx__{port}__{member}()" for member in back]
                pins += [f"tx__{port}__{member}()" for member in forward]
                continue
            pins += [f"rx__{port}__{member}({rx}__{member})" for member in forward | back]
            pins += [f"tx__{port}__{member}({tx}__{member})" for member in forward | back]
        pins.append(f"connected({network.router.ports}'d{network.connected(router)})")
        yield f"  {names[network.credit_flits[router]]} router{router} ("
        yield ",\n".join(f"    .{pin}" for pin in pins)
        yield "  );"
    numbers = range(network.routers)
    yield f"  assign dropped = {' + '.join(f'router{router}_dropped' for router in numbers)};"
    yield f"  assign activity = {' | '.join(f'router{router}_activity' for router in numbers)};"
    yield "endmodule"
