"""The subjects of requests: flows, and what the manager has given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["MAX_WEIGHT", "BestEffort", "FlowId", "Grant"]

MAX_WEIGHT = 255
"""Largest weight of a best-effort flow."""


class FlowId(NamedTuple):
    """A flow in the whole cluster: GM's (source port, target port, priority) of a pair of nodes
    (gulati-thesis-2001 4.2.1)."""

    source: int
    source_port: int
    target: int
    target_port: int
    priority: int = 0

    def __str__(self) -> str:
        priority = ", high priority" if self.priority else ""
        return (
            f"flow from port {self.source_port} of node {self.source} to port {self.target_port} of node "
            f"{self.target}{priority}"
        )


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A reservation: `flow` may send `mb_per_s`, and its IDT is set to `idt_ticks`.

    - `serial`: tells it from earlier reservations of the same flow.
    - `message_bytes`, `burst_bytes`: as it was asked for.
    - `latency_us`: the time within which a message arrives if the program keeps to its burst; None without a burst.
    """

    flow: FlowId
    mb_per_s: float
    idt_ticks: int
    serial: int
    message_bytes: int | None = None
    burst_bytes: int | None = None
    latency_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class BestEffort:
    """Membership of `flow` among the best-effort flows, with `weight`. Its IDT follows what premium flows leave;
    `BandwidthClient.rate` tells its present rate. `serial` and `message_bytes` are as of `Grant`."""

    flow: FlowId
    weight: int
    serial: int
    message_bytes: int | None = None
