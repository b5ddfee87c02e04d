"""The smallest cluster of cards with two processors each; tests that need one share its model."""

from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.systems.cluster import cluster_preset

__all__ = ["PAIR", "STAMPING_PAIR"]

PAIR = cluster_preset(
    "tiny",
    nic=preset(
        NicConfig,
        "tiny",
        processors=2,
        host_dma_queue_entries=4,
        receive_doorbells="separate",
        doorbell_queue_entries=8,
    ),
)
"""Two nodes, with all queues that two processors need."""

STAMPING_PAIR = cluster_preset(
    "tiny",
    nic=preset(
        NicConfig,
        "tiny",
        host_dma_queue_entries=4,
        host_dma_queue_order="timestamp",
        send_queue_entries=4,
        send_queue_order="timestamp",
        stamp_flows=3,
    ),
)
"""Two nodes whose cards stamp host DMAs and packets by themselves."""
