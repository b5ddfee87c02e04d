"""Configuration of the traffic sources, sinks and the measurement."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from ..config import Config, LinkConfig
from .packet import BORN_BITS

__all__ = ["TrafficConfig"]


class TrafficConfig(Config):
    """One source and one sink a node, and their sizes. All nodes of a network share one configuration."""

    link: LinkConfig = Field(default_factory=LinkConfig, description="every node's link")
    nodes: int = Field(16, ge=2, le=1024, description="nodes of the network, numbered from 0")
    classes: int = Field(2, ge=1, le=4, description="traffic classes a source has")
    queue_packets: int = Field(
        64,
        ge=2,
        le=4096,
        description="source queue of each VL, packets; a full one delays births, losing none",
    )
    queue_memory: Literal["auto", "distributed"] = Field(
        "auto", description="memory of the source queues, as `RouterConfig.buffer_memory`"
    )
    credit_flits: int = Field(
        10,
        ge=2,
        le=1024,
        description="buffer of each VL where a node's link ends (the router's input), flits",
    )
    sink_flits: int = Field(10, ge=2, le=1024, description="buffer of each VL that a sink announces, flits")
    random: bool = Field(
        True,
        description="sources have random numbers; False: no mode `random` or `on_off`, no choice among destinations or "
        "VLs at random, and a source of half the area",
    )
    trace_frames: int = Field(
        64, ge=0, le=32768, description="rows of a source's frame trace memory; 0: no mode `trace`"
    )
    histogram_sub_bits: int = Field(
        3, ge=0, le=5, description="latency histogram: 2^histogram_sub_bits bins an octave"
    )
    histogram_memory: Literal["auto", "block"] = Field(
        "auto",
        description="memory of the latency histogram; block: one that needs a cycle to read, as a small FPGA's does; "
        "a count then shows a cycle later",
    )
    compact: bool = Field(
        False,
        description="for a small FPGA: what experiments do not read is left out and reads 0: class registers, "
        "WAIT_*, FRAMES, PEAK, counts of errors; the measurement answers in a cycle",
    )
    watched: bool = Field(
        False,
        description="for simulations: sinks sum up what comes, and show the last packet, in registers that software "
        "reads in no time (`node.watched_signals`)",
    )
    max_packet_flits: int = Field(1023, ge=1, le=1023, description="longest packet, flits")
    arbiter: str = Field(
        "round_robin", description="picks the VL to send; a name in `lanikai.hdl.arbiter.ARBITERS`"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.link.restart:
            raise ValueError(
                "link.restart = True: nodes that make traffic are reset with their routers; None or False"
            )
        if self.max_packet_flits < self.link.header_flits:
            raise ValueError(
                f"max_packet_flits = {self.max_packet_flits}: at least the header's "
                f"{self.link.header_flits} flits"
            )
        return self

    @cached_property
    def node_bits(self) -> int:
        """Width of a node number."""
        return (self.nodes - 1).bit_length()

    @cached_property
    def class_bits(self) -> int:
        """Width of a class number, at least 1."""
        return max(1, (self.classes - 1).bit_length())

    @cached_property
    def length_bits(self) -> int:
        """Width of a packet's length in flits."""
        return self.max_packet_flits.bit_length()

    @cached_property
    def histogram_bins(self) -> int:
        """Bins of a class's latency histogram (`statistics.bin_of`)."""
        return (BORN_BITS - self.histogram_sub_bits + 1) << self.histogram_sub_bits

    @cached_property
    def bin_bits(self) -> int:
        """Width of a bin's number."""
        return (self.histogram_bins - 1).bit_length()

    @cached_property
    def clear_cycles(self) -> int:
        """Cycles in which the measurement clears every row of the statistics."""
        return 1 << self.class_bits + self.bin_bits
