"""Configuration of the host channel adapter (HCA): an adapter whose engine serves queue pairs without firmware."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from .base import Config
from .link import LinkConfig
from .nic import NicConfig

__all__ = ["BUS_BITS", "HcaConfig"]

BUS_BITS = 128
"""Width of the adapter's data path and of its port to the host's bus: a flit a cycle."""


class HcaConfig(Config):
    """The host channel adapter (yum-2006 3.2)."""

    link: LinkConfig = Field(
        default_factory=lambda: LinkConfig(flit_bits=128, vls=16, hop_bits=3), description="the network link"
    )
    queue_pairs: int = Field(16, ge=1, le=256, description="queue pairs, numbered from 0")
    completion_queues: int = Field(16, ge=1, le=64, description="completion queues in host memory")
    regions: int = Field(16, ge=1, le=256, description="memory regions whose keys and owners are checked")
    translation_entries: Literal[4, 8, 16, 32, 64, 128, 256] = Field(
        32, description="page table entries that each direction caches"
    )
    owners: int = Field(
        8, ge=2, le=1024, description="pages of the window: page 0 is the driver's, each other one a process'"
    )
    classes: int = Field(3, ge=1, le=8, description="traffic classes; class 0 goes first")
    class_queue_entries: int = Field(
        1024, ge=2, le=4096, description="messages that wait in the queue of each class"
    )
    wqe: Literal["fetched", "posted"] = Field(
        "fetched",
        description="how a work queue element reaches the adapter: fetched from the ring in host memory by a DMA of "
        "its own (two DMAs a message, as on PCI). posted: written into the owner's page before the doorbell (one DMA a "
        "message, as on the system bus)",
    )
    posted_entries: Literal[1, 2, 4, 8, 16, 32, 64, 128] = Field(
        8,
        description="with wqe posted: send work queue elements of 32 bytes that the adapter keeps for each queue pair, "
        "the most of its send ring",
    )
    packet_flits: int = Field(
        40, ge=4, le=255, description="longest packet: header, payload and trailer, flits"
    )
    vl_packets: int = Field(2, ge=2, le=16, description="packet buffers of each VL towards the link")
    receive_packets: int = Field(2, ge=1, le=16, description="packet buffers of each VL from the link")
    vl_arbiter: str = Field(
        "table_fast", description="of the link: name in `lanikai.hdl.vl_arbiter.registry.VL_ARBITERS`"
    )
    vl_table_entries: int = Field(64, ge=1, le=64, description="entries of each VL arbitration table")
    injection: str = Field(
        "none", description="injection control: name in `lanikai.hdl.hca.injection.registry.INJECTION`"
    )
    destinations: int = Field(
        64,
        ge=1,
        le=1024,
        description="nodes that the tables of routes and of injection control have a row for",
    )
    power_control: bool = Field(
        False, description="hold messages of the classes that `POWER_CLASSES` names to an energy budget"
    )
    activity_counters: bool = Field(
        False, description="count buffer, arbiter, link, bus and doorbell queue activity"
    )
    burst_beats: Literal[4, 8, 16, 32, 64, 128, 256] = Field(
        64, description="longest burst on the host's bus, beats of 16 bytes"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.link.flit_bits != BUS_BITS:
            raise ValueError(
                f"link.flit_bits = {self.link.flit_bits}: must be {BUS_BITS}, a beat of the host's bus"
            )
        if self.link.restart:
            raise ValueError("link.restart = True: an adapter and the router at its link are reset together")
        return self

    @cached_property
    def payload_flits(self) -> int:
        """Payload flits of the longest packet: all but header and trailer."""
        return self.packet_flits - 2

    @cached_property
    def payload_bytes(self) -> int:
        """Payload bytes of the longest packet."""
        return self.payload_flits * self.link.flit_bytes

    @cached_property
    def port(self) -> NicConfig:
        """The configuration of the adapter's end of its link, of its protection and its address translation."""
        return NicConfig(
            link=self.link.replace(restart=False),
            bus_bits=64,
            mtu_bytes=self.payload_bytes,
            channels=self.queue_pairs,
            owners=self.owners,
            completion_queues=1,
            regions=self.regions,
            translation_entries=self.translation_entries,
            send_queue_entries=2,
            vl_packets=self.vl_packets,
            vl_arbiter=self.vl_arbiter,
            vl_table_entries=self.vl_table_entries,
            input_buffer_flits=max(2, self.receive_packets * self.packet_flits),
            doorbell="queue",
        )
