"""Dimension order on a flattened butterfly: one link a dimension (Kim, Dally, Abts 2007)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data

from ...config import RouterConfig
from ...topologies.flattened_butterfly import MOST_DIMENSIONS, FlattenedButterfly
from .function import Arrival
from .shaped import ShapedRouting
from .topology import Topology

__all__ = ["FlattenedButterflyRouting"]

DIGIT_BITS = 5
PORT_BITS = 7
DIMENSIONS = range(MOST_DIMENSIONS)


class FlattenedButterflyRouting(ShapedRouting):
    """The packet goes to the destination's x by one link, then to its y, then to its z.

    The route has 5 bits each: x, y, z and the number of the node at its router. A coordinate or node that is not there
    has no port.

    A packet never turns to an earlier dimension, nor goes two links of one. So no cycle of channels can wait for each
    other.
    """

    shape = FlattenedButterfly
    by_place = True
    position_layout = data.StructLayout(
        {f"at_{d}": unsigned(DIGIT_BITS) for d in DIMENSIONS}
        | {f"first_{d}": unsigned(PORT_BITS) for d in range(MOST_DIMENSIONS + 1)}
    )

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """Coordinates and node."""
        return DIGIT_BITS * (MOST_DIMENSIONS + 1)

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """Coordinates of the router, the first port of each dimension, and the one after the last."""
        shape: FlattenedButterfly = cls.shape_of(network)
        base, at = cls.first_port(network.router), [*shape.at(router), *[0] * MOST_DIMENSIONS]
        return {f"at_{d}": at[d] for d in DIMENSIONS} | {
            f"first_{d}": base + shape.first(d) for d in range(MOST_DIMENSIONS + 1)
        }

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """Coordinates of the destination's router, and its number there."""
        home, port = network.nodes[destination]
        digits = [*cls.shape_of(network).at(home), *[0] * MOST_DIMENSIONS][:MOST_DIMENSIONS]
        digits.append(port - cls.first_port(network.router))
        return sum(digit << DIGIT_BITS * d for d, digit in enumerate(digits))

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The port of the first dimension in which the packet is not there yet, or the node's."""
        here = arrival.position
        digits = [arrival.route >> DIGIT_BITS * d & (1 << DIGIT_BITS) - 1 for d in range(MOST_DIMENSIONS + 1)]
        for d in DIMENSIONS:
            if digits[d] != here[f"at_{d}"]:
                port = here[f"first_{d}"] + digits[d] - (digits[d] > here[f"at_{d}"])
                return (port if port < min(here[f"first_{d + 1}"], config.ports) else None), arrival.vl
        port = cls.first_port(config) + digits[MOST_DIMENSIONS]
        return (port if port < min(here["first_0"], config.ports) else None), arrival.vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        shape: FlattenedButterfly = cls.shape_of(network)
        at = np.array([shape.at(router) for router in range(network.routers)], np.int32)
        homes, ports = cls.homes_of(network)
        base, found = cls.first_port(network.router), ports[destinations]
        # Later dimensions first, as an earlier one counts.
        for d in reversed(range(len(shape.sizes))):
            here, to = at[routers, d], at[homes[destinations], d]
            found = np.where(here == to, found, base + shape.first(d) + to - (to > here))
        return found, vls

    def elaborate(self, platform: object) -> Module:
        m = Module()
        here, ports = self.position, range(self.config.ports)
        port, end = Signal(PORT_BITS + 1), Signal(PORT_BITS)
        digits = [self.route.word_select(d, DIGIT_BITS) for d in range(MOST_DIMENSIONS + 1)]
        m.d.comb += [port.eq(self.first_port(self.config) + digits[MOST_DIMENSIONS]), end.eq(here["first_0"])]
        for d in reversed(DIMENSIONS):
            with m.If(digits[d] != here[f"at_{d}"]):
                m.d.comb += [
                    port.eq(here[f"first_{d}"] + digits[d] - (digits[d] > here[f"at_{d}"])),
                    end.eq(here[f"first_{d + 1}"]),
                ]
        with m.If(port < end):
            m.d.comb += self.port.eq(Cat(port == number for number in ports))
        return m
