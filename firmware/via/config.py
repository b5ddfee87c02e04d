"""Sizes and choices of the VIA programs, read by firmware and host software alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from lanikai.hdl.config import Config, ConfigError
from pydantic import Field, model_validator

__all__ = ["ARRIVAL", "DESIGNS", "MOST_MESSAGE_BYTES", "ProcessLimits", "ViaConfig", "design"]

ARRIVAL = "arrival"
"""The order of best effort: first come, first served."""
MOST_MESSAGE_BYTES = (1 << 16) - 1
"""Longest message, bytes: a completion's `bytes` are 16 bits. The specification asks for 32 KB at least."""
WORD_BYTES = 4


class ProcessLimits(Config):
    """The most that one process may take of a card and its host, for the kernel agent. None: all that there is."""

    most_vis: int | None = Field(None, ge=1, description="VIs")
    most_tags: int | None = Field(
        None, ge=1, description="protection tags; each one beyond the first is a page of the card's window"
    )
    most_regions: int | None = Field(None, ge=1, description="registered memory regions")
    most_completion_queues: int | None = Field(None, ge=1, description="completion queues")
    most_memory_bytes: int | None = Field(
        None, ge=4096, description="host memory that it has allocated, in whole pages"
    )


class ViaConfig(Config):
    """A VIA program (nagar-thesis-2001 4.2, 4.3, 5.3)."""

    design: Literal["sequential", "parallel"] = Field(
        "sequential",
        description="sequential: the stages of a message one after the other, with busy waits (SVIA, 5.3.1); "
        "parallel: an event loop over a task queue for each DMA engine (PVIA, 5.3.2)",
    )
    order: str = Field(
        ARRIVAL,
        description="order of the task queues: arrival, or the name of a scheduler that stamps doorbells (QoSVIA, "
        "5.3.3)",
    )
    descriptors: Literal["fetched", "tailgated", "shadow"] = Field(
        "fetched",
        description="how a descriptor comes to the card. fetched: by a host DMA of its own; tailgated: with the data "
        "of the message before it in its queue (4.3.9); shadow: the process writes it into its shadow window (4.3.11)",
    )
    cost_table: Literal["measured", "ladder"] = Field(
        "measured",
        description="costs of the parallel designs. measured: those of table 5.1; ladder: Base's, and what "
        "an event loop and its queues add (4.3, ladder_costs.py)",
    )
    queue_entries: Literal[2, 4, 8, 16, 32, 64, 128, 256] = Field(
        8, description="descriptors of each work queue, of which a VI has two: to send and to receive"
    )
    data_segments: int = Field(1, ge=1, le=16, description="most data segments of a descriptor")
    immediate_bytes: int = Field(
        4,
        ge=4,
        le=128,
        multiple_of=4,
        description="immediate data that a descriptor holds, bytes: 4 as in the specification, or more (4.3.4)",
    )
    send_buffers: int = Field(1, ge=1, le=16, description="packets in SRAM on their way out")
    receive_buffers: int = Field(
        1,
        ge=1,
        le=256,
        description="packets in SRAM on their way in; those of the receive engine's queue count",
    )
    patience_us: int = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="reliable levels: a message without an answer for so long breaks its connection, and so does one "
        "whose next packet does not come for as long",
    )
    limits: ProcessLimits = Field(
        default_factory=ProcessLimits, description="the most that one process may take from the others"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.design == "sequential" and self.order != ARRIVAL:
            raise ValueError(
                f"order = {self.order!r}: the sequential design serves in the order of arrival; "
                "design = 'parallel' has others"
            )
        for name in ("send_buffers", "receive_buffers"):
            if self.design == "sequential" and getattr(self, name) != 1:
                raise ValueError(
                    f"{name} = {getattr(self, name)}: the sequential design has one; design = 'parallel' has more"
                )
        return self


DESIGNS: Mapping[str, Mapping[str, Any]] = {
    "svia": {"design": "sequential"},
    "pvia": {"design": "parallel", "send_buffers": 16, "receive_buffers": 8},
    "qosvia": {"design": "parallel", "order": "virtual_clock", "send_buffers": 16, "receive_buffers": 8},
}
"""The three designs of nagar-thesis-2001 5.3, as choices of `ViaConfig`."""


def design(name: str, **changes: Any) -> ViaConfig:
    """The design `name` (svia, pvia, qosvia), with `changes`. Raises ConfigError for an unknown name."""
    if name not in DESIGNS:
        raise ConfigError(f"unknown VIA design {name!r}; valid designs: {', '.join(DESIGNS)}")
    return ViaConfig(**{**DESIGNS[name], **changes})
