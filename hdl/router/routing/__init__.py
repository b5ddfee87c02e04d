"""Routing functions: one file each, one registry.

A new one is a file with a subclass of `RoutingFunction`, and a line in `ROUTING`.
"""

from __future__ import annotations

from ...config import ConfigError, RouterConfig
from .dimension_order import DimensionOrderRouting
from .function import Arrival, RoutingFunction, TableWriteSignature
from .source import SourceRouting
from .table import TableRouting
from .topology import Place, Topology
from .torus import TorusRouting

__all__ = [
    "ROUTING",
    "Arrival",
    "Place",
    "RoutingFunction",
    "TableWriteSignature",
    "Topology",
    "routing_class",
]

ROUTING: dict[str, type[RoutingFunction]] = {
    "source": SourceRouting,
    "dimension_order": DimensionOrderRouting,
    "table": TableRouting,
    "torus": TorusRouting,
}
"""The routing functions that `RouterConfig.routing` can name."""


def routing_class(config: RouterConfig) -> type[RoutingFunction]:
    """The routing function of a router. Raises ConfigError with the valid names."""
    if config.routing not in ROUTING:
        raise ConfigError(f"RouterConfig.routing = {config.routing!r}: one of {', '.join(sorted(ROUTING))}")
    return ROUTING[config.routing]
