"""Layouts that firmware, agent and processes share, declared once. All words are 32 bits, little endian.

They are the records of VIs, the agent's mailbox, packets and notices, and the places of these in the SRAM. Channel 0
and page 0 are the agent's. A VI is a channel of the card, and a protection tag is an owner of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import ClassVar

from lanikai.hdl.config import HEADER_BITS, ConfigError, NicConfig
from lanikai.hdl.nic.owners.owner_page import PART_BYTES
from lanikai.hdl.nic.ports import SRAM_BASE

from ..driver_mailbox import BROKEN_WORDS, DRIVER_CHANNEL, DRIVER_OWNER, MOST_WRITES
from ..work_queue.layout import COUNT_BITS
from .config import WORD_BYTES, ViaConfig
from .descriptor import SlotForm
from .wire import CONTROL_PACKET_BYTES, VIA_HEADER_BYTES

__all__ = [
    "AGENT_CHANNEL",
    "AGENT_OWNER",
    "BROKEN_WORDS",
    "COUNT_BITS",
    "HEADER_BYTES",
    "MOST_WRITES",
    "NOTICE_BYTES",
    "NOTICE_NUMBER",
    "NOTICE_SLOT_BYTES",
    "RECORD_BYTES",
    "RECORD_WORDS",
    "SEND_CONTROL_PACKET",
    "NoticeKind",
    "RegionFlag",
    "Reliability",
    "ViRecord",
    "ViaLayout",
    "pack_broken",
    "unpack_broken",
]

HEADER_BYTES = HEADER_BITS // 8
AGENT_CHANNEL, AGENT_OWNER = DRIVER_CHANNEL, DRIVER_OWNER
"""The agent's channel and page. Its doorbell says that there is something in the mailbox."""
SEND_CONTROL_PACKET = 1 << 31
"""In place of the mailbox's number of writes: send the packet at `control_out` to the node at `control_route`."""
MAILBOX_BYTES = 8 + 8 * MOST_WRITES
NOTICE_BYTES = 4 * WORD_BYTES + CONTROL_PACKET_BYTES
"""Bytes of a notice to the agent.

Its words are kind (`NoticeKind`), source (node, or `pack_broken`), reason (`CompletionStatus`), a control packet's 16
words, and the running number of the notice (the first is 1) modulo 2^32. The number comes last: the agent may look at a
slot while the card writes it.
"""
NOTICE_NUMBER = NOTICE_BYTES // WORD_BYTES - 1
"""Index of the word with a notice's number: the last one."""
NOTICE_SLOT_BYTES = 128
"""Bytes of a slot of the ring of notices in host memory."""
RECORD_BYTES = 48


class NoticeKind(IntEnum):
    """The subject of a notice to the agent."""

    CONTROL_PACKET = 1  # one has come, from the node `source`
    VI_BROKEN = 2  # the firmware has ended the connection that `source` names (`pack_broken`), for `reason`


def pack_broken(channel: int, connection: int) -> int:
    """The source of a notice VI_BROKEN: channel and connection. The VI may have another connection meanwhile."""
    return channel | connection << 16


def unpack_broken(source: int) -> tuple[int, int]:
    """Channel and connection in the source of a notice VI_BROKEN."""
    return source & 0xFFFF, source >> 16


class Reliability(IntEnum):
    """The reliability levels of a connection (specification 2.5)."""

    UNRELIABLE = 0
    RELIABLE_DELIVERY = 1  # a send ends when the other end's card has it
    RELIABLE_RECEPTION = 2  # a send ends when it is in the other end's memory


class RegionFlag(IntEnum):
    """The rights of the other ends of VIs to a region: bits of its word in the SRAM."""

    RDMA_WRITE = 1
    RDMA_READ = 2


