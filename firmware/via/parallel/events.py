"""The events that each processor of a card is woken by, in the order in which it serves them."""

from __future__ import annotations

from lanikai.hdl.config import NicConfig

__all__ = ["RECEIVES", "events"]

ONE = ("receive", "send", "host_dma", "timer", "doorbell", "completion")
"""Events of a processor that does both; those that hold the wire come first."""
SENDS = ("send", "host_dma", "timer", "peer", "doorbell", "completion")
"""Events of a processor that sends."""
RECEIVES = ("receive", "host_dma", "peer", "receive_doorbell")
"""Events of a processor that receives."""


def events(nic: NicConfig) -> tuple[tuple[str, ...], ...]:
    """The events of each of a card's processors. Without a queue before it, checked moves have one of their own."""
    if nic.processors == 2:
        return SENDS, RECEIVES
    return (ONE if nic.host_dma_queue_entries else (*ONE, "access"),)
