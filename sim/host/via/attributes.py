"""Addresses, attributes and states of VIPL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from lanikai.firmware.via.config import MOST_MESSAGE_BYTES
from lanikai.firmware.via.layout import Reliability

__all__ = [
    "MOST_DISCRIMINATOR_BYTES",
    "RDMA_READ_LEVELS",
    "MemAttributes",
    "NetAddress",
    "NicAttributes",
    "Quality",
    "Reliability",
    "ViAttributes",
    "ViState",
]

MOST_DISCRIMINATOR_BYTES = 16
"""Longest discriminator (MaxDiscriminatorLen): two of them fit a packet of the agents."""


RDMA_READ_LEVELS = (Reliability.RELIABLE_DELIVERY, Reliability.RELIABLE_RECEPTION)
"""Levels of connections with RDMA reads: an answer that is lost has to be told."""


class ViState(Enum):
    """The states of a VI, by their names in VIPL."""

    IDLE = "VIP_STATE_IDLE"
    CONNECT_PENDING = "VIP_STATE_CONNECT_PENDING"
    CONNECTED = "VIP_STATE_CONNECTED"
    ERROR = "VIP_STATE_ERROR"


@dataclass(frozen=True)
class NetAddress:
    """VIP_NET_ADDRESS: a node, its host address, and a `discriminator`, the name of an end on it."""

    node: int
    discriminator: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """QoS of a VI, as nagar-thesis-2001 5.3.3 has it: the bandwidth that it asks for at set-up, of what this end sends.

    - `bytes_per_s`: bandwidth, 1 to 2^32 - 1.
    - `message_bytes`: the messages that it is reckoned for, 1 to 2^16 - 1.
    """

    bytes_per_s: int
    message_bytes: int


@dataclass(frozen=True, kw_only=True)
class ViAttributes:
    """VIP_VI_ATTRIBUTES.

    - `reliability`: must be the same at both ends.
    - `most_bytes`: MaxTransferSize, bytes of the longest message; must be the same at both ends.
    - `quality`: QoS of what this end sends, None for best effort. The cards at both ends must have the capacity.
    - `ptag`: the protection tag; None in the attributes of the other end.
    - `rdma_write`, `rdma_read`: EnableRdmaWrite and EnableRdmaRead, whether the other end may do so to this one.
    """

    reliability: Reliability = Reliability.UNRELIABLE
    most_bytes: int = MOST_MESSAGE_BYTES
    quality: Quality | None = None
    ptag: Any = None
    rdma_write: bool = False
    rdma_read: bool = False


@dataclass(frozen=True, kw_only=True)
class MemAttributes:
    """VIP_MEM_ATTRIBUTES: the protection tag, and whether the other ends of VIs may write and read the memory."""

    ptag: Any
    rdma_write: bool = False
    rdma_read: bool = False


@dataclass(frozen=True, kw_only=True)
class NicAttributes:
    """VIP_NIC_ATTRIBUTES of a card with its firmware; the docstring of each field is its name there.

    Lengths are in bytes. `reliability_levels` and `rdma_read_levels` are the levels of which there are connections, and
    RDMA reads.
    """

    name: str
    node: int
    thread_safe: bool
    most_discriminator_bytes: int
    most_register_bytes: int
    most_regions: int
    most_vis: int
    most_descriptors: int
    most_segments: int
    most_completion_queues: int
    most_completion_entries: int
    most_transfer_bytes: int
    native_mtu_bytes: int
    most_ptags: int
    reliability_levels: tuple[Reliability, ...]
    rdma_read_levels: tuple[Reliability, ...]
