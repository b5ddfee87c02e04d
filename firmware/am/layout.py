"""Places of virtual networks: in an endpoint's page, in its staging areas, in the SRAM."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from lanikai.hdl.config import HEADER_BITS, ConfigError, NicConfig
from lanikai.hdl.nic.ports import SRAM_BASE

from .config import MOST_DATA_BYTES, VirtualNetworkConfig
from .places import NOTE_BYTES
from .wire import AM_HEADER_BYTES, ANSWER_BYTES, MOST_WORDS
from .words import COMMAND_WORDS, ENTRY_BYTES, NOTICE_WORDS, RECORD_BYTES

__all__ = [
    "DRIVER_CHANNEL",
    "HEADER_BYTES",
    "PAGE_HEADER_BYTES",
    "AmLayout",
    "PageWord",
    "Queue",
]

HEADER_BYTES = HEADER_BITS // 8
"""Bytes of a packet's header."""
DRIVER_CHANNEL = 0
"""The driver's doorbell channel: its word says that there is a command in the mailbox."""
PAGE_HEADER_BYTES = 64
"""Bytes of the words at the head of a page, before its queues."""
MOST_RAW_BYTES = 512
"""Most bytes of a raw packet, without its header."""
SEND_ROW_BYTES, SEND_ENTRY_BYTES, RECEIVE_ENTRY_BYTES = 16, 16, 4
"""SRAM of a row and of its entries in the channel tables (chun-1998 4.2.1, figure 4), bytes.

- A row: route 6, incarnation 2, packets without an acknowledgement 1, next column 1, rest spare.
- An entry to send: message 4, time stamp 4, number 2, tries 1, state 1, last answer's reason 1, rest spare.
- An entry to receive: number 2, its fate 1, state 1.
"""


class Queue(IntEnum):
    """The queues of an endpoint, in the order in which they stand in its page."""

    SEND_REQUEST = 0
    SEND_REPLY = 1
    RECEIVE_REQUEST = 2
    RECEIVE_REPLY = 3


class PageWord(IntEnum):
    """Words at the head of a page, by number. The last ten are the process' own."""

    DELIVERED = 0
    """Written by the firmware: requests | replies << 16 put into the receive queues, modulo 2^16; after their entry."""
    TAKEN = 1
    """Written by the firmware: request sends | reply sends << 16 whose entries are free again, in order."""
    EVENT_MASK = 2
    """Written by the process: bit 0: a notice when a receive queue is no longer empty."""
    REQUESTS_POSTED = 3
    """The process' count of requests posted; firmware does not read it."""
    REPLIES_POSTED = 4
    REQUESTS_CONSUMED = 5
    REPLIES_CONSUMED = 6


