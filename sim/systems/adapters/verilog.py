"""An adapter network's Verilog: its top module, and the blocks that are joined outside of it, each made once."""

from __future__ import annotations

from dataclasses import replace

from amaranth.lib.wiring import In
from lanikai.hdl.config import HcaConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.hca.activity import adapter_activity_signals
from lanikai.hdl.hca.layout import TRAILER_LAYOUT
from lanikai.hdl.monitors.flit_tally import tallied, tally_signals
from lanikai.hdl.network import Network

from ...build.composition import Block, Composition, Instance, Output
from ...build.model import Design, Public
from ...build.packet_view import NODE_ENDS, packet_view
from ...inside.watchdog import Watchdog
from ...models.system_bus import SystemBusTiming
from ..network_blocks import NATIVE, network_links, router_blocks, router_instances
from .node import AdapterNode
from .side_bands import side_band
from .top import PORTS, AdapterTop

__all__ = ["TOP", "adapter_design"]

TOP = "adapter_network"
"""Name of the top module."""
SETTLE_CYCLES = 4
"""Quiet cycles of a node after which nothing changes in it: a flit in the link's register, the ring's answer, and the
credit that follows."""


def adapter_design(
    network: Network,
    hca: HcaConfig,
    *,
    timing: SystemBusTiming,
    memory_bytes: int,
    watch: bool = False,
    tally: bool = False,
) -> Design:
    """The design of an adapter network: `network`, with an adapter `hca` at each of its places.

    Python reaches the routers' agents, if they have any. `watch`: with a monitor at each interface of a router.
    `tally`: with counts of what passes every link and bus (`monitors/flit_tally.py`).
    """
    network = network.replace(router=network.router.replace(buffer_memory="distributed"))
    nodes = len(network.nodes)
    band = side_band(network, hca)
    component = AdapterNode(
        hca,
        timing=timing,
        memory_bytes=memory_bytes,
        downstream_flits=network.router.input_buffer_flits,
        band=band,
    )
    inner = adapter_activity_signals(counters=hca.activity_counters)
    if tally:
        adapter = tallied(component.parts["hca"], last_bit=TRAILER_LAYOUT["last"].offset)
        inner += tally_signals(adapter, name="hca")
    files = {f"{name}.v": to_verilog(block, name=name) for name, block in component.parts.items()}
    files |= {name: (NATIVE / name).read_text() for name in ("messages.sv", "system_memory.sv")}
    node = Block(
        name="adapter_node",
        component=component,
        transmit=("tx",),
        receive=("rx",),
        fixed=("node", "router") if band else ("node",),
        broadcast={"now": "now", **({name: name for name in band.node_inputs()} if band else {})},
        outputs={
            "told": Output(input="told", kind="or", bits=1),
            "unsettled": Output(input="unsettled", kind="bit", bits=nodes),
            "activity": Output(input="moving", kind="or", bits=1),
            **(band.adapter_outputs() if band else {}),
        },
        settle_cycles=SETTLE_CYCLES,
        due=1,
        addressed=True,
        python=("driver_request", "driver_response"),
        inner_public=tuple(inner),
        views=NODE_ENDS,
        view_module=packet_view(hca.link),
        files=files,
    )
    instances = [
        Instance(
            block="adapter_node",
            path=f"{TOP}.node{i}",
            fixed=(i, router) if band else (i,),
            number=i,
        )
        for i, (router, _) in enumerate(network.nodes)
    ]
    agents = network.router.management or network.router.activity_counters
    routers = router_blocks(network, agents=agents, watch=watch)
    if tally:
        routers = tuple(_tallied(block) for block in routers)
    if band:
        routers = tuple(
            replace(block, outputs={**block.outputs, **band.router_outputs()}) for block in routers
        )
    composition = Composition(
        blocks=(*routers, node),
        instances=(
            *router_instances(network, f"{TOP}.network"),
            *instances,
        ),
        links=network_links(network),
    )
    return Design(
        top=TOP,
        sources={
            "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
            "messages.cpp": (NATIVE / "messages.cpp").read_text(),
            "hostmem.cpp": (NATIVE / "hostmem.cpp").read_text(),
            f"{TOP}.v": to_verilog(AdapterTop(network, band=band), name=TOP),
        },
        public=tuple(Public(TOP, name, writable=member.flow == In) for name, member in PORTS.items()),
        composition=composition,
    )


def _tallied(block: Block) -> Block:
    """A router's block with counts of what passes its links."""
    component = tallied(block.component)
    shown = (variable for _, variable in tally_signals(component, name=block.name))
    return replace(block, component=component, public=(*block.public, *shown))
