"""Configuration of a traffic network: a traffic node at every place of a node, and one measurement."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.network import Network
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.traffic.config import TrafficConfig
from pydantic import Field, model_validator

from ..inside.watchdog import WATCHDOG_BITS
from .base import SystemConfig
from .fault_ports import check_faults

if TYPE_CHECKING:
    from ..build.model import Design, Variant

__all__ = ["TrafficNetworkConfig"]


class TrafficNetworkConfig(SystemConfig):
    """The network, and the contents of the traffic nodes at its places."""

    title = "traffic network"
    inside = "lanikai.sim.systems.traffic_network:TrafficNetwork"
    not_in_design = frozenset({"watchdog_cycles"})  # its limit is an input of the design

    network: Network = Field(default_factory=Network, description="routers, links, places of the nodes")
    classes: int = Field(1, ge=1, le=4, description="traffic classes that every source has")
    queue_packets: int = Field(64, ge=2, le=4096, description="source queue of each VL, packets")
    histogram_sub_bits: int = Field(
        5, ge=0, le=5, description="latency histogram: 2^histogram_sub_bits bins an octave"
    )
    agents: bool = Field(
        False, description="the routers' agent ports are open to coroutines (`TrafficNetwork.agent`)"
    )
    composed: bool = Field(
        True,
        description="compile routers and nodes once each, and pass over those in which nothing happens; the results "
        "are the same",
    )
    watched: bool = Field(
        False,
        description="sinks show what comes in registers that coroutines read in no time (`traffic_watch.py`)",
    )
    faults: tuple[FaultPlace, ...] = Field(
        (), description="links that fail: router, port, and whether it is the link `out` of it or `in` to it"
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
        if self.composed and (self.faults or self.network.router.link.guard_cycles):
            raise ValueError(
                "faults and link.guard_cycles: need composed = False, a network that is one model"
            )
        check_faults(self.network, self.faults)
        return self

    @cached_property
    def traffic(self) -> TrafficConfig:
        """Configuration of every traffic node and of the measurement. Raises ConfigError for fewer than two
        nodes, or more than the traffic system counts."""
        link = self.network.router.link
        return TrafficConfig(
            # Links between routers may begin anew. Those of nodes do not fail.
            link=link.replace(restart=None, guard_cycles=0) if link.guard_cycles else link,
            nodes=len(self.network.nodes),
            classes=self.classes,
            queue_packets=self.queue_packets,
            credit_flits=self.network.router.input_buffer_flits,
            sink_flits=self.network.node_buffer_flits,
            histogram_sub_bits=self.histogram_sub_bits,
            watched=self.watched,
        )

    def design(self, variant: Variant = "fast") -> Design:
        """The design. One for debugging has monitors, unless links are to fail, which breaks their rules."""
        from .traffic_verilog import traffic_design

        return traffic_design(
            self.network,
            self.traffic,
            agents=self.agents,
            composed=self.composed,
            faults=self.faults,
            watch=variant == "debug" and not self.faults,
        )
