"""Configuration of a message network: every message is posted and received by a coroutine in Python."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lanikai.hdl.network import Network
from lanikai.hdl.traffic.config import TrafficConfig
from pydantic import Field

from ..inside.watchdog import WATCHDOG_BITS
from .base import SystemConfig

if TYPE_CHECKING:
    from ..build.model import Design, Variant

__all__ = ["MessageNetworkConfig"]


class MessageNetworkConfig(SystemConfig):
    """The network, and the message nodes at its places."""

    title = "message network"
    inside = "lanikai.sim.systems.message_network:MessageNetwork"
    # The watchdog's limit is an input of the design; the rings are memory of the hosts.
    not_in_design = frozenset({"watchdog_cycles", "ring_slots"})

    network: Network = Field(default_factory=Network, description="routers, links, places of the nodes")
    queue_packets: int = Field(64, ge=2, le=4096, description="queue of each VL in a node, messages")
    ring_slots: int = Field(256, ge=2, le=1 << 20, description="commands that a host's ring holds")
    composed: bool = Field(
        True,
        description="compile routers and nodes once each, and pass over those in which nothing happens; the results "
        "are the same",
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

    def design(self, variant: Variant = "fast") -> Design:
        """The design. One for debugging has monitors."""
        from .message_verilog import message_design

        return message_design(self.network, self.traffic, composed=self.composed, watch=variant == "debug")
