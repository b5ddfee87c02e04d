"""Dimension order on a hypercube: e-cube routing (Sullivan and Bashkow 1977)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import Module, Signal, unsigned
from amaranth.lib import data

from ...config import RouterConfig
from ...topologies.hypercube import Hypercube
from .function import NODE_BITS, Arrival
from .shaped import ShapedRouting
from .topology import Topology

__all__ = ["HypercubeRouting"]


class HypercubeRouting(ShapedRouting):
    """The packet goes along the lowest dimension in which it is not there yet.

    The route holds the destination's router, which has the node's number. A number beyond the hypercube has no port.

    A packet never turns from a dimension to a lower one. So no cycle of channels can wait for each other.
    """

    shape = Hypercube
    by_place = True
    position_layout = data.StructLayout({"at": unsigned(NODE_BITS), "last": unsigned(NODE_BITS)})

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """The router's number, and the largest one."""
        return {"at": router, "last": network.routers - 1}

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The port of the lowest bit that differs, or the node's."""
        base, differs = cls.first_port(config), arrival.route ^ arrival.position["at"]
        if arrival.route > arrival.position["last"]:
            return None, arrival.vl
        port = base + (differs & -differs).bit_length()
        return (port if port < config.ports else None), arrival.vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        differs = cls.homes_of(network)[0][destinations] ^ routers
        lowest = differs & -differs
        bits = np.ceil(np.log2(np.maximum(lowest, 1))).astype(np.int32) + 1
        return cls.first_port(network.router) + np.where(differs == 0, 0, bits), vls

    def elaborate(self, platform: object) -> Module:
        m = Module()
        base, bits = self.first_port(self.config), NODE_BITS
        differs, lowest = Signal(bits), Signal(bits)
        m.d.comb += [differs.eq(self.route ^ self.position.at), lowest.eq(differs & (~differs + 1)[:bits])]
        with m.If(self.route <= self.position.last):
            m.d.comb += self.port[base].eq(differs == 0)
            for bit, port in enumerate(range(base + 1, min(self.config.ports, base + 1 + bits))):
                m.d.comb += self.port[port].eq(lowest[bit])
        return m
