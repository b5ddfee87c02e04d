"""What firmware, driver and processes share: descriptors, doorbells, channel records, the driver's mailbox, and their
places in the SRAM. Declared once. All words are 32 bits, little endian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from lanikai.hdl.config import HEADER_BITS, ConfigError, NicConfig
from lanikai.hdl.nic.owners.owner_page import PART_BYTES
from lanikai.hdl.nic.ports import SRAM_BASE

from .config import WorkQueueConfig

__all__ = [
    "BROKEN_WORDS",
    "COUNT_BITS",
    "DESCRIPTOR_BYTES",
    "FETCHED_BYTES",
    "HEADER_BYTES",
    "MOST_WRITES",
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
"""A descriptor: control, address, status, a word for the process alone."""
FETCHED_BYTES = 8
"""What the card reads of a descriptor: control and address."""
STATUS_OFFSET = 8
"""Where in a descriptor its status word is (`STATUS_LAYOUT` of `completion_layout.py`): the process writes 0 as it
posts, the card writes it when the descriptor is done."""
COUNT_BITS = 16
"""A doorbell's word: how many descriptors have been posted to the queue since it was made, modulo 2^16. So a doorbell
may announce any number of descriptors."""
RECORD_BYTES = 32
MOST_WRITES = 15
"""Register writes that the driver asks for at once."""
MAILBOX_BYTES = 8 + 8 * MOST_WRITES
BROKEN_WORDS = 2
"""Words that say which completion queues the bus has broken, a bit each: COMPLETION_BROKEN, COMPLETION_BROKEN_HIGH."""
NUMBER_BITS = 15
SLOT_BITS = 6
"""Bits of a header's sequence that say which descriptor of its queue a message was (the longest queue has 64); those
above are the sender's channel."""


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A message to send, or a buffer for one to come: `bytes` from virtual `address` on, in the region of `tag` (its
    key and number, 16 bits)."""

    address: int
    tag: int
    bytes: int

    def words(self) -> tuple[int, int]:
        """What the card reads: tag and bytes, then the address. Raises ValueError for a field that does not fit."""
        for name, bits in (("address", 32), ("tag", 16), ("bytes", 16)):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ValueError(f"descriptor: {name} = {getattr(self, name):#x}: 0 to {(1 << bits) - 1:#x}")
        return self.tag << 16 | self.bytes, self.address

    @classmethod
    def unpack(cls, control: int, address: int) -> Descriptor:
        """From those words."""
        return cls(address=address, tag=control >> 16, bytes=control & 0xFFFF)


def pack_descriptor_number(index: int, *, receive: bool) -> int:
    """What a completion calls a descriptor: its running index modulo 2^15, and which queue of the channel it is of."""
    return index % (1 << NUMBER_BITS) | receive << NUMBER_BITS


def unpack_descriptor_number(number: int) -> tuple[int, bool]:
    """Index modulo 2^15, and whether it is one to receive."""
    return number % (1 << NUMBER_BITS), bool(number >> NUMBER_BITS)


def pack_sequence(channel: int, index: int) -> int:
    """A message's `Header.sequence`: the channel that it was sent by, and the number of its descriptor modulo 64. Its
    `flow` is the channel that it is for."""
    return channel << SLOT_BITS | index % (1 << SLOT_BITS)


def unpack_sequence(sequence: int) -> tuple[int, int]:
    """The channel that a message was sent by, and its descriptor modulo 64."""
    return sequence >> SLOT_BITS, sequence % (1 << SLOT_BITS)


@dataclass(frozen=True, kw_only=True)
class ChannelRecord:
    """What the driver tells the firmware of a channel: where its queues are in host memory (multiples of 16), their
    completion queues, where their shadows are in the SRAM (0: they have none), and whom it sends to and hears:
    `channel` of `node`, by `route`, and nobody else."""

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
    """Which word says that the channel is open."""

    def words(self) -> tuple[int, ...]:
        """The record in the SRAM, 8 words."""
        queues = self.send_completions | self.receive_completions << 8 | 1 << 31
        shadows = (self.send_shadow, self.receive_shadow)
        route = (self.route & 0xFFFFFFFF, self.route >> 32 | self.node << 16)
        return self.send_ring, self.receive_ring, queues, *shadows, *route, self.channel

    @classmethod
    def unpack(cls, words: list[int]) -> ChannelRecord | None:
        """From those words; None of a channel that is not open."""
        if not words[cls.OPEN_WORD] >> 31:
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
        """The driver's mailbox: number of register writes, host address of the answer's status word (a multiple of 4),
        then offset and word of each."""
        return SRAM_BASE

    @property
    def broken(self) -> int:
        """Which completion queues are broken, `BROKEN_WORDS` words: the firmware writes them, then HOST_INTERRUPT."""
        return self.mailbox + MAILBOX_BYTES

    def record(self, channel: int) -> int:
        """A channel's record."""
        return self.broken + 4 * BROKEN_WORDS + RECORD_BYTES * channel

    def staged(self, channel: int, *, receive: bool) -> int:
        """Where the next descriptor of a queue comes to stand when it is fetched."""
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
        """Bytes of a queue's part of it: a slot a descriptor."""
        return FETCHED_BYTES * self.config.queue_entries

    @property
    def bytes(self) -> int:
        """SRAM in use."""
        return self.window(self.nic.owners) - SRAM_BASE
