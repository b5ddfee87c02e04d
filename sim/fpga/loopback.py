"""The design `router-loopback` in the size of each board, and what it measures in terms of `network-load`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from lanikai.hdl.board.config import LoopbackConfig
from pydantic import Field

from ..experiments.network_load import NetworkLoadParameters
from .size import DesignSize

if TYPE_CHECKING:
    from ..systems.traffic_config import TrafficNetworkConfig

__all__ = ["LOOPBACK_SIZES", "LoopbackSize"]


class LoopbackSize(DesignSize):
    """Sizes of the design: what fits on a board."""

    title = "router-loopback"

    ports: int = Field(2, ge=2, le=16, description="ports of the router, a traffic node each")
    vls: int = Field(2, ge=1, le=16, description="virtual lanes")
    flit_bits: Literal[32, 64, 128] = Field(32, description="payload bits of a flit")
    buffer_flits: int = Field(10, ge=2, le=1024, description="buffers of each VL, flits")
    queue_packets: int = Field(64, ge=2, le=4096, description="source queue of each VL, packets")
    histogram_sub_bits: int = Field(5, ge=0, le=5, description="bins of an octave of latency: 2^this")
    max_packet_flits: int = Field(1023, ge=1, le=1023, description="longest packet, flits")
    random: bool = Field(True, description="sources have random numbers (`TrafficConfig.random`)")
    one_way: bool = Field(False, description="node 0 sends alone, and the others receive alone")

    def parameters(self, **settings: Any) -> NetworkLoadParameters:
        """Parameters of network-load for a measurement of this design; `settings`: those that are to differ. Raises
        ConfigError for what the design cannot do."""
        fixed = {
            "network": f"router{self.ports}",
            "vls": self.vls,
            "flit_bits": self.flit_bits,
            "buffer_flits": self.buffer_flits,
            "allocator": "separable",
        }
        given: dict[str, Any] = {} if self.random else {"process": "periodic"}
        if self.one_way:
            given |= {"pattern": "table", "destinations": [1] * self.ports}
        return NetworkLoadParameters(**(fixed | given | settings))

    def system(self, parameters: NetworkLoadParameters | None = None) -> TrafficNetworkConfig:
        """The traffic network that a simulator runs, and whose numbers the board's must equal."""
        found = (parameters or self.parameters()).system("separable")
        return found.replace(queue_packets=self.queue_packets, histogram_sub_bits=self.histogram_sub_bits)

    def design(self, label: str = "") -> LoopbackConfig:
        """The design's configuration. Raises ConfigError."""
        system = self.system()
        traffic = system.traffic.replace(
            random=self.random,
            trace_frames=0,
            compact=True,
            histogram_memory="block",
            max_packet_flits=self.max_packet_flits,
        )
        return LoopbackConfig(
            clock_hz=self.clock_hz,
            baud=self.baud,
            gap_cycles=self.gap_cycles,
            label=label,
            network=system.network,
            traffic=traffic,
            ends=("source", *["sink"] * (self.ports - 1)) if self.one_way else (),
        )


_ECP5 = LoopbackSize(vls=1, buffer_flits=8, queue_packets=16, histogram_sub_bits=5, random=False)
LOOPBACK_SIZES: Mapping[str, LoopbackSize] = {
    "ulx3s-85f": _ECP5,
    "versa-5g": _ECP5,
    "ecpix5-85f": _ECP5,
    "orangecrab-25f": _ECP5.replace(clock_hz=24_000_000),
    # Two whole nodes do not fit, nor random numbers.
    "icebreaker": LoopbackSize(
        clock_hz=12_000_000,
        vls=1,
        buffer_flits=4,
        queue_packets=2,
        histogram_sub_bits=3,
        max_packet_flits=63,
        random=False,
        one_way=True,
    ),
}
"""Board -> the size of the design there."""
