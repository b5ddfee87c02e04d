"""The network of an experiment whose nodes are hosts in Python: its parameters, and the system that they make."""

from __future__ import annotations

from typing import Self

from lanikai.hdl.config import Config, ConfigError, RouterConfig, preset
from lanikai.hdl.router.allocators import ALLOCATORS
from lanikai.hdl.router.routing import AUTO, ROUTING
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from pydantic import Field, model_validator

from ...systems.message_config import MessageNetworkConfig
from ..measure.named_networks import NETWORKS, named_network

__all__ = ["NetworkSetup", "lanes"]

ROUTER = "yum2006"
"""The preset of the routers."""
ROUTINGS = [AUTO, *sorted(ROUTING)]


class NetworkSetup(Config):
    """Routers, links and VLs. An experiment's parameters add what is sent."""

    network: str = Field(
        "mesh2x2", description="routers and their links", json_schema_extra={"range": NETWORKS}
    )
    allocator: str = Field(
        "separable",
        description="switch allocator",
        json_schema_extra={"range": f"one of {', '.join(sorted(ALLOCATORS))}"},
    )
    vl_arbiter: str = Field(
        "round_robin",
        description="of links, crossbar outputs and inputs",
        json_schema_extra={"range": f"one of {', '.join(sorted(VL_ARBITERS))}"},
    )
    routing: str = Field(
        AUTO,
        description="who knows the way, as in network-load",
        json_schema_extra={"range": f"one of {', '.join(ROUTINGS)}"},
    )
    vls: int = Field(4, ge=1, le=16, description="virtual lanes; of 16 the last one is for control packets")
    buffer_flits: int = Field(10, ge=2, le=1024, description="input and output buffer of each VL, flits")
    flit_bits: int = Field(
        128, description="payload bits of a flit", json_schema_extra={"range": "32, 64, 128"}
    )

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        for name, registry in (("allocator", ALLOCATORS), ("vl_arbiter", VL_ARBITERS)):
            if getattr(self, name) not in registry:
                raise ValueError(f"{name} = {getattr(self, name)!r}: one of {', '.join(sorted(registry))}")
        if self.routing not in ROUTINGS:
            raise ValueError(f"routing = {self.routing!r}: one of {', '.join(ROUTINGS)}")
        self.message_network().network.check_routes()
        return self

    def message_network(self) -> MessageNetworkConfig:
        """The network, with a host at each place of a node. Raises ConfigError."""
        base = preset(RouterConfig, ROUTER)
        router = base.replace(
            link=base.link.replace(flit_bits=self.flit_bits, vls=self.vls),
            vl_arbiter=self.vl_arbiter,
            routing=self.routing,
            input_buffer_flits=self.buffer_flits,
            output_buffer_flits=self.buffer_flits,
            allocator=self.allocator,
        )
        return MessageNetworkConfig(network=named_network(self.network, router), ring_slots=1024)


def lanes(router: RouterConfig, classes: int) -> int:
    """VLs of each of so many classes, which share the data VLs equally. Raises ConfigError if there are too few."""
    if classes > router.data_vls:
        raise ConfigError(f"{classes} classes need as many VLs: there are {router.data_vls} for data")
    return router.data_vls // classes
