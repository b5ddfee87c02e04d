"""Routing functions: one file each, one registry.

A new one is a file with a subclass of `RoutingFunction`, and a line in `ROUTING`.
"""

from __future__ import annotations

from ...config import ConfigError, RouterConfig
from ...registry import Registry, class_problem
from .choice.duato import (
    DuatoRouting,
    FlattenedButterflyDuatoRouting,
    HypercubeDuatoRouting,
    TorusDuatoRouting,
)
from .choice.odd_even import OddEvenRouting
from .choice.ugal import (
    DragonflyUgalRouting,
    FlattenedButterflyUgalRouting,
    HypercubeUgalRouting,
    TorusUgalRouting,
    UgalRouting,
)
from .choice.valiant import (
    DragonflyValiantRouting,
    FlattenedButterflyValiantRouting,
    HypercubeValiantRouting,
    TorusValiantRouting,
    ValiantRouting,
)
from .choice.west_first import WestFirstRouting
from .dimension_order import DimensionOrderRouting
from .dragonfly import DragonflyRouting
from .flattened_butterfly import FlattenedButterflyRouting
from .function import LOAD_BITS, RANDOM_BITS, Arrival, RoutingFunction, TableWriteSignature, Ways
from .hypercube import HypercubeRouting
from .kary_tree import KaryTreeRouting
from .ring import RingRouting
from .source import SourceRouting
from .table import TableRouting
from .topology import Place, Topology
from .torus import TorusRouting

__all__ = [
    "ADAPTIVE",
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
    "choices",
    "needs_loads",
    "routing_class",
]

ADAPTIVE = ("west_first", "odd_even", "duato", "valiant", "ugal")
"""The names that stand for a choice of ways: on a mesh the function of that name. In another
topology a network takes one with the topology's name before it, such as `torus_ugal`."""
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
    "torus_duato": TorusDuatoRouting,
    "torus_valiant": TorusValiantRouting,
    "torus_ugal": TorusUgalRouting,
    "hypercube_duato": HypercubeDuatoRouting,
    "hypercube_valiant": HypercubeValiantRouting,
    "hypercube_ugal": HypercubeUgalRouting,
    "flattened_butterfly_duato": FlattenedButterflyDuatoRouting,
    "flattened_butterfly_valiant": FlattenedButterflyValiantRouting,
    "flattened_butterfly_ugal": FlattenedButterflyUgalRouting,
    "dragonfly_valiant": DragonflyValiantRouting,
    "dragonfly_ugal": DragonflyUgalRouting,
}
"""The routing functions that `RouterConfig.routing` can name."""


def choices(topology: str) -> list[str]:
    """The names of `ADAPTIVE` that a topology has, by its label, such as `torus`."""
    return [name for name in ADAPTIVE if topology == "mesh" or f"{topology}_{name}" in ROUTING]


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
