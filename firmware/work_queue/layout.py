"""Layouts that firmware, driver and processes share, declared once. All words are 32 bits, little endian.

They are descriptors, doorbells, channel records, the driver's mailbox, and the places of these in the SRAM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from lanikai.hdl.config import HEADER_BITS, ConfigError, NicConfig
from lanikai.hdl.nic.owners.owner_page import PART_BYTES
from lanikai.hdl.nic.ports import SRAM_BASE

from ..driver_mailbox import BROKEN_WORDS, MOST_WRITES
from .config import WorkQueueConfig

__all__ = [
    "BROKEN_WORDS",
    "COUNT_BITS",
    "DESCRIPTOR_BYTES",
    "FETCHED_BYTES",
    "HEADER_BYTES",
    "MOST_WRITES",
    "OPEN_FLAG",
    "RECORD_WORDS",
    "STATUS_OFFSET",
    "ChannelRecord",
    "Descriptor",
    "Layout",
    "pack_descriptor_number",
    "pack_sequence",
    "unpack_descriptor_number",
    "unpack_sequence",
]

HEADER_BYTES = HEADER_BITS // 8
DESCRIPTOR_BYTES = 16
"""Bytes of a descriptor: control, address, status, a word for the process alone."""
FETCHED_BYTES = 8
"""Bytes of a descriptor that the card reads: control and address."""
STATUS_OFFSET = 8
"""Offset of the status word in a descriptor (`STATUS_LAYOUT` of `completion_layout.py`).

The process writes 0 there as it posts, the card writes the status when the descriptor is done.
"""
COUNT_BITS = 16
"""Width of a doorbell's word: the number of descriptors that have been posted to the queue since it was made.

