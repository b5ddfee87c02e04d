"""A message's bytes on the wire and its costs: the mapping between MPI's bandwidths and GM's.

A flow's IDT is time between *packets*, whatever they hold, and GM's bandwidth B stands for packets of a full MTU every
MTU / B. A message of the MPI layer takes packets that are not full: its announcement, the header and the end of a
fragment. So its flow needs a higher raw bandwidth than its payload's (gulati-thesis-2001 4.4.2: "the requested
bandwidth is mapped to the corresponding raw GM bandwidth").

Where a card charges bytes (`GmConfig.charge`), the flow needs headers beside its payload. It needs more for its
shortest packets, too, which are charged for more bytes than they have. The manager is told how long its GM messages
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...bandwidth.pace import Pace
from ...units import MB
from ..config import HostConfig
from .config import MpiConfig, MpiCosts
from .envelope import HEADER_BYTES

__all__ = ["Need", "fragments", "host_ns", "mpi_mb_per_s", "need", "packets", "peak_mb_per_s", "raw_mb_per_s"]


@dataclass(frozen=True, kw_only=True)
class Need:
    """MPI messages as the bandwidth manager sees them.

    - `factor`: bytes that it is asked for, for each byte of payload.
    - `message_bytes`: the mean size of a GM message. It is None where packets are charged: the factor makes them full
      ones.
    """

    factor: float
    message_bytes: int | None


def fragments(message_bytes: int, config: MpiConfig) -> list[int]:
    """Bytes, header included, of every GM message of an MPI message, from the sender's side."""
    if message_bytes <= config.eager_bytes:
        return [HEADER_BYTES + message_bytes]
    full, rest = divmod(message_bytes, config.payload_bytes)
    return [
        HEADER_BYTES,
        *[config.fragment_bytes] * full,
        *([HEADER_BYTES + rest] if rest else []),
    ]


def packets(message_bytes: int, config: MpiConfig, mtu_bytes: int) -> int:
    """The number of packets of the flow in a message."""
    return sum(-(-one // mtu_bytes) for one in fragments(message_bytes, config))


def raw_mb_per_s(mpi: float, message_bytes: int, config: MpiConfig, mtu_bytes: int) -> float:
    """GM's bandwidth for messages of `message_bytes` (at least 1) to flow at `mpi` MB/s."""
    return mpi * packets(message_bytes, config, mtu_bytes) * mtu_bytes / message_bytes


def mpi_mb_per_s(raw: float, message_bytes: int, config: MpiConfig, mtu_bytes: int) -> float:
    """The inverse: MB/s of messages in a flow whose raw bandwidth is `raw`."""
    return raw * message_bytes / (packets(message_bytes, config, mtu_bytes) * mtu_bytes)


def host_ns(message_bytes: int, costs: MpiCosts, config: MpiConfig, host: HostConfig) -> int:
    """Nanoseconds of its CPU that a rank needs to receive a message.

    For each GM message it looks at the header, gives the buffer back, and copies the payload. GM's event loop runs
    beside it.
    """
    messages = len(fragments(message_bytes, config))
    return costs.copy_ns(message_bytes) + messages * (costs.message_ns + host.receive_buffer_ns)


def peak_mb_per_s(
    message_bytes: int | Sequence[int], costs: MpiCosts, config: MpiConfig, host: HostConfig
) -> float:
    """MB/s of messages that a rank's CPU lets through, whatever the network does.

    The messages are of `message_bytes` (at least 1), or of these sizes in turn.
    """
    sizes = [message_bytes] if isinstance(message_bytes, int) else message_bytes
    return sum(sizes) * 1e9 / sum(host_ns(size, costs, config, host) for size in sizes) / MB


def need(sizes: Sequence[int], config: MpiConfig, pace: Pace) -> Need:
    """The need of messages of these `sizes` (each at least 1), as many of each."""
    payload = sum(sizes)
    if not pace.by_bytes:
        full = sum(packets(size, config, pace.mtu_bytes) for size in sizes) * pace.mtu_bytes
        return Need(factor=full / payload, message_bytes=None)
    messages = [one for size in sizes for one in fragments(size, config)]
    factor = pace.charge_factor(messages) * sum(messages) / payload
    return Need(factor=factor, message_bytes=sum(messages) // len(messages))
