"""Sizes and choices of the work queue program, read by firmware and host software alike."""

from __future__ import annotations

from typing import Literal

from lanikai.hdl.config import Config
from pydantic import Field

__all__ = ["WorkQueueConfig"]


class WorkQueueConfig(Config):
    """The work queue program (nagar-thesis-2001 4.2.2, 4.3.9, 4.3.11)."""

    descriptors: Literal["fetched", "tailgated", "shadow"] = Field(
        "fetched",
        description="how a descriptor comes to the card. fetched: by a host DMA of its own; tailgated: with the data "
        "of the message before it in its queue, if it was posted by then, else fetched; shadow: the process writes it "
        "into its shadow window too",
    )
    queue_entries: Literal[2, 4, 8, 16, 32, 64] = Field(
        8, description="descriptors of each work queue, of which a channel has two: to send and to receive"
    )
