"""Source routes (Myrinet): the header lists the output ports."""

from __future__ import annotations

from amaranth import Module

from ...config import RouterConfig
from .function import RoutingFunction

__all__ = ["SourceRouting"]


class SourceRouting(RoutingFunction):
    """The output port is the low `hop_bits` of the route, which each router takes off.

    Nothing in the router keeps routes from deadlock: `Network` checks those that it gives out.
    """

    strips = True

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """One hop."""
        return config.link.hop_bits

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(self.route):
            for port in range(self.config.ports):
                with m.Case(port):
                    m.d.comb += self.port[port].eq(1)
        return m