@dataclass(frozen=True, kw_only=True)
class ViRecord:
    """The agent's record of a VI, for the firmware. It is trusted.

    - `send_ring`, `receive_ring`: host addresses of its work queues, multiples of 64.
    - `send_completions`, `receive_completions`: numbers of their completion queues; None: only the descriptor is told.
    - `send_shadow`, `receive_shadow`: addresses of their shadows in the SRAM; 0: they have none.
    - `route`, `node`, `channel`: the other end, which alone it sends to and hears.
    - `connection`: the connection's number, 16 bits. When it changes, numbers of messages begin anew.
    - `reliability`: the level.
    - `rdma_write`, `rdma_read`: whether the other end may do so.
    - `most_bytes`: longest message (VipCreateVi's MaxTransferSize), 16 bits.
    - `vtick`: RTC ticks between two packets; 0: best effort (nagar-thesis-2001 5.3.3).
    - `receive_vtick`: the same of the other end, which both cards are told (5.3.3).
    """

    send_ring: int
    receive_ring: int
    send_completions: int | None = None
    receive_completions: int | None = None
    send_shadow: int = 0
    receive_shadow: int = 0
    route: int
    node: int
    channel: int
    connection: int = 0
    reliability: Reliability = Reliability.UNRELIABLE
    rdma_write: bool = False
    rdma_read: bool = False
    most_bytes: int = (1 << 16) - 1
    vtick: int = 0
    receive_vtick: int = 0

    OPEN_WORD: ClassVar[int] = 2
    """Number of the word that says that the VI is connected: the agent writes it last, and first as it closes."""

    def words(self) -> tuple[int, ...]:
        """The record in the SRAM, 11 words."""
        told = [
            0 if queue is None else queue | 1 << 6
            for queue in (self.send_completions, self.receive_completions)
        ]
        return (
            self.send_ring,
            self.receive_ring,
            told[0]
            | told[1] << 8
            | self.reliability << 16
            | self.rdma_write << 18
            | self.rdma_read << 19
            | 1 << 31,
            self.send_shadow,
            self.receive_shadow,
            self.route & 0xFFFFFFFF,
            self.route >> 32 | self.node << 16,
            self.channel | self.connection << 16,
            self.vtick,
            self.most_bytes,
            self.receive_vtick,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> ViRecord | None:
        """The record in those words; None for a VI that is not connected."""
        flags = words[cls.OPEN_WORD]
        if not flags >> 31:
            return None
        told = [queue & 0x3F if queue & 1 << 6 else None for queue in (flags & 0xFF, flags >> 8 & 0xFF)]
        return cls(
            send_ring=words[0],
            receive_ring=words[1],
            send_completions=told[0],
            receive_completions=told[1],
            send_shadow=words[3],
            receive_shadow=words[4],
            route=words[5] | (words[6] & 0xFFFF) << 32,
            node=words[6] >> 16,
            channel=words[7] & 0xFFFF,
            connection=words[7] >> 16,
            reliability=Reliability(flags >> 16 & 3),
            rdma_write=bool(flags >> 18 & 1),
            rdma_read=bool(flags >> 19 & 1),
            vtick=words[8],
            most_bytes=words[9] & 0xFFFF,
            receive_vtick=words[10],
        )


RECORD_WORDS = 11


@dataclass(frozen=True)
class ViaLayout:
    """Byte addresses in the SRAM, as processor and host see them.

    Raises ConfigError for a card that lacks something, or is too small.
    """

    nic: NicConfig
    config: ViaConfig

    def __post_init__(self) -> None:
        nic = self.nic
        wanted = "separate" if nic.processors == 2 else "merged"
        if nic.receive_doorbells != wanted:
            raise ConfigError(
                f"NicConfig.receive_doorbells = {nic.receive_doorbells!r}: VIA on a card with processors = "
                f"{nic.processors} needs {wanted!r}"
            )
        for name, least in (("owners", 2), ("channels", 2), ("completion_queues", 1), ("regions", 1)):
            if getattr(nic, name) < least:
                raise ConfigError(f"NicConfig.{name} = {getattr(nic, name)}: at least {least} for VIA")
        if self.config.descriptors == "tailgated" and nic.host_dma_queue_entries < 2:
            raise ConfigError(
                f"NicConfig.host_dma_queue_entries = {nic.host_dma_queue_entries}: at least 2 for "
                "descriptors = 'tailgated', which come in a list with data"
            )
        if self.config.descriptors == "shadow" and not nic.shadow_windows:
            raise ConfigError("NicConfig.shadow_windows = False: descriptors = 'shadow' needs them")
        least = VIA_HEADER_BYTES + max(self.config.immediate_bytes, nic.word_bytes)
        if nic.mtu_bytes < max(least, CONTROL_PACKET_BYTES):
            raise ConfigError(
                f"NicConfig.mtu_bytes = {nic.mtu_bytes}: at least {max(least, CONTROL_PACKET_BYTES)} for VIA with "
                f"immediate_bytes = {self.config.immediate_bytes}"
            )
        if self.bytes > nic.sram_bytes:
            raise ConfigError(
                f"NicConfig.sram_bytes = {nic.sram_bytes}: VIA needs {self.bytes} bytes; fewer channels, data "
                "segments or buffers would fit"
            )

    @cached_property
    def form(self) -> SlotForm:
        """The form of a work queue's slots."""
        return SlotForm.of(self.config)

    @property
    def mailbox(self) -> int:
        """The agent's mailbox: as that of the work queue program (`work_queue.layout.Layout.mailbox`).

        Its first word may also be `SEND_CONTROL_PACKET`.
        """
        return SRAM_BASE

    @property
    def broken(self) -> int:
        """The completion queues that are broken, `BROKEN_WORDS` words; then comes HOST_INTERRUPT."""
        return self.mailbox + MAILBOX_BYTES

    @property
    def control_route(self) -> int:
        """The destination of the agent's packet: low word of its route, then high half and node << 16."""
        return self.broken + WORD_BYTES * BROKEN_WORDS

    @property
    def control_out(self) -> int:
        """The agent's packet to be sent, of `CONTROL_PACKET_BYTES`."""
        return self.control_route + 2 * WORD_BYTES

    @property
    def notices(self) -> int:
        """The ring of notices, three words that the agent writes.

        They are its host address, its entries (a power of two, 0: none yet), and how many notices have been consumed.
        """
        return self.control_out + CONTROL_PACKET_BYTES

    @property
    def notice_out(self) -> int:
        """The notice on its way to the host: a word that stays, then `NOTICE_BYTES`.

        So a packet that stands behind its header is a notice once the words are put before and behind it.
        """
        return self.notices + 4 * WORD_BYTES

    @property
    def probe(self) -> int:
        """A place for bytes that are read to find out whether they may be, at most a word; nobody looks at it."""
        return self.notice_out + WORD_BYTES + NOTICE_BYTES

    @property
    def region_flags(self) -> int:
        """A word a region, of `RegionFlag`, which the agent writes."""
        return self.probe + 3 * WORD_BYTES

    def region_flag(self, region: int) -> int:
        """A region's word."""
        return self.region_flags + WORD_BYTES * region

    def record(self, channel: int) -> int:
        """A VI's record."""
        return self.region_flag(self.nic.regions) + RECORD_BYTES * channel

    def staged(self, channel: int, *, receive: bool) -> int:
        """The place of a queue's next descriptor when it is fetched: a slot."""
        first = -(-self.record(self.nic.channels) // 16) * 16
        return first + self.form.slot_bytes * (2 * channel + receive)

    @cached_property
    def buffer_bytes(self) -> int:
        """A packet buffer, a multiple of 16."""
        return -(-self.nic.packet_bytes // 16) * 16

    @cached_property
    def fragment_bytes(self) -> int:
        """Most bytes of a message in a packet, immediate data included: a multiple of 4."""
        return (self.nic.mtu_bytes - VIA_HEADER_BYTES) // WORD_BYTES * WORD_BYTES

    def send_buffer(self, index: int = 0) -> int:
        """A packet on its way out, `index` below `ViaConfig.send_buffers`."""
        return self.staged(self.nic.channels, receive=False) + self.buffer_bytes * index

    def receive_buffer(self, index: int = 0) -> int:
        """A packet on its way in, `index` below `ViaConfig.receive_buffers`."""
        return self.send_buffer(self.config.send_buffers) + self.buffer_bytes * index

    def window(self, owner: int) -> int:
        """An owner's shadow window, of `window_bytes`."""
        return self.receive_buffer(self.config.receive_buffers) + self.window_bytes * owner

    @property
    def window_bytes(self) -> int:
        """Bytes of an owner's shadow window."""
        return PART_BYTES if self.config.descriptors == "shadow" else 0

    @cached_property
    def bytes(self) -> int:
        """SRAM in use."""
        return self.window(self.nic.owners) - SRAM_BASE
