"""Configuration of a network of hosts: every message posted and received by a coroutine in Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config
from lanikai.hdl.network import Network
from lanikai.hdl.traffic.config import TrafficConfig
from pydantic import Field

from ..inside.watchdog import WATCHDOG_BITS

if TYPE_CHECKING:
    from ..build.model import Model, Progress, Variant

__all__ = ["ENTRY", "HostNetworkConfig"]

ENTRY = "lanikai.sim.systems.message_network:run_point"
"""The `entry` of `run.run` for a point of a network of hosts."""


class HostNetworkConfig(Config):
    """The network, and the message nodes at its places."""

    network: Network = Field(default_factory=Network, description="routers, links, places of the nodes")
    queue_packets: int = Field(64, ge=2, le=4096, description="queue of each VL in a node, messages")
    ring_slots: int = Field(256, ge=2, le=1 << 20, description="commands that a host's ring holds")
    composed: bool = Field(
        True,
        description="compile routers and nodes once each, and pass over routers in which nothing happens; the results "
        "are the same. Not with waves or every signal visible",
    )
    watchdog_cycles: int = Field(
        100_000,
        ge=0,
        lt=1 << WATCHDOG_BITS,
        description="cycles without any movement after which the simulation is ended, if messages are under way; "
        "0: never",
    )

    @cached_property
    def traffic(self) -> TrafficConfig:
        """Configuration of every message node. Raises ConfigError for fewer than two nodes, or more than the
        traffic system counts."""
        return TrafficConfig(
            link=self.network.router.link,
            nodes=len(self.network.nodes),
            classes=1,
            queue_packets=self.queue_packets,
            credit_flits=self.network.router.input_buffer_flits,
            sink_flits=self.network.node_buffer_flits,
        )

    def build(self, variant: Variant = "fast", progress: Progress | None = None) -> Model:
        """The model, from the cache if it was built before. Raises as `build.build` does."""
        from ..build.model import Recipe, build
        from .message_verilog import hosts_design

        # Neither the rings nor the watchdog's limit are in the design.
        composed = self.composed and variant == "fast"
        text = self.replace(watchdog_cycles=0, ring_slots=2, composed=composed).model_dump_json()
        recipe = Recipe(
            name="network of hosts",
            config=text,
            make=lambda: hosts_design(self, composed=composed),
        )
        return build(recipe, variant, progress)

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and the spec that `run.run` is given to have `entry` ("module:coroutine") run on the
        network with `spec`."""
        return ENTRY, {"hosts": self.model_dump(mode="json"), "entry": entry, "spec": dict(spec)}
