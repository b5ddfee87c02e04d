"""Up and down a k-ary n-tree, the way up spread by the destination (Petrini and Vanneschi 1997)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data

from ...config import RouterConfig
from ...topologies.kary_tree import KaryTree
from .function import Arrival
from .shaped import ShapedRouting
from .topology import Topology

__all__ = ["KaryTreeRouting"]

DIGITS_BITS = 24
"""Bits of the route for the digits of a node's number."""
LEVEL_BITS = 4
PORT_BITS = 6


class KaryTreeRouting(ShapedRouting):
    """The packet goes up until the destination is below, then down. Its way is the same each time.

    A router of level l goes up by port k + d and down by port d, where d is digit l of the destination. So packets to
    one node meet on their way up, and those to different nodes of a router part there.

    The route holds the digits of the node's number, the first one lowest, each in as many bits as the router's ports
    need (`digit_bits`). A digit from k on has no port.

    A packet never goes up after it went down. So no cycle of channels can wait for each other.
    """

    shape = KaryTree
    by_place = True
    position_layout = data.StructLayout(
        {
            "level": unsigned(LEVEL_BITS),
            "fan_out": unsigned(PORT_BITS),
            "above": unsigned(DIGITS_BITS),
            "mask": unsigned(DIGITS_BITS),
        }
    )

    @classmethod
    def digit_bits(cls, config: RouterConfig) -> int:
        """Bits of a digit: the largest is less than half of the ports."""
        return max(1, ((config.ports - cls.first_port(config)) // 2 - 1).bit_length())

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """As many digits as fit."""
        bits = cls.digit_bits(config)
        return DIGITS_BITS // bits * bits

    @classmethod
    def check(cls, network: Topology) -> None:
        """The digits of a node must fit the route, besides what every topology needs."""
        super().check(network)
        bits, levels = cls.digit_bits(network.router), cls.shape_of(network).n
        if levels * bits > DIGITS_BITS:
            raise ValueError(
                f"{levels} levels: a route has {DIGITS_BITS // bits} digits for routers of {network.router.ports} ports"
            )

    @classmethod
    def _digits(cls, network: Topology, number: int, count: int) -> int:
        """The first `count` of the digits of `number`, which has that many."""
        k, bits, found = cls.shape_of(network).k, cls.digit_bits(network.router), 0
        for digit in range(count):
            found |= number // k ** (count - 1 - digit) % k << bits * digit
        return found

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """Level, k, the router's digits, and a mask of those that nodes below have in common."""
        shape: KaryTree = cls.shape_of(network)
        level, number = divmod(router, shape.row)
        return {
            "level": level,
            "fan_out": shape.k,
            "above": cls._digits(network, number, shape.n - 1),
            "mask": (1 << cls.digit_bits(network.router) * level) - 1,
        }

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """The digits of the node."""
        return cls._digits(network, destination, cls.shape_of(network).n)

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """Down where the node is below, else up."""
        here, bits = arrival.position, cls.digit_bits(config)
        digit = arrival.route >> bits * here["level"] & (1 << bits) - 1
        below = not (arrival.route ^ here["above"]) & here["mask"]
        port = cls.first_port(config) + digit + (0 if below else here["fan_out"])
        return (port if digit < here["fan_out"] and port < config.ports else None), arrival.vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        shape: KaryTree = cls.shape_of(network)
        level, number = routers // shape.row, routers % shape.row
        # The digits before digit l: those of the node's number and of the router's, which has one fewer.
        digit = destinations // shape.k ** (shape.n - 1 - level)
        below = digit // shape.k == number // shape.k ** (shape.n - 1 - level)
        return cls.first_port(network.router) + digit % shape.k + np.where(below, 0, shape.k), vls

    def elaborate(self, platform: object) -> Module:
        m = Module()
        here, bits = self.position, self.digit_bits(self.config)
        digit, port, below = Signal(bits), Signal(PORT_BITS + 1), Signal()
        known = len(self.route)
        m.d.comb += [
            digit.eq(self.route >> (here.level * bits)),
            below.eq(((self.route ^ here.above[:known]) & here.mask[:known]) == 0),
            port.eq(self.first_port(self.config) + digit + Mux(below, 0, here.fan_out)),
        ]
        with m.If(digit < here.fan_out):
            m.d.comb += self.port.eq(Cat(port == number for number in range(self.config.ports)))
        return m
