"""The cards and programs of chapter 5: SVIA, PVIA and QoSVIA on the same hardware, and clusters of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanikai.firmware.via.config import DESIGNS, ViaConfig, design
from lanikai.hdl.config import NicConfig, preset

from ...host.config import KitConfig

if TYPE_CHECKING:
    from ...systems.cluster import ClusterConfig

__all__ = [
    "NAMES",
    "QUEUE_ENTRIES",
    "SIMULATED_BUFFERS",
    "SIMULATED_MTU_BYTES",
    "TITLES",
    "VIA_HOST",
    "via_card",
    "via_cluster",
    "via_program",
]

NAMES = tuple(DESIGNS)
"""The three designs, in the order of their claims."""
TITLES = {"svia": "SVIA", "pvia": "PVIA", "qosvia": "QoSVIA"}
"""Their names as the thesis writes them, for readers."""
VIA_HOST = KitConfig(post_ns=2_000, miss_ns=2_800)
"""The costs of VIPL's calls on the hosts of chapter 5, of which nagar-thesis-2001 says no more than the sum.

One-way latency by SVIA is 6 us (4 B) and 8 us (4 KB) more than the stages of table 5.1 at both cards. That is for
seeing that a descriptor is done, posting another one to receive, and one to send. The sum is fitted to these two; its
parts are an assumption.
"""
QUEUE_ENTRIES = 64
"""Descriptors of a work queue. What is due beyond them waits at its host, in a list without end."""

SIMULATED_MTU_BYTES = 4096 + 64
"""Packet of the runs that the thesis has simulated (5.4.2): its messages of 4 KB, and VIA's header."""
SIMULATED_BUFFERS = 208
"""Packet buffers for what comes in, in those runs, under the parallel designs.

The thesis' simulator has buffers without end. So many of 4 KB are in the card's SRAM, 1 MB, beside all else.
"""


def via_card(name: str, *, send_queue: bool = False) -> NicConfig:
    """The card of a design: `via5`. QoSVIA's host DMA queue goes by stamps.

    `send_queue`: with a queue in hardware at the net send engine (5.4.2.3), in the same order.
    """
    order = "arrival" if design(name).order == "arrival" else "timestamp"
    card = preset(NicConfig, "via5", host_dma_queue_order=order)
    return card.replace(send_queue_entries=32, send_queue_order=order) if send_queue else card


def via_program(name: str, order: str | None = None) -> ViaConfig:
    """The program of a design. `order`: another scheduler's."""
    changes = {"queue_entries": QUEUE_ENTRIES}
    return design(name, **changes) if order is None else design(name, **changes, order=order)


def via_cluster(
    name: str, *, nodes: int, send_queue: bool = False, mtu_bytes: int | None = None
) -> ClusterConfig:
    """A cluster of such cards on one switch. `mtu_bytes`: another packet than that of 16 KB."""
    from ...systems.cluster import cluster_preset

    card = via_card(name, send_queue=send_queue)
    return cluster_preset(
        "via5",
        nodes=nodes,
        nic=card if mtu_bytes is None else card.replace(mtu_bytes=mtu_bytes),
        firmware="via",
        memory_bytes=1 << 23,
    )