It counts modulo 2^16, so a doorbell may announce any number of descriptors.
"""
RECORD_BYTES = 32
RECORD_WORDS = RECORD_BYTES // 4
OPEN_FLAG = 1 << 31
"""Flag in a channel record's word `ChannelRecord.OPEN_WORD`: the channel is open."""
MAILBOX_BYTES = 8 + 8 * MOST_WRITES
NUMBER_BITS = 15
SLOT_BITS = 6
"""Bits of a header's sequence that have the number of a message's descriptor in its queue.

The longest queue has 64 descriptors. The bits above are the sender's channel.
"""


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A message to send, or a buffer for one to come.

    It has `bytes` from virtual `address` on, in the region of `tag`, which is its key and number in 16 bits.
    """

    address: int
    tag: int
    bytes: int

    def words(self) -> tuple[int, int]:
        """The words that the card reads: tag and bytes, then the address.

        Raises ValueError for a field that does not fit.
        """
        for name, bits in (("address", 32), ("tag", 16), ("bytes", 16)):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ValueError(f"descriptor: {name} = {getattr(self, name):#x}: 0 to {(1 << bits) - 1:#x}")
        return self.tag << 16 | self.bytes, self.address

    @classmethod
    def unpack(cls, control: int, address: int) -> Descriptor:
        """The descriptor in those words."""
        return cls(address=address, tag=control >> 16, bytes=control & 0xFFFF)


def pack_descriptor_number(index: int, *, receive: bool) -> int:
    """The name of a descriptor in a completion: its running index modulo 2^15, and its queue of the channel."""
    return index % (1 << NUMBER_BITS) | receive << NUMBER_BITS


def unpack_descriptor_number(number: int) -> tuple[int, bool]:
    """Index modulo 2^15, and whether it is one to receive."""
    return number % (1 << NUMBER_BITS), bool(number >> NUMBER_BITS)


def pack_sequence(channel: int, index: int) -> int:
    """A message's `Header.sequence`: the channel by which it was sent, and the number of its descriptor modulo 64.

    Its `flow` is the channel that it is for.
    """
    return channel << SLOT_BITS | index % (1 << SLOT_BITS)


def unpack_sequence(sequence: int) -> tuple[int, int]:
    """The channel by which a message was sent, and its descriptor modulo 64."""
    return sequence >> SLOT_BITS, sequence % (1 << SLOT_BITS)


@dataclass(frozen=True, kw_only=True)
class ChannelRecord:
    """The driver's record of a channel, for the firmware:

    - the addresses of its queues in host memory (multiples of 16)
    - their completion queues
    - the addresses of their shadows in the SRAM (0: they have none)
    - the other end: it sends to `channel` of `node`, by `route`, and hears that channel, and nobody else
    """

    send_ring: int
    receive_ring: int
    send_completions: int
    receive_completions: int
    send_shadow: int = 0
    receive_shadow: int = 0
    route: int
    node: int
    channel: int

    OPEN_WORD: ClassVar[int] = 2
    """Number of the word that says that the channel is open."""
    RING_WORDS: ClassVar[tuple[int, int]] = (0, 1)
    """Numbers of the words with the addresses of its queues: to send, to receive."""
    SHADOW_WORDS: ClassVar[tuple[int, int]] = (3, 4)
    """Numbers of the words with the addresses of their shadows."""

    def words(self) -> tuple[int, ...]:
        """The record in the SRAM, 8 words."""
        queues = self.send_completions | self.receive_completions << 8 | OPEN_FLAG
        shadows = (self.send_shadow, self.receive_shadow)
        route = (self.route & 0xFFFFFFFF, self.route >> 32 | self.node << 16)
        return self.send_ring, self.receive_ring, queues, *shadows, *route, self.channel

    @staticmethod
    def other_end(node: int, channel: int) -> dict[int, tuple[int, int]]:
        """Mask and value of the words, by their numbers, in which a record names `channel` of `node`."""
        return {6: (0xFFFF0000, node << 16), 7: (0xFFFFFFFF, channel)}

    @classmethod
    def unpack(cls, words: list[int]) -> ChannelRecord | None:
        """The record in those words; None for a channel that is not open."""
        if not words[cls.OPEN_WORD] & OPEN_FLAG:
            return None
        return cls(
            send_ring=words[0],
            receive_ring=words[1],
            send_completions=words[2] & 0xFF,
            receive_completions=words[2] >> 8 & 0xFF,
            send_shadow=words[3],
            receive_shadow=words[4],
            route=words[5] | (words[6] & 0xFFFF) << 32,
            node=words[6] >> 16,
            channel=words[7],
        )


@dataclass(frozen=True)
class Layout:
    """Byte addresses in the SRAM, as processor and host see them. Channel 0 and page 0 are the driver's.

    Raises ConfigError for a card that lacks something, or is too small.
    """

    nic: NicConfig
    config: WorkQueueConfig

    def __post_init__(self) -> None:
        nic = self.nic
        if nic.doorbell != "queue" or nic.receive_doorbells != "merged":
            raise ConfigError(
                "NicConfig: work queues need doorbell = 'queue' and receive_doorbells = 'merged'"
            )
        least = {
            "owners": 2,
            "channels": 2,
            "completion_queues": 1,
            "regions": 1,
            "host_dma_queue_entries": 2,
        }
        for name, value in least.items():
            if getattr(nic, name) < value:
                raise ConfigError(
                    f"NicConfig.{name} = {getattr(nic, name)}: at least {value} for work queues"
                )
        if self.config.descriptors == "shadow" and not nic.shadow_windows:
            raise ConfigError("NicConfig.shadow_windows = False: descriptors = 'shadow' needs them")
        if self.bytes > nic.sram_bytes:
            raise ConfigError(
                f"NicConfig.sram_bytes = {nic.sram_bytes}: work queues need {self.bytes} bytes; fewer channels, "
                "or owners with shadow windows, would fit"
            )

    @property
    def mailbox(self) -> int:
        """The driver's mailbox.

        It has the number of register writes, the host address of the answer's status word (a multiple of 4), then
        offset and word of each write.
        """
        return SRAM_BASE

    @property
    def broken(self) -> int:
        """The completion queues that are broken, `BROKEN_WORDS` words.

        The firmware writes them, then HOST_INTERRUPT.
        """
        return self.mailbox + MAILBOX_BYTES

    def record(self, channel: int) -> int:
        """A channel's record."""
        return self.broken + 4 * BROKEN_WORDS + RECORD_BYTES * channel

    def staged(self, channel: int, *, receive: bool) -> int:
        """The place of the next descriptor of a queue when it is fetched."""
        return self.record(self.nic.channels) + FETCHED_BYTES * (2 * channel + receive)

    @cached_property
    def buffer_bytes(self) -> int:
        """A packet buffer, a multiple of 16."""
        return -(-self.nic.packet_bytes // 16) * 16

    @cached_property
    def send_buffer(self) -> int:
        """The packet on its way out."""
        return -(-self.staged(self.nic.channels, receive=False) // 16) * 16

    @property
    def receive_buffer(self) -> int:
        """The packet on its way in."""
        return self.send_buffer + self.buffer_bytes

    def window(self, owner: int) -> int:
        """An owner's shadow window, of `window_bytes`."""
        return self.receive_buffer + self.buffer_bytes + self.window_bytes * owner

    @property
    def window_bytes(self) -> int:
        """Bytes of an owner's shadow window."""
        return PART_BYTES if self.config.descriptors == "shadow" else 0

    @property
    def shadow_bytes(self) -> int:
        """Bytes of a queue's part of a shadow window: a slot a descriptor."""
        return FETCHED_BYTES * self.config.queue_entries

    @property
    def bytes(self) -> int:
        """SRAM in use."""
        return self.window(self.nic.owners) - SRAM_BASE
