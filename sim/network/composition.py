"""The network bench of blocks that are compiled once each: what is outside of its top module (`parts.py`)."""

from __future__ import annotations

from lanikai.hdl.network import Network
from lanikai.hdl.nic.ports import PROCESSOR_REQUEST
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.router import DROPPED_BITS, settle_cycles
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.router.routing import POSITION, routing_class
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.node import settle_cycles as node_settle_cycles
from lanikai.hdl.traffic.ports import RESPONSE

from ..parts import Block, Composition, Instance, Link, Output

__all__ = ["bench_composition", "network_links", "router_blocks", "router_instances"]


def bench_composition(network: Network, traffic: TrafficConfig, top: str) -> Composition:
    """The routers and traffic nodes of a bench whose top module is `top`, routers first; their buffers in memories that
    simulate fast."""
    network = network.replace(router=network.router.replace(buffer_memory="distributed"))
    traffic = traffic.replace(queue_memory="distributed")
    nodes = traffic.nodes
    node = Block(
        name="traffic_node",
        component=TrafficNode(traffic),
        transmit=("tx",),
        receive=("rx",),
        fixed=("node",),
        broadcast={"control": "control", "request": "request_held"},
        outputs={
            **{name: Output(input=name, kind="bit", bits=nodes) for name in ("born", "done", "behind")},
            "response": Output(input="node_response", kind="or", bits=RESPONSE.size),
            "activity": Output(input="moving", kind="or", bits=1),
        },
        settle_cycles=node_settle_cycles(traffic),
        due=traffic.classes,
    )
    instances = [
        Instance(block="traffic_node", path=f"{top}.node{i}", fixed=(i,), number=i) for i in range(nodes)
    ]
    return Composition(
        blocks=(*router_blocks(network), node),
        instances=(*router_instances(network, f"{top}.network"), *instances),
        links=network_links(network),
    )


def router_blocks(network: Network) -> tuple[Block, ...]:
    """The network's kinds of routers. Their counts of dropped packets are added up in the top module's input
    `dropped_sum`, and that one moved shows in its input `moving`."""
    ports = range(network.router.ports)
    # Agents are not reached: the registers keep what reset gave them.
    tied = {}
    if has_agent(network.router):
        tied = {"agent__request": f"{PROCESSOR_REQUEST.size}'d0", "agent__response": ""}
    position = ("position",) if routing_class(network.router).uses_position else ()
    return tuple(
        Block(
            name=name,
            component=component,
            transmit=tuple(f"tx__{port}" for port in ports),
            receive=tuple(f"rx__{port}" for port in ports),
            fixed=("connected", *position),
            tied=tied,
            outputs={
                "dropped": Output(input="dropped_sum", kind="sum", bits=DROPPED_BITS),
                "activity": Output(input="moving", kind="or", bits=1),
            },
            settle_cycles=settle_cycles(network.router),
            public=tuple(variable for _, variable in router_signals(network.router)),
        )
        for name, component in network.block_components(skippable=True).items()
    )


def router_instances(network: Network, path: str) -> tuple[Instance, ...]:
    """The network's routers, below the instance `path`."""
    names = {depths: block for block, depths in network.blocks.items()}
    found = []
    for router in range(network.routers):
        fixed = [network.connected(router)]
        if routing_class(network.router).uses_position:
            fixed.append(network.position(router))
        block = names[network.credit_flits[router]]
        found.append(Instance(block=block, path=f"{path}.router{router}", fixed=tuple(fixed)))
    return tuple(found)


def network_links(network: Network) -> tuple[Link, ...]:
    """All links: instance r is router r, instance routers + i is node i."""
    links = [Link(*here, *there) for here, there in network.neighbours.items()]
    for node, (router, port) in enumerate(network.nodes):
        place = (network.routers + node, 0)
        links += [Link(router, port, *place), Link(*place, router, port)]
    return tuple(links)


assert POSITION.size <= 64
