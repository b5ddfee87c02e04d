"""Sizes and choices of the GM control program: one validated model, read by firmware and host library alike."""

from __future__ import annotations

from typing import Literal

from lanikai.hdl.config import Config, NicConfig
from pydantic import Field, model_validator

__all__ = ["GmConfig"]


class GmConfig(Config):
    """The GM control program and its host interface (gulati-thesis-2001 4.1, 4.2)."""

    rate_controlled: bool = Field(
        True, description="order of packets from the rate control unit, or head rotation"
    )
    discipline: Literal["packet", "message"] = Field(
        "packet",
        description="head rotation after each packet, or after each message (thesis 2.2, figure 2.3); the rate "
        "control unit chooses packet by packet",
    )
    segmentation: Literal["mtu", "equal"] = Field(
        "mtu",
        description="packets of a message: MTU-sized but the last, or as equal as flits allow (thesis 5.2)",
    )
    charge: Literal["packets", "bytes"] = Field(
        "packets",
        description="what a flow is charged with for a packet: its IDT (thesis 3.2.2), or the part of it that the "
        "packet's bytes are of an MTU; bytes needs a card with rate_charge = bytes",
    )
    ports: int = Field(8, ge=1, le=32, description="ports of a node; a port is a doorbell channel")
    send_tokens: int = Field(16, ge=1, le=64, description="send tokens of a port, entries of its send ring")
    receive_tokens: int = Field(
        32, ge=1, le=64, description="receive tokens of a port, entries of its receive ring"
    )
    transmit_buffers: int = Field(2, ge=2, le=16, description="packets in SRAM on their way out")
    receive_buffers: int = Field(4, ge=2, le=64, description="packets in SRAM on their way in")
    window_packets: int = Field(
        64, ge=1, le=1024, description="packets of a flow that may await acknowledgement"
    )
    resend_ticks: int = Field(
        4000, ge=1, description="a flow without an answer for one to two of these sends again; 2 ms of lanai4"
    )
    pause_ticks: int = Field(
        400,
        ge=1,
        description="rest after 'no receive token', doubled each time up to 16 times; 200 us of lanai4",
    )
    send_tries: int = Field(
        256, ge=1, description="tries of a message, refused or without an answer, before it fails"
    )
    send_timeout_ticks: int = Field(
        200_000,
        ge=1,
        description="a message whose turn it is and of which nothing is taken for so long fails; 100 ms of lanai4",
    )
    close_ticks: int = Field(
        200_000,
        ge=0,
        description="closing a port waits so long for its messages, then aborts them; 100 ms of lanai4",
    )

    @model_validator(mode="after")
    def _check(self) -> GmConfig:
        if self.rate_controlled and self.discipline == "message":
            raise ValueError(
                "discipline = 'message': the rate control unit chooses packet by packet; messages in turn need "
                "rate_controlled = False"
            )
        if self.charge == "bytes" and not self.rate_controlled:
            raise ValueError("charge = 'bytes': without rate_controlled no flow is charged with anything")
        # An event ring must hold every event that can be unread at once, and its count is compared by
        # equality.
        if self.event_entries > 128:
            raise ValueError("send_tokens + receive_tokens: at most 127")
        return self

    @property
    def event_entries(self) -> int:
        """Entries of a port's event ring: every token's event and a command's, a power of two."""
        return 1 << (self.send_tokens + self.receive_tokens).bit_length()

    @classmethod
    def for_nic(cls, nic: NicConfig, **changes: object) -> GmConfig:
        """The default sizes where the card has room for them. `changes` win. Raises ConfigError.

        `tiny` cards have small rings and no spare buffers; their clock also wraps soon.
        """
        small = nic.sram_bytes < 65536
        fitted: dict[str, object] = {
            "ports": min(nic.channels, 8),
            "resend_ticks": min(4000, nic.max_idt_ticks // 2),
            "pause_ticks": min(400, nic.max_idt_ticks // 2),
        }
        if small:
            fitted |= {"send_tokens": 4, "receive_tokens": 8, "window_packets": 16}
        return cls(**fitted | changes)
