"""Source routes (Myrinet): the header lists the output ports."""

from __future__ import annotations

from amaranth import Module

from ...config import ConfigError, RouterConfig
from .function import Arrival
from .given import GivenRouting
from .topology import Topology

__all__ = ["SourceRouting"]


class SourceRouting(GivenRouting):
    """The output port is the low `hop_bits` of the route, which each router takes off.

    Nothing in the router keeps routes from deadlock: `Network` checks those that it gives out.
    """

    strips = True

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """One hop."""
        return config.link.hop_bits

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """All hops, the first one lowest. Raises ConfigError if there are more than `LinkConfig.max_hops`."""
        link, place = network.router.link, (router, in_port)
        steps = network.path_from(router, destination, in_port=in_port)
        if len(steps) > link.max_hops:
            name = f"node {network.nodes.index(place)}" if place in network.nodes else f"router {router}"
            raise ConfigError(
                f"Network: {name} to node {destination} is {len(steps)} routers; a route of "
                f"{link.flit_bits}-bit flits with link.hop_bits = {link.hop_bits} holds {link.max_hops}"
            )
        return sum(port << i * link.hop_bits for i, (_, port) in enumerate(steps))

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The port that the hop names."""
        return (arrival.route if arrival.route < config.ports else None), arrival.vl

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(self.route):
            for port in range(self.config.ports):
                with m.Case(port):
                    m.d.comb += self.port[port].eq(1)
        return m
