"""What every routing function has in common: from a header's route to an output port."""

from __future__ import annotations

from typing import Any

from amaranth import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...packet import HEADER_LAYOUT

__all__ = ["COORDINATE_BITS", "NODE_BITS", "POSITION", "RoutingFunction", "TableWriteSignature"]

NODE_BITS = HEADER_LAYOUT["destination"].width
"""Width of a node's number: the low bits of the route where it names the destination."""
COORDINATE_BITS = NODE_BITS // 2
"""Width of a coordinate of a mesh: x in the low half of the node bits, y in the high half."""

POSITION = data.StructLayout(
    {name: unsigned(COORDINATE_BITS) for name in ("x", "y", "last_x", "last_y")},
)
"""Where a router stands in its mesh, and the largest coordinates of that mesh: constants of an instance, so that
one block serves all of them."""


class TableWriteSignature(wiring.Signature):
    """Where forwarding tables are written, seen by the function: in `write`, from the next cycle on node `node`
    (in) is reached by `port` (in), or by none if `known` (in) is low. Rows beyond the table are ignored."""

    def __init__(self, config: RouterConfig) -> None:
        port_bits = max(1, (config.ports - 1).bit_length())
        super().__init__({"write": In(1), "node": In(NODE_BITS), "port": In(port_bits), "known": In(1)})


class RoutingFunction(wiring.Component):
    """Base of the routing functions. Parameter: `config`, the router's.

    Members:

    - `route` (in, `route_bits(config)`): low bits of the header's route field.
    - `port` (out, P): one-hot, the output port, in the same cycle; 0 if there is none: the packet is dropped.
    - `position` (in, `POSITION`), only with `uses_position`.
    - `table` (in, `TableWriteSignature`), only with `uses_table`.

    A derived class sets the flags, gives `elaborate`, and says in its docstring what the route holds and why
    packets cannot deadlock, or who checks it. `strips`: the route holds the hops one after the other, and a
    router takes the one that it has used off.
    """

    strips = False
    uses_position = False
    uses_table = False

    def __init__(self, config: RouterConfig) -> None:
        self.check(config)
        self.config = config
        members: dict[str, Any] = {"route": In(self.route_bits(config)), "port": Out(config.ports)}
        if self.uses_position:
            members["position"] = In(POSITION)
        if self.uses_table:
            members["table"] = Out(TableWriteSignature(config))
        super().__init__(members)

    @classmethod
    def check(cls, config: RouterConfig) -> None:
        """Raises ConfigError if a router with `config` cannot have this function."""

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """Bits of the route field that the function looks at."""
        return NODE_BITS

    def elaborate(self, platform: object) -> Module:
        raise NotImplementedError(f"{type(self).__name__} has no elaborate()")
