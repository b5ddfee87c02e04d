"""A message network's Verilog: its top module and the blocks that this joins, each made once."""

from __future__ import annotations

from amaranth.lib.wiring import In
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.network import Network
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.router.power_herd import power_signals
from lanikai.hdl.router.router import activity_signals
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.message_node import MessageNode

from ..build.model import Design, Public
from ..inside.watchdog import Watchdog
from .message_top import PORTS, ComposedMessageTop, MessageTop
from .network_blocks import NATIVE, message_composition

__all__ = ["TOP", "message_design"]

TOP = "network_hosts"
"""Name of the top module."""


def message_design(
    network: Network, traffic: TrafficConfig, *, composed: bool = False, watch: bool = False
) -> Design:
    """The design of a message network: `network`, with a message node `traffic` at each of its places.

    `composed`: it is made of blocks that are compiled once each (`composition.py`). The top module is a `MessageTop`
    or, `composed`, a `ComposedMessageTop`. `watch`: with a monitor at each interface of a router.
    """
    ordered = network.router.vl_selection != "any" and in_order(network)
    public = tuple(Public(TOP, name, writable=member.flow == In) for name, member in PORTS.items())
    shared = {
        "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
        "messages.cpp": (NATIVE / "messages.cpp").read_text(),
    }
    if composed:
        return Design(
            top=TOP,
            sources=shared | {f"{TOP}.v": to_verilog(ComposedMessageTop(network, traffic), name=TOP)},
            public=public,
            composition=message_composition(network, traffic, TOP, ordered=ordered, watch=watch),
        )
    blocks = network.block_verilog(watch=watch)
    top = MessageTop(network, traffic)
    agents = (name for name in top.signature.members if name.startswith("router"))
    public += tuple(Public(TOP, name, writable=top.signature.members[name].flow == In) for name in agents)
    sources = {f"{name}.v": text for name, text in blocks.items()}
    sources |= shared | {
        "message_node.v": to_verilog(MessageNode(traffic, ordered=ordered), name="message_node"),
        "network.v": network.verilog("network"),
        **{name: (NATIVE / name).read_text() for name in ("messages.sv", "departures.sv")},
        f"{TOP}.v": to_verilog(top, name=TOP),
    }
    for block in blocks:
        public += tuple(
            Public(module, variable)
            for signals in (router_signals, activity_signals, power_signals)
            for module, variable in signals(network.router, name=block)
        )
    return Design(top=TOP, sources=sources, public=public, no_inline=(*blocks, "message_node"))
