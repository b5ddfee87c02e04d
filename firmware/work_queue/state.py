"""The work queue program's state of its queues, and its verdict on a packet that comes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lanikai.hdl.packet import Header, Kind

from .layout import COUNT_BITS, ChannelRecord, unpack_sequence

__all__ = ["PostedQueue", "describe", "read_header", "refusal"]


class PostedQueue:
    """A work queue as the firmware knows it.

    It has running counts of descriptors, `posted` and `taken`, and the one that is `staged` in the SRAM, if any is.
    """

    def __init__(self, channel: int, *, receive: bool) -> None:
        self.channel, self.receive = channel, receive
        self.posted = self.taken = 0
        self.staged: int | None = None

    @property
    def waiting(self) -> int:
        """Descriptors posted and not taken."""
        return (self.posted - self.taken) % (1 << COUNT_BITS)

    def take(self) -> None:
        """Its next descriptor is taken."""
        self.taken = (self.taken + 1) % (1 << COUNT_BITS)


def read_header(bits: int) -> Header:
    """A packet's header. A packet of a kind that there is not is as good as a probe."""
    try:
        return Header.unpack(bits)
    except ValueError:
        return Header(kind=Kind.PROBE)


def refusal(header: Header, node: int, record: ChannelRecord | None, posted: int) -> str:
    """The reason why a packet is dropped at `node`, whose channel has this `record` and `posted` descriptors.

    It is `unknown`, `misrouted`, `closed`, `stranger` or `no buffer`, or an empty text if the packet is not dropped.
    The CRC, which is right, says nothing of the way by which the packet has come. The header's flow alone says nothing
    of its sender.
    """
    if header.kind is not Kind.DATA:
        return "unknown"
    if header.destination != node:
        return "misrouted"
    if record is None:
        return "closed"
    sender, _ = unpack_sequence(header.sequence)
    if (header.source, sender) != (record.node, record.channel):
        return "stranger"
    return "" if posted else "no buffer"


def describe(node: int, step: str, queues: Iterable[PostedQueue], drops: Mapping[str, int]) -> list[str]:
    """The program's state for a log, a line each."""
    lines = [f"work queues[{node}]: {step or 'waits for events'}"]
    for queue in queues:
        kind = "receive" if queue.receive else "send"
        lines.append(
            f"  channel {queue.channel}, to {kind}: {queue.waiting} descriptors posted and not taken"
        )
    return lines + [f"  dropped, {reason}: {count}" for reason, count in drops.items()]
