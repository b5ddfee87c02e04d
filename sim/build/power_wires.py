"""The wires by which routers lend each other energy credits, where routers are blocks outside of their top module.

`NetworkComponent` joins the same wires where routers are instances of a network. Both ends are registers of the sender
(`PowerHerd`), so a top module in between takes no time: what a router lends is the same to the cycle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amaranth import Cat, Const, Module, Value
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.network import Network

from .composition import Block, Output

__all__ = ["NUMBER_BITS", "add_power_wires", "power_wire_members", "with_power_wires"]

NUMBER_BITS = 16
"""Width of a router's number."""
_ASKED, _GIVEN = "power_asked", "power_given"


def power_wire_members(network: Network) -> dict[str, Member]:
    """Members of a top module for the wires; {} for a network whose routers lend nothing.

    - `power_needs` (in, a bit a router), `power_gives_{port}` (in, a bit a router): those of all routers.
    - `power_asked`, `power_given` (out, P bits a router): what each router has from its neighbours, the bits of router
      0 lowest.
    """
    if not network.router.power_share:
        return {}
    ports = network.router.ports
    return {
        "power_needs": In(network.routers),
        **{f"power_gives_{port}": In(network.routers) for port in range(ports)},
        _ASKED: Out(network.routers * ports),
        _GIVEN: Out(network.routers * ports),
    }


def add_power_wires(m: Module, network: Network, top: Any) -> Value:
    """Join the wires in `top`, which has `power_wire_members`. Returns whether a router asks or lends in this cycle:
    then no router may be left out, as a neighbour that rests has to hear of it."""
    if not network.router.power_share:
        return Const(0, 1)
    asked: list[Value] = []
    given: list[Value] = []
    for router in range(network.routers):
        for port in range(network.router.ports):
            there = network.neighbours.get((router, port))
            asked.append(top.power_needs[there[0]] if there else Const(0, 1))
            given.append(getattr(top, f"power_gives_{there[1]}")[there[0]] if there else Const(0, 1))
    m.d.comb += [top.power_asked.eq(Cat(*asked)), top.power_given.eq(Cat(*given))]
    return Cat(*asked, *given).any()


def with_power_wires(network: Network, block: Block) -> Block:
    """A router's block with the wires; unchanged for routers that lend nothing.

    It has one more `fixed` input, the router's number, which picks an instance's own bits.
    """
    if not network.router.power_share:
        return block
    ports, routers = network.router.ports, network.routers
    glue = [
        f"reg [{NUMBER_BITS - 1}:0] power_number_held;",
        "initial power_number_held = power_number;",
        "always @(posedge clk) power_number_held <= power_number;",
        f"wire [{ports - 1}:0] power_gives, power_neighbour_needs, power_neighbour_gives;",
    ]
    pins = [f"input [{NUMBER_BITS - 1}:0] power_number"]
    glued = {"power_gives": "power_gives"}
    for wire, end in ((_ASKED, "power_neighbour_needs"), (_GIVEN, "power_neighbour_gives")):
        pins.append(f"input [{ports * routers - 1}:0] {wire}")
        glue.append(f"assign {end} = {wire}[power_number_held * {ports} +: {ports}];")
        glued[end] = end
    for port in range(ports):
        pins.append(f"output power_gives_{port}")
        glue.append(f"assign power_gives_{port} = power_gives[{port}];")
    names = ("power_needs", *(f"power_gives_{port}" for port in range(ports)))
    return replace(
        block,
        fixed=(*block.fixed, "power_number"),
        broadcast={**block.broadcast, _ASKED: _ASKED, _GIVEN: _GIVEN},
        outputs={**block.outputs, **{name: Output(input=name, kind="bit", bits=routers) for name in names}},
        ports=(*block.ports, *pins),
        glue=(*block.glue, *glue),
        glued={**block.glued, **glued},
    )
