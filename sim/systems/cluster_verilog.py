"""The cluster's design: its top module and its blocks, converted once each."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.lib import wiring
from lanikai.hdl.config import NicConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.network import Network
from lanikai.hdl.nic.nic import public_signals as nic_signals
from lanikai.hdl.router.router import activity_signals
from lanikai.hdl.router.router import public_signals as router_signals

from ..build.model import Design, Public, Variant
from ..build.packet_view import NODE_ENDS, held, packet_view, router_ends, with_views
from ..inside.watchdog import Probe
from ..models.pci_host import pci_signals
from ..models.pci_timing import PciTiming
from ..waves.state_names import state_names
from .cluster_top import ClusterTop, ComposedClusterTop
from .network_blocks import NATIVE
from .node_block import cluster_composition
from .node_parts import NodeParts

__all__ = ["TOP", "cluster_design", "composed_design", "probes"]

TOP = "cluster"
"""Name of the top module."""


def cluster_design(
    network: Network,
    *,
    nic: NicConfig,
    pci: PciTiming,
    memory_bytes: int,
    variant: Variant,
    faults: Sequence[FaultPlace] = (),
) -> Design:
    """The design of a cluster: at every place of the `network` a card `nic`, and a host with a bus `pci` and
    `memory_bytes` of memory. `faults`: links that fail.

    The top module is `ClusterTop`, whose members but `clk` Python and the main loop (`native/main.cpp`) use. For
    `waves` the blocks have views of the packets on their links besides. For `debug` they have monitors, unless links
    are to fail, which breaks their rules.
    """
    waves, watch = variant == "waves", variant == "debug" and not faults
    top = ClusterTop(
        network, nic=nic, pci=pci, memory_bytes=memory_bytes, waves=waves, faults=faults, watch=watch
    )
    top_text = to_verilog(top, name=TOP)
    routers = network.block_verilog(watch=watch)
    sources = {f"{name}.v": text for name, text in routers.items()}
    sources |= {f"{name}.v": to_verilog(block, name=name) for name, block in top.blocks.items()}
    if waves:
        views = dict.fromkeys(routers, router_ends(network.router.ports)) | {"nic": NODE_ENDS}
        sources |= {f"{name}.v": with_views(sources[f"{name}.v"], ends) for name, ends in views.items()}
    sources |= {
        "held.v": held(),
        "hostmem.sv": (NATIVE / "hostmem.sv").read_text(),
        "hostmem.cpp": (NATIVE / "hostmem.cpp").read_text(),
        f"{TOP}.v": top_text,
    }
    if waves:
        sources["packet_view.v"] = packet_view(nic.link)
    public = _ports(top)
    for block in routers:
        public += [
            Public(module, variable)
            for signals in (router_signals, activity_signals)
            for module, variable in signals(network.router, name=block)
        ]
    public += [Public(module, variable) for module, variable in nic_signals(nic)]
    public += [Public("pci_host", variable) for variable in pci_signals()]
    return Design(
        top=TOP,
        sources=sources,
        public=tuple(public),
        no_inline=(*routers, "nic", "pci_host", "mailbox"),
        enums=state_names(top.blocks["nic"]) | state_names(top.blocks["pci_host"]),
    )


def composed_design(
    network: Network,
    *,
    nic: NicConfig,
    pci: PciTiming,
    memory_bytes: int,
    settle_cycles: int,
    variant: Variant = "fast",
    cuts: bool = False,
) -> Design:
    """The same cluster as `cluster_design`, composed of blocks that are compiled once each (`composition.py`): nodes,
    which rest after `settle_cycles` without movement, and routers. Its top module is `ComposedClusterTop`. `cuts`: as
    `router_blocks`."""
    top = ComposedClusterTop(network)
    composition = cluster_composition(
        network,
        nic=nic,
        pci=pci,
        memory_bytes=memory_bytes,
        settle_cycles=settle_cycles,
        top=TOP,
        cuts=cuts,
        watch=variant == "debug",
    )
    enums: dict[str, dict[int, str]] = {}
    if variant == "waves":
        parts = NodeParts(
            nic, pci=pci, memory_bytes=memory_bytes, downstream_flits=network.router.input_buffer_flits
        )
        for name in ("nic", "pci_host"):
            enums |= state_names(parts.blocks[name])
    return Design(
        top=TOP,
        sources={
            **{f"{name}.v": to_verilog(block, name=name) for name, block in top.blocks.items()},
            "hostmem.cpp": (NATIVE / "hostmem.cpp").read_text(),
            f"{TOP}.v": to_verilog(top, name=TOP),
        },
        public=tuple(_ports(top)),
        enums=enums,
        composition=composition,
    )


def _ports(top: wiring.Component) -> list[Public]:
    """All ports of a top but its clock."""
    members = top.signature.members.items()
    return [Public(TOP, name, writable=member.flow == wiring.In) for name, member in members if name != "clk"]


def probes(network: Network, nic: NicConfig) -> list[Probe]:
    """The probes that the watchdog shows of a cluster."""
    link = network.router.link
    lanes = tuple(f"port {port} VL {vl}" for port in range(network.router.ports) for vl in range(link.vls))
    found = []
    for router in range(network.routers):
        instance = f"network.router{router}"
        found += [Probe(instance, variable, lanes) for _, variable in router_signals(network.router)]
    for node in range(len(network.nodes)):
        found += [Probe(f"nic{node}", variable) for _, variable in nic_signals(nic)]
        found += [Probe(f"host{node}", variable) for variable in pci_signals()]
    return found
