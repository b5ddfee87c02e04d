"""A flit as it stands in a buffer, and the part of a header that the routing stage looks at."""

from __future__ import annotations

from amaranth import unsigned
from amaranth.lib import data

from ..config import WORD_ROUTE_BITS, LinkConfig, RouterConfig
from ..packet import HEADER_LAYOUT
from .multicast.sets import set_mark
from .routing import routing_class

__all__ = ["BufferedFlitLayout", "RouteLayout", "route_field"]

_ROUTE = HEADER_LAYOUT["route"]


class BufferedFlitLayout(data.StructLayout):
    """A flit without its VL number, which is the queue that it stands in.

    Members: `head`, `tail`, `data` (`flit_bits`), as in `link.FlitLayout`. The flags come first, so that they and the
    header's first bits are one slice (`RouteLayout`).
    """

    def __init__(self, config: LinkConfig) -> None:
        super().__init__({"head": 1, "tail": 1, "data": unsigned(config.flit_bits)})


class RouteLayout(data.StructLayout):
    """The low bits of `BufferedFlitLayout`, up to the last one that the routing function looks at.

    Members: `head`, `tail`, `kind`, `service_level`, `route` (`RoutingFunction.route_bits`, or with multicast up to the
    mark of a set).
    """

    def __init__(self, config: RouterConfig) -> None:
        members = {"head": 1, "tail": 1}
        members |= {name: HEADER_LAYOUT[name].width for name in ("kind", "service_level")}
        bits = routing_class(config).route_bits(config)
        if config.multicast_nodes:
            bits = set_mark(config) + 1
        super().__init__(members | {"route": unsigned(bits)})
        assert self["route"].offset == 2 + _ROUTE.offset


def route_field(config: LinkConfig) -> slice:
    """The bits of a header flit's `data` that hold the source route.

    They are 48, or 24 on a 32-bit link, whose routers see only the first flit of the header.
    """
    return slice(_ROUTE.offset, _ROUTE.offset + (WORD_ROUTE_BITS if config.flit_bits == 32 else _ROUTE.width))
