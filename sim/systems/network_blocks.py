"""Networks of blocks that are compiled once each: the parts outside of their top modules (`composition.py`)."""

from __future__ import annotations

from pathlib import Path

from lanikai.hdl.config import ConfigError
from lanikai.hdl.link import FlitLayout
from lanikai.hdl.network import Network
from lanikai.hdl.register_port import PROCESSOR_REQUEST
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.multicast.sets import reach_of
from lanikai.hdl.router.power_herd import power_signals
from lanikai.hdl.router.router import DROPPED_BITS, activity_signals, settle_cycles
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.router.routing import routing_class
from lanikai.hdl.traffic.arrivals import watched_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.message import COMMAND, EVENT
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.node import settle_cycles as node_settle_cycles
from lanikai.hdl.traffic.ports import RESPONSE

from ..build.composition import Block, Composition, Instance, Link, Output
from ..build.instances import width
from ..build.packet_view import NODE_ENDS, packet_view, router_ends
from ..build.power_wires import with_power_wires
from ..inside.watchdog import Probe
from .forwarding import needs_tables

__all__ = [
    "NATIVE",
    "message_composition",
    "network_links",
    "network_probes",
    "router_blocks",
    "router_instances",
    "traffic_composition",
]

NATIVE = Path(__file__).parents[1] / "native"
"""Folder of the simulation's native part."""


def traffic_composition(
    network: Network, traffic: TrafficConfig, top: str, *, agents: bool = False, watch: bool = False
) -> Composition:
    """The routers and traffic nodes of a network whose top module is `top`, routers first. Their buffers are in
    memories that simulate fast. `agents`: Python reaches the routers' agents' ports. `watch`: as `router_blocks`."""
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
        addressed=True,
        views=NODE_ENDS,
        view_module=packet_view(traffic.link),
        public=tuple(watched_signals(traffic)),
    )
    instances = [
        Instance(block="traffic_node", path=f"{top}.node{i}", fixed=(i,), number=i) for i in range(nodes)
    ]
    return Composition(
        blocks=(*router_blocks(network, agents=agents, watch=watch), node),
        instances=(*router_instances(network, f"{top}.network"), *instances),
        links=network_links(network),
    )


def message_composition(
    network: Network, traffic: TrafficConfig, top: str, *, ordered: bool, watch: bool = False
) -> Composition:
    """The routers, and message nodes with their rings (`native/messages.sv`), of a message network. A node rests until
    a flit or a request comes, its host rings its bell (`native/bells.h`), or a command's time has come. `watch`: as
    `router_blocks`."""
    network = network.replace(router=network.router.replace(buffer_memory="distributed"))
    traffic = traffic.replace(queue_memory="distributed")
    glued = {"event": "event_payload", "event_valid": "event_valid", "command__payload": "command"}
    glued |= {f"command__{name}": f"command_{name}" for name in ("valid", "ready")}
    glued |= {"settled": "settled", "quiet": "node_quiet"}
    not_before, flit = COMMAND["not_before"], FlitLayout(traffic.link)
    ring = ("command_valid", "command_ready", "command", "event_valid", "event_payload", "room")
    node = Block(
        name="message_node",
        component=MessageNode(traffic, ordered=ordered),
        transmit=("tx",),
        receive=("rx",),
        fixed=("node",),
        broadcast={"now": "now", "request": "routing"},
        outputs={
            "told": Output(input="told", kind="or", bits=1),
            "unsettled": Output(input="unsettled", kind="bit", bits=traffic.nodes),
            "activity": Output(input="moving", kind="or", bits=1),
        },
        settle_cycles=node_settle_cycles(traffic),
        due=1,
        addressed=True,
        views=NODE_ENDS,
        view_module=packet_view(traffic.link),
        ports=("output told", "output unsettled", "output quiet", "output waiting", "output [31:0] due_0"),
        glued=glued,
        glue=(
            "wire event_valid, command_valid, command_ready, room, settled, node_quiet;",
            f"wire {width(COMMAND.size)}command;",
            f"wire {width(EVENT.size)}event_payload;",
            "assign told = event_valid | room;",
            "assign unsettled = ~settled;",
            "assign quiet = node_quiet & ~room;",
            "assign waiting = command_valid;",
            f"assign due_0 = command[{not_before.offset} +: {not_before.width}];",
            f"messages #(.COMMAND_BITS({COMMAND.size}), .EVENT_BITS({EVENT.size})) messages (",
            f"  .clk(clk), .node(16'(node_held)), {', '.join(f'.{pin}({pin})' for pin in ring)}",
            ");",
            "departures departures (",
            f"  .clk(clk), .node(16'(node_held)), .head(tx_valid & tx_payload[{flit['head'].offset}]),",
            f"  .vl(4'(tx_payload[{flit['vl'].offset} +: {flit['vl'].width}])), .now(now));",
        ),
        files={name: (NATIVE / name).read_text() for name in ("messages.sv", "departures.sv")},
    )
    instances = [
        Instance(block="message_node", path=f"{top}.node{i}", fixed=(i,), number=i)
        for i in range(traffic.nodes)
    ]
    return Composition(
        blocks=(*router_blocks(network, watch=watch), node),
        instances=(*router_instances(network, f"{top}.network"), *instances),
        links=network_links(network),
    )


