"""A network bench: a network with a traffic node at every place of a node, and one measurement."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from lanikai.hdl.network import Network
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.traffic.config import TrafficConfig
from pydantic import Field, model_validator

from ..inside.watchdog import WATCHDOG_BITS

if TYPE_CHECKING:
    from ..build.model import Model, Progress, Variant

__all__ = ["ENTRY", "NetworkBenchConfig"]

ENTRY = "lanikai.sim.systems.traffic_network:run_point"
"""The `entry` of `run.run` for a network bench's point."""


class NetworkBenchConfig(Config):
    """The network, and what the traffic nodes at its places hold."""

    network: Network = Field(default_factory=Network, description="routers, links, places of the nodes")
    classes: int = Field(1, ge=1, le=4, description="traffic classes that every source has")
    queue_packets: int = Field(64, ge=2, le=4096, description="source queue of each VL, packets")
    histogram_sub_bits: int = Field(
        5, ge=0, le=5, description="latency histogram: 2^histogram_sub_bits bins an octave"
    )
    agents: bool = Field(
        False, description="the routers' agent ports are open to coroutines (`NetworkBench.agent`)"
    )
    composed: bool = Field(
        True,
        description="compile routers and nodes once each, and pass over those in which nothing happens; the results "
        "are the same. Only without agents, and not with waves or every signal visible",
    )
    watchdog_cycles: int = Field(
        100_000,
        ge=0,
        lt=1 << WATCHDOG_BITS,
        description="cycles without any movement after which the simulation is ended; 0: never",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.agents and not has_agent(self.network.router):
            raise ValueError("agents = True: network.router has nothing that an agent could set or read")
        return self

    @cached_property
    def traffic(self) -> TrafficConfig:
        """Configuration of every traffic node and of the measurement. Raises ConfigError for fewer than two
        nodes, or more than the traffic system counts."""
        return TrafficConfig(
            link=self.network.router.link,
            nodes=len(self.network.nodes),
            classes=self.classes,
            queue_packets=self.queue_packets,
            credit_flits=self.network.router.input_buffer_flits,
            sink_flits=self.network.node_buffer_flits,
            histogram_sub_bits=self.histogram_sub_bits,
        )

    def build(self, variant: Variant = "fast", progress: Progress | None = None) -> Model:
        """The bench's model, from the cache if it was built before. Raises as `build.build` does."""
        from ..build.model import Recipe, build
        from .traffic_verilog import bench_design

        # The watchdog's limit is an input of the design.
        composed = self.composed and variant == "fast" and not self.agents
        text = self.replace(watchdog_cycles=0, composed=composed).model_dump_json()
        recipe = Recipe(
            name="network bench",
            config=text,
            make=lambda: bench_design(self, composed=composed),
        )
        return build(recipe, variant, progress)

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and the spec that `run.run` is given to have `entry` ("module:coroutine") run on the
        bench with `spec`."""
        return ENTRY, {"bench": self.model_dump(mode="json"), "entry": entry, "spec": dict(spec)}
