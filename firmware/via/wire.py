"""VIA's words in packets: which VI a packet is of, which message, and which part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from lanikai.hdl.packet import Header, Kind

__all__ = [
    "CONTROL_PACKET_BYTES",
    "NUMBERS",
    "VIA_HEADER_BYTES",
    "PacketOp",
    "ViaHeader",
    "next_number",
    "pack_sequence",
    "read_header",
    "sender_channel",
]

VIA_HEADER_BYTES = 16
"""Bytes of the VIA header: the head of every packet's payload but those of agents. Immediate data follow, then data."""
CONTROL_PACKET_BYTES = 64
"""Bytes of a packet of agents, who speak with each other by channel 0; they have no VIA header."""
NUMBERS = 1 << 16
"""Messages of a connection are numbered from 0 on, modulo this, each way by itself."""
_CHANNEL_SHIFT = 6


class PacketOp(IntEnum):
    """The kind of message that a packet is a part of."""

    SEND = 0
    RDMA_WRITE = 1
    READ_REQUEST = 2
    READ_ANSWER = 3


@dataclass(frozen=True, kw_only=True)
class ViaHeader:
    """The VIA header.

    - `op`: a `PacketOp`. Of an answer (`Kind.ACK`, `Kind.NACK`) it says nothing.
    - `last`: the message's last packet.
    - `status`: of a NACK, how the message ended (`CompletionStatus`), 5 bits.
    - `immediate_bytes`: bytes of immediate data in this packet, 0 to 128, whole words.
    - `connection`: the connection's number. A packet of another connection is a stranger's.
    - `number`: the message's. An ACK is for all up to this one. A READ_ANSWER has that of its request.
    - `tag`, `address`: of an RDMA, the other end's memory: tag of its region, and its first byte.
    - `length`: bytes of the whole message, without immediate data.
    - `offset`: the place of this packet's first byte in the message.
    """

    op: PacketOp = PacketOp.SEND
    last: bool = True
    status: int = 0
    immediate_bytes: int = 0
    connection: int
    number: int
    tag: int = 0
    address: int = 0
    length: int = 0
    offset: int = 0

    def words(self) -> tuple[int, int, int, int]:
        """The four words of the header."""
        return (
            self.op | self.last << 2 | self.status << 3 | self.immediate_bytes << 8 | self.connection << 16,
            self.number | self.tag << 16,
            self.length | self.offset << 16,
            self.address,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> ViaHeader:
        """The header in those words."""
        control, which, place, address = words
        return cls(
            op=PacketOp(control & 3),
            last=bool(control >> 2 & 1),
            status=control >> 3 & 0x1F,
            immediate_bytes=control >> 8 & 0xFF,
            connection=control >> 16,
            number=which & 0xFFFF,
            tag=which >> 16,
            length=place & 0xFFFF,
            offset=place >> 16,
            address=address,
        )


def next_number(number: int) -> int:
    """The number of the message after `number`."""
    return (number + 1) % NUMBERS


def pack_sequence(channel: int, number: int) -> int:
    """`Header.sequence`: the channel by which a packet is sent, and low bits of its message's number.

    `Header.flow` is the channel that it is for.
    """
    return channel << _CHANNEL_SHIFT | number % (1 << _CHANNEL_SHIFT)


def sender_channel(sequence: int) -> int:
    """The channel by which a packet was sent."""
    return sequence >> _CHANNEL_SHIFT


def read_header(bits: int) -> Header:
    """A packet's header. A packet of a kind that there is not is as good as a probe."""
    try:
        return Header.unpack(bits)
    except ValueError:
        return Header(kind=Kind.PROBE)
