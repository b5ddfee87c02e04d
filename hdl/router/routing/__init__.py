"""Routing functions: one file each, one registry.

A new one is a file with a subclass of `RoutingFunction`, and a line in `ROUTING`.
"""

from __future__ import annotations

from ...config import ConfigError, RouterConfig
from ...registry import Registry, class_problem
from .dimension_order import DimensionOrderRouting
from .dragonfly import DragonflyRouting
from .duato import DuatoRouting
from .flattened_butterfly import FlattenedButterflyRouting
from .function import LOAD_BITS, RANDOM_BITS, Arrival, RoutingFunction, TableWriteSignature, Ways
from .hypercube import HypercubeRouting
from .kary_tree import KaryTreeRouting
from .odd_even import OddEvenRouting
from .ring import RingRouting
from .source import SourceRouting
from .table import TableRouting
from .topology import Place, Topology
from .torus import TorusRouting
from .ugal import UgalRouting
from .valiant import ValiantRouting
from .west_first import WestFirstRouting

__all__ = [
    "AUTO",
    "LOAD_BITS",
    "RANDOM_BITS",
    "ROUTING",
    "Arrival",
    "Place",
    "RoutingFunction",
    "TableWriteSignature",
    "Topology",
    "Ways",
    "needs_loads",
    "routing_class",
]

AUTO = "auto"
"""The name for which a network takes the function that it needs."""
ROUTING = Registry[type[RoutingFunction]](
    "routing", "routing function", class_problem(RoutingFunction, "decide", "elaborate")
) | {
    "source": SourceRouting,
    "dimension_order": DimensionOrderRouting,
    "west_first": WestFirstRouting,
    "odd_even": OddEvenRouting,
    "duato": DuatoRouting,
    "valiant": ValiantRouting,
    "ugal": UgalRouting,
    "table": TableRouting,
    "torus": TorusRouting,
    "ring": RingRouting,
    "hypercube": HypercubeRouting,
    "flattened_butterfly": FlattenedButterflyRouting,
    "kary_tree": KaryTreeRouting,
    "dragonfly": DragonflyRouting,
}
"""The routing functions that `RouterConfig.routing` can name."""


def needs_loads(config: RouterConfig) -> bool:
    """Whether routing goes by the loads of the output ports. Raises ConfigError as `routing_class`."""
    function = routing_class(config)
    return function.adaptive or function.uses_loads


def routing_class(config: RouterConfig) -> type[RoutingFunction]:
    """The routing function of a router: `source` for `auto`, which a network replaces. Raises ConfigError with the
    valid names."""
    name = "source" if config.routing == AUTO else config.routing
    if name not in ROUTING:
        raise ConfigError(f"RouterConfig.routing = {name!r}: one of {', '.join([AUTO, *sorted(ROUTING)])}")
    return ROUTING[name]
