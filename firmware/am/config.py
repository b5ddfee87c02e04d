"""Sizes and choices of virtual networks: one validated model, read by firmware and host software alike."""

from __future__ import annotations

from typing import Literal, Self

from lanikai.hdl.config import Config, NicConfig
from pydantic import Field, model_validator

__all__ = ["COLUMN_BITS", "MOST_DATA_BYTES", "VirtualNetworkConfig"]

COLUMN_BITS = 5
"""Bits of a packet that name a column of the channel tables."""
MOST_DATA_BYTES = 8192
"""Most data of a message: the packet of the paper's cards, and a page of their hosts (chun-1998 3.4, 4.2)."""


class VirtualNetworkConfig(Config):
    """The program `am` and its host interface (chun-1998 3.3, 4.2). All cards of a network have the same."""

    frames: int = Field(
        7, ge=1, le=31, description="endpoints resident at once; frame f (from 1) has doorbell channel f"
    )
    queue_entries: Literal[2, 4, 8, 16] = Field(
        16, description="entries of each of an endpoint's four queues (4.2.2)"
    )
    page_bytes: Literal[1024, 2048, 4096, 8192] = Field(
        8192, description="an endpoint's page, in the SRAM while it is resident, else in host memory"
    )
    loiter_messages: int = Field(
        8, ge=1, le=64, description="most messages of one endpoint in a turn of the schedule (4.1)"
    )
    request_channels: int = Field(
        4, ge=1, le=16, description="channels to each card that carry requests, a packet each (4.2.1)"
    )
    reply_channels: int = Field(
        4, ge=1, le=16, description="channels to each card that carry replies; never requests"
    )
    nodes_max: int = Field(256, ge=2, le=1024, description="rows of the channel tables: cards of the network")
    endpoints_max: int = Field(
        4096, ge=1, le=4096, description="endpoints of a host; a packet has 12 bits for one"
    )
    tries: int = Field(
        255, ge=2, le=255, description="a packet is given up after so many tries without any answer (4.4)"
    )
    scan_us: int = Field(
        1000, ge=1, le=1_000_000, description="time between two scans for packets to be sent again (4.3)"
    )
    silence_scans: int = Field(
        1,
        ge=1,
        le=255,
        description="a packet without an answer is sent again at the scan that comes so many after the next one; a "
        "refused one at the next. More than 1 where packets of 8 KB wait for others longer than a scan",
    )
    absent_scans: int = Field(
        10,
        ge=1,
        le=255,
        description="a packet for an endpoint that is not resident is sent again at the scan that comes so many after "
        "it, unless the other card says before that the endpoint has been loaded",
    )
    send_buffers: int = Field(2, ge=1, le=16, description="packets in the SRAM on their way out")
    receive_buffers: int = Field(2, ge=1, le=16, description="packets in the SRAM on their way in")
    notice_entries: Literal[8, 16, 32, 64, 128, 256] = Field(
        64, description="entries of the ring of notices to the driver, in host memory"
    )
    reliability: bool = Field(
        True, description="acknowledgements and retransmission; off only to measure their cost (5.1)"
    )
    protection: bool = Field(
        True, description="tags and the words of an entry are checked; off only to measure the cost (5.1)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.columns > 1 << COLUMN_BITS:
            raise ValueError(
                f"request_channels + reply_channels = {self.columns}: at most {1 << COLUMN_BITS}"
            )
        return self

    @property
    def columns(self) -> int:
        """Columns of the channel tables: those of requests first, then those of replies."""
        return self.request_channels + self.reply_channels

    @classmethod
    def for_nic(cls, nic: NicConfig, **changes: object) -> VirtualNetworkConfig:
        """The default sizes where the card has room for them, else small ones. `changes` win. Raises ConfigError."""
        fitted: dict[str, object] = {"frames": max(1, min(7, nic.channels - 1))}
        if nic.sram_bytes < 1 << 17:
            fitted |= {
                "queue_entries": 4,
                "page_bytes": 2048,
                "nodes_max": 8,
                "endpoints_max": 64,
                "frames": max(1, min(2, nic.channels - 1)),
            }
        return cls(**fitted | changes)
