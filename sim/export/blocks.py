"""The blocks that `lanikai verilog` writes: those of `lanikai synth`, and a network of routers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config, ConfigError, RouterConfig
from lanikai.hdl.network import Network, chain, mesh, single_router, torus, tree
from lanikai.hdl.network_named import network_of as network_of_shape
from lanikai.hdl.topologies import topology_named
from pydantic import Field

from ..errors import UserError
from ..synth.blocks import BLOCKS, Block, configure

if TYPE_CHECKING:
    from amaranth.lib import wiring

__all__ = ["EXPORTS", "NetworkSettings", "configure_export", "network_of"]


WORDS = ("single", "chain", "mesh", "torus", "tree")
"""Topologies whose sizes are parameters of their own."""


class NetworkSettings(Config):
    """Parameters of a network of routers."""

    topology: str = Field(
        "mesh",
        description="single: one router; chain: routers in a row; mesh: a grid; torus: one whose rows and columns are "
        "rings; tree; or a name, which has its sizes and decides ports and `hop_bits` of the routers: `ring(8)`",
        json_schema_extra={"range": f"one of {', '.join(WORDS)}, or a name as ring8"},
    )
    width: int = Field(
        2,
        ge=1,
        le=64,
        description="routers of a row; single: nodes; chain: routers; tree: children of a router",
    )
    height: int = Field(2, ge=1, le=64, description="rows of a mesh or torus; levels of a tree")
    node_buffer_flits: int = Field(10, ge=2, le=1024, description="receive buffer of a node, flits a VL")
    router: RouterConfig = Field(default_factory=RouterConfig, description="every router")


def network_of(settings: NetworkSettings) -> Network:
    """The network of these settings. Raises ConfigError."""
    if settings.topology not in WORDS:
        try:
            shape = topology_named(settings.topology)
        except ConfigError as error:
            raise ConfigError(
                f"topology = {settings.topology!r}: one of {', '.join(WORDS)}, or: {error}"
            ) from None
        for name in ("width", "height"):
            if getattr(settings, name) != NetworkSettings.model_fields[name].default:
                raise ConfigError(f"{name}: {settings.topology} has its sizes in its name; leave it out")
        found = network_of_shape(shape, settings.router)
        return found.replace(node_buffer_flits=settings.node_buffer_flits)
    ends: dict[str, Any] = {"router": settings.router, "node_buffer_flits": settings.node_buffer_flits}
    if settings.topology == "single":
        return single_router(settings.width, **ends)
    if settings.topology == "chain":
        return chain(settings.width, **ends)
    make = {"mesh": mesh, "torus": torus, "tree": tree}[settings.topology]
    return make(settings.width, settings.height, **ends)


def _network(settings: NetworkSettings) -> wiring.Component:
    from lanikai.hdl.network_component import NetworkComponent

    return NetworkComponent(network_of(settings))


EXPORTS: Mapping[str, Block] = {
    "router": BLOCKS["router"],
    "nic": BLOCKS["nic"],
    "network": Block(about="a network of routers", part=NetworkSettings, make=_network, preset="yum2006"),
    **{name: block for name, block in BLOCKS.items() if name not in ("router", "nic")},
}
"""The blocks, by the name that the command line takes."""


def configure_export(name: str, settings: list[str]) -> Config:
    """The configuration of the block `name` with `settings` (`configure`), looked at as far as RTL is not made.

    Raises UserError.
    """
    config = configure(name, settings, EXPORTS)
    if isinstance(config, NetworkSettings):
        try:
            network_of(config)
        except ConfigError as error:
            raise UserError(f"{name}: {error}") from None
    return config