@dataclass(frozen=True)
class AmLayout:
    """Byte addresses and sizes. Those in the SRAM are as processor and host see them.

    Raises ConfigError for a card that lacks something, or is too small.
    """

    nic: NicConfig
    config: VirtualNetworkConfig

    def __post_init__(self) -> None:
        nic, config = self.nic, self.config
        if nic.owners:
            raise ConfigError(
                f"NicConfig.owners = {nic.owners}: virtual networks have a doorbell page a frame; 0 for them"
            )
        if nic.doorbell != "polled":
            raise ConfigError(
                f"NicConfig.doorbell = {nic.doorbell!r}: virtual networks need 'polled', whose words have 31 bits"
            )
        if config.frames >= nic.channels:
            raise ConfigError(
                f"VirtualNetworkConfig.frames = {config.frames}: the card has {nic.channels} channels, one of them "
                f"the driver's; at most {nic.channels - 1}"
            )
        if self.queue_end > config.page_bytes:
            raise ConfigError(
                f"VirtualNetworkConfig.page_bytes = {config.page_bytes}: four queues of queue_entries = "
                f"{config.queue_entries} need {self.queue_end}"
            )
        if self.data_bytes < 8:
            raise ConfigError(
                f"NicConfig.mtu_bytes = {nic.mtu_bytes}: at least {AM_HEADER_BYTES + 4 * MOST_WORDS + 8}: the words of "
                "a message and some data"
            )
        if self.bytes > nic.sram_bytes:
            raise ConfigError(
                f"NicConfig.sram_bytes = {nic.sram_bytes}: virtual networks need {self.bytes} bytes; fewer frames, "
                "nodes_max or buffers, or a smaller page_bytes, would fit"
            )

    # Of a page and its staging areas.

    @property
    def queue_end(self) -> int:
        """Bytes of a page that are in use."""
        return PAGE_HEADER_BYTES + len(Queue) * self.config.queue_entries * ENTRY_BYTES

    def entry(self, queue: Queue, count: int) -> int:
        """Offset in the page of a queue's `count`-th entry, from 0."""
        entries = self.config.queue_entries
        return PAGE_HEADER_BYTES + (queue * entries + count % entries) * ENTRY_BYTES

    @cached_property
    def data_bytes(self) -> int:
        """Most bytes of a message's data: what a packet has room for behind all words, a multiple of 8."""
        return min(MOST_DATA_BYTES, (self.nic.mtu_bytes - AM_HEADER_BYTES - 4 * MOST_WORDS) // 8 * 8)

    @property
    def slot_bytes(self) -> int:
        """Bytes of a staging slot, one for each entry."""
        return self.data_bytes

    @property
    def staging_bytes(self) -> int:
        """Bytes of a staging area: slots of the requests, then of the replies. An endpoint has two, to send and to
        receive.
        """
        return 2 * self.config.queue_entries * self.slot_bytes

    def slot(self, *, reply: bool, count: int) -> int:
        """Number of the slot in its area that goes with the `count`-th entry of a queue, from 0."""
        entries = self.config.queue_entries
        return reply * entries + count % entries

    def slot_offset(self, slot: int) -> int:
        """Offset of a slot in its area."""
        return slot * self.slot_bytes

    # In the SRAM.

    @property
    def mailbox(self) -> int:
        """The driver's command, `COMMAND_WORDS` words."""
        return SRAM_BASE

    @property
    def answer(self) -> int:
        """The answer to a command on its way to the host: status, number."""
        return self.mailbox + 4 * COMMAND_WORDS

    @cached_property
    def raw_bytes(self) -> int:
        """Most bytes of a raw packet, without its header."""
        return min(MOST_RAW_BYTES, self.nic.mtu_bytes // 8 * 8)

    @property
    def raw_out(self) -> int:
        """The driver's raw packet: room for a header, which the firmware writes, then `raw_bytes`."""
        return self.answer + 16

    @cached_property
    def notice_bytes(self) -> int:
        """Bytes of a slot of the ring of notices: words, packet, and the running number as its last word."""
        return -(-(4 * NOTICE_WORDS + self.raw_bytes + 8) // 64) * 64

    @property
    def notice_number(self) -> int:
        """Offset in a slot of the ring of its running number, 32 bits. It is new when it is the number expected."""
        return self.notice_bytes - 4

    @property
    def notice_ring_bytes(self) -> int:
        """Bytes of the ring of notices in host memory."""
        return self.notice_bytes * self.config.notice_entries

    @property
    def notice_out(self) -> int:
        """The notice on its way to the host, `notice_bytes`."""
        return self.raw_out + HEADER_BYTES + self.raw_bytes

    @property
    def answer_out(self) -> int:
        """The ACK or NACK on its way out."""
        return self.notice_out + self.notice_bytes

    @cached_property
    def buffer_bytes(self) -> int:
        """A packet buffer, a multiple of 16."""
        return -(-self.nic.packet_bytes // 16) * 16

    def send_buffer(self, index: int = 0) -> int:
        """A packet on its way out, `index` below `send_buffers`."""
        first = -(-(self.answer_out + HEADER_BYTES + ANSWER_BYTES) // 16) * 16
        return first + self.buffer_bytes * index

    def receive_buffer(self, index: int = 0) -> int:
        """A packet on its way in, `index` below `receive_buffers`."""
        return self.send_buffer(self.config.send_buffers) + self.buffer_bytes * index

    def record(self, frame: int) -> int:
        """The record of the endpoint in a frame (from 1)."""
        return self.receive_buffer(self.config.receive_buffers) + RECORD_BYTES * (frame - 1)

    @property
    def channel_tables(self) -> int:
        """The send and receive channel tables, and the routes: `channel_table_bytes`."""
        return self.record(self.config.frames + 1)

    @property
    def channel_table_bytes(self) -> int:
        """Bytes of both tables: a row for each node."""
        row = SEND_ROW_BYTES + self.config.columns * (SEND_ENTRY_BYTES + RECEIVE_ENTRY_BYTES)
        return self.config.nodes_max * row

    @property
    def places(self) -> int:
        """Most flows that `Places` notes."""
        return 4 * self.config.nodes_max

    @cached_property
    def frames_start(self) -> int:
        """The first frame, at a multiple of 1024. The notes of `Places` are before it."""
        return -(-(self.channel_tables + self.channel_table_bytes + NOTE_BYTES * self.places) // 1024) * 1024

    def frame(self, frame: int) -> int:
        """A frame, from 1: the page of the endpoint that is resident in it."""
        return self.frames_start + self.config.page_bytes * (frame - 1)

    @cached_property
    def bytes(self) -> int:
        """SRAM in use."""
        return self.frame(self.config.frames + 1) - SRAM_BASE

    @cached_property
    def scan_ticks(self) -> int:
        """RTC ticks between two scans, 1 at least."""
        return max(1, round(self.config.scan_us / (float(self.nic.tick_seconds) * 1e6)))
