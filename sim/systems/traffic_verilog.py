"""A traffic network's Verilog: its top module and the blocks that this joins, each made once."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.lib.wiring import In
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.network import Network
from lanikai.hdl.router.power_herd import power_signals
from lanikai.hdl.router.router import activity_signals
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.traffic.arrivals import watched_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.ports import Phase

from ..build.model import Design, Public
from ..build.packet_view import NODE_ENDS, packet_view, router_ends, with_views
from ..inside.watchdog import Watchdog
from .forwarding import needs_tables
from .network_blocks import traffic_composition
from .traffic_top import PORTS, ComposedTrafficTop, TrafficTop

__all__ = ["TOP", "traffic_design"]

TOP = "network_bench"
"""Name of the top module: as wave files and their views have it."""


def traffic_design(
    network: Network,
    traffic: TrafficConfig,
    *,
    agents: bool = False,
    composed: bool = False,
    faults: Sequence[FaultPlace] = (),
    watch: bool = False,
) -> Design:
    """The design of a traffic network: `network`, with a traffic node `traffic` at each of its places.

    - `agents`: Python reaches the routers' agents' ports: of the top module or, `composed`, of the routers. So it does
      where it has to write forwarding tables.
    - `composed`: of blocks that are compiled once each (`composition.py`).
    - `faults`: links that fail; not if it is composed.
    - `watch`: with a monitor at each interface of a router.

    The top module is a `TrafficTop` or, `composed`, a `ComposedTrafficTop`.
    """
    shared = {
        "measurement.v": to_verilog(Measurement(traffic), name="measurement"),
        "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
    }
    if composed:
        return Design(
            top=TOP,
            sources=shared | {f"{TOP}.v": to_verilog(ComposedTrafficTop(network, traffic), name=TOP)},
            public=tuple(Public(TOP, name, writable=member.flow == In) for name, member in PORTS.items()),
            no_inline=("measurement",),
            composition=traffic_composition(network, traffic, TOP, agents=agents, watch=watch),
        )
    blocks = network.block_verilog(watch=watch)
    top = TrafficTop(network, traffic, agents=agents or needs_tables(network), faults=faults)
    ends = router_ends(network.router.ports)
    sources = {f"{name}.v": with_views(text, ends) for name, text in blocks.items()}
    sources |= shared | {
        "traffic_node.v": with_views(to_verilog(TrafficNode(traffic), name="traffic_node"), NODE_ENDS),
        "network.v": network.verilog("network", faults=faults),
        "packet_view.v": packet_view(traffic.link),
        f"{TOP}.v": to_verilog(top, name=TOP),
    }
    public = [
        Public(TOP, name, writable=member.flow == In)
        for name, member in top.signature.members.items()
        if name != "clk"
    ]
    public += [Public("traffic_node", variable) for variable in watched_signals(traffic)]
    for block in blocks:
        public += [
            Public(module, variable)
            for signals in (router_signals, activity_signals, power_signals)
            for module, variable in signals(network.router, name=block)
        ]
    return Design(
        top=TOP,
        sources=sources,
        public=tuple(public),
        no_inline=(*blocks, "traffic_node", "measurement"),
        enums={"phase": {phase.value: phase.name for phase in Phase.__members__.values()}},
    )