def router_blocks(
    network: Network, *, agents: bool = False, cuts: bool = False, watch: bool = False
) -> tuple[Block, ...]:
    """The network's kinds of routers. With `watch` there is a monitor at each of their interfaces.

    With `cuts` Python reaches the port `connected`: a port whose bit it clears leads nowhere from then on.

    With `agents`, or where forwarding tables have to be written, Python reaches the ports `agent_request` and
    `agent_response`.
    Their counts of dropped packets are added up in the top module's input `dropped_sum`. Its input `moving` shows that
    one moved.
    """
    ports = range(network.router.ports)
    agents = agents or needs_tables(network)
    tied = {}
    if has_agent(network.router) and not agents:
        # Agents are not reached: the registers keep what reset gave them.
        tied = {"agent__request": f"{PROCESSOR_REQUEST.size}'d0", "agent__response": ""}
    layout = routing_class(network.router).position_layout
    if layout is not None and layout.size > 64:
        raise ConfigError(f"routing {network.router.routing!r}: a position of {layout.size} bits: at most 64")
    position = ("position",) if layout is not None else ()
    reach = tuple(f"reach__{port}" for port in ports) if network.router.multicast_nodes else ()
    blocks = (
        Block(
            name=name,
            component=component,
            transmit=tuple(f"tx__{port}" for port in ports),
            receive=tuple(f"rx__{port}" for port in ports),
            fixed=("connected", *position, *reach),
            tied=tied,
            outputs={
                "dropped": Output(input="dropped_sum", kind="sum", bits=DROPPED_BITS),
                "activity": Output(input="moving", kind="or", bits=1),
            },
            settle_cycles=settle_cycles(network.router),
            python=(
                *(("agent_request", "agent_response") if agents else ()),
                *(("connected",) if cuts else ()),
            ),
            views=router_ends(network.router.ports),
            view_module=packet_view(network.router.link),
            public=tuple(
                variable
                for signals in (router_signals, activity_signals, power_signals)
                for _, variable in signals(network.router)
            ),
        )
        for name, component in network.block_components(skippable=True, watch=watch).items()
    )
    return tuple(with_power_wires(network, block) for block in blocks)


def router_instances(network: Network, path: str) -> tuple[Instance, ...]:
    """The network's routers, below the instance `path`."""
    names = {depths: block for block, depths in network.blocks.items()}
    found = []
    for router in range(network.routers):
        fixed = [network.connected(router)]
        if routing_class(network.router).position_layout is not None:
            fixed.append(network.position(router))
        fixed += reach_of(network, router)
        if network.router.power_share:
            fixed.append(router)
        block = names[network.credit_flits[router]]
        found.append(Instance(block=block, path=f"{path}.router{router}", fixed=tuple(fixed), number=router))
    return tuple(found)


def network_probes(network: Network) -> list[Probe]:
    """The probes that the watchdog shows of a network's routers, below the instance `network`."""
    router = network.router
    lanes = tuple(f"port {port} VL {vl}" for port in range(router.ports) for vl in range(router.link.vls))
    return [
        Probe(f"network.router{number}", variable, lanes)
        for number in range(network.routers)
        for _, variable in router_signals(router)
    ]


def network_links(network: Network) -> tuple[Link, ...]:
    """All links: instance r is router r, instance routers + i is node i."""
    links = [Link(*here, *there) for here, there in network.neighbours.items()]
    for node, (router, port) in enumerate(network.nodes):
        place = (network.routers + node, 0)
        links += [Link(router, port, *place), Link(*place, router, port)]
    return tuple(links)
