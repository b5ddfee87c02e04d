"""Layouts that firmware and host library share: places in SRAM, descriptors, commands, events, doorbell words.

The SRAM has, from `SRAM_BASE` on:

- transmit buffers and receive buffers, a longest packet each, header first
- a header for acknowledgements
- staging of one event
- for each port its command slot, send ring and receive ring

All words are 32 bits, little endian.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from functools import cached_property

from lanikai.hdl.config import HEADER_BITS, ConfigError, NicConfig
from lanikai.hdl.nic.ports import SRAM_BASE

from .config import GmConfig

__all__ = [
    "DESCRIPTOR_BYTES",
    "EVENT_BYTES",
    "HEADER_BYTES",
    "NO_TOKEN",
    "OPENING_BYTES",
    "SEND_DESCRIPTOR_BYTES",
    "Command",
    "Counts",
    "Event",
    "EventKind",
    "Layout",
    "Opening",
    "Operation",
    "Purpose",
    "ReceiveDescriptor",
    "SendDescriptor",
    "Status",
]

HEADER_BYTES = HEADER_BITS // 8
DESCRIPTOR_BYTES = 16
SEND_DESCRIPTOR_BYTES = 32
OPENING_BYTES = 16
NO_TOKEN = 255
"""The number that stands where there is no token."""
HAS_OPENING = 1 << 8
"""A flag in the last word of a send descriptor: the words of its opening follow."""
COMMAND_BYTES = 32
EVENT_BYTES = 32
COUNT_BITS = 7
"""Width of a count: a doorbell word has room for three of them in the 21 bits of a queue entry.

Rings have at most 64 entries, so the difference of two counts is never ambiguous.
"""
COUNT_MASK = (1 << COUNT_BITS) - 1


class Status(IntEnum):
    """The end of a command or a message."""

    OK = 0
    CLOSED_PORT = 1
    UNKNOWN_PORT = 2
    TOO_LONG = 3
    UNKNOWN_NODE = 4
    UNREGISTERED = 5
    HOST_BUS = 6
    NO_FLOW = 7
    BAD_COMMAND = 8
    MISALIGNED = 9
    """A host address is not a multiple of 4, which the host DMA engine needs."""
    IN_USE = 10
    """Memory that a message, or a receive token, still uses."""
    TIMED_OUT = 11
    """The other side has no receive token, or gives this flow no answer, for longer than `GmConfig` bounds."""
    ABORTED = 12
    """Its sender has given it up."""
    NODE_DEAD = 13
    """The node is silent towards all for longer than `GmConfig` bounds, was started again, or was declared dead."""
    NOT_EXPOSED = 14
    """The other port has not exposed the memory that is to be written or read."""


class EventKind(IntEnum):
    """The kind of an event."""

    COMMAND = 1
    SENT = 2
    RECEIVED = 3


class Operation(IntEnum):
    """The operation that a command asks for; below each, its arguments."""

    OPEN = 1
    """event ring's host address; a refusal is told in that ring, as its first event"""
    CLOSE = 2
    REGISTER = 3
    """host address, bytes"""
    DEREGISTER = 4
    """host address, bytes"""
    SET_IDT = 5
    """target (as in a send descriptor), ticks; if bytes are charged, the fewest that a packet is charged for"""
    ABORT = 6
    """number of a send token; the answer is OK, too, if its message has ended meanwhile"""
    NODE_DIED = 7
    """node: this port's messages to it fail, and those of it are forgotten"""
    EXPOSE = 8
    """host address, bytes: other ports may write and read there, by address"""
    HIDE = 9
    """host address, bytes: others may do so no longer"""


class Purpose(IntEnum):
    """The purpose of a message with an opening."""

    SIZED = 1
    """It is for a receive token of a size."""
    PUT = 2
    """Its bytes go to exposed memory."""
    GET = 3
    """It has none, and asks for those of exposed memory."""
    GOT = 4
    """Its bytes are those that a GET asked for."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The contents of the first packet of such a message, in place of bytes.

    - `purpose`: its purpose.
    - `size`: size of the receive token.
    - `length`: bytes that are put or got.
    - `address`: host address at the other side.
    - `serial`: serial number of a GET, which its card gives.
    """

    purpose: Purpose
    size: int = 0
    length: int = 0
    address: int = 0
    serial: int = 0

    def words(self) -> tuple[int, int, int, int]:
        """Its four words."""
        return self.purpose | self.size << 8, self.length, self.address, self.serial

    @classmethod
    def unpack(cls, words: list[int]) -> Opening:
        """The opening in its four words. Raises ValueError for a purpose that there is not."""
        return cls(
            purpose=Purpose(words[0] & 255),
            size=words[0] >> 8 & 255,
            length=words[1],
            address=words[2],
            serial=words[3],
        )


@dataclass(frozen=True, kw_only=True)
class SendDescriptor:
    """A message to send.

    It has a host `address` (a multiple of 4), its `length` in bytes, a `token` number, a target, and its `opening`, if
    it has one. A GET has the bytes that it gets at `address`.
    """

    address: int
    length: int
    node: int
    port: int
    priority: int
    token: int
    opening: Opening | None = None

    def words(self) -> tuple[int, ...]:
        """Its four words, and those of its opening."""
        target = pack_target(self.node, self.port, self.priority)
        if self.opening is None:
            return self.address, self.length, target, self.token
        return self.address, self.length, target, self.token | HAS_OPENING, *self.opening.words()

    @classmethod
    def unpack(cls, words: list[int]) -> SendDescriptor:
        """The descriptor in its words. Raises ValueError for an opening that there is not."""
        node, port, priority = unpack_target(words[2])
        return cls(
            address=words[0],
            length=words[1],
            node=node,
            port=port,
            priority=priority,
            token=words[3] & 255,
            opening=Opening.unpack(words[4:]) if words[3] & HAS_OPENING else None,
        )


@dataclass(frozen=True, kw_only=True)
class ReceiveDescriptor:
    """A buffer to receive a message.

    It has a host `address` (a multiple of 4), its `length` in bytes, a `priority` and a `token` number. `size` is that
    of the messages for which it is, 0 for those without one.
    """

    address: int
    length: int
    priority: int
    token: int
    size: int = 0

    def words(self) -> tuple[int, ...]:
        """Its four words."""
        return self.address, self.length, self.priority | self.size << 8, self.token

    @classmethod
    def unpack(cls, words: list[int]) -> ReceiveDescriptor:
        """The descriptor in its four words."""
        return cls(
            address=words[0],
            length=words[1],
            priority=words[2] & 1,
            token=words[3],
            size=words[2] >> 8 & 255,
        )


@dataclass(frozen=True, kw_only=True)
class Command:
    """A rare request of a port to its firmware, one at a time a port; an `EventKind.COMMAND` event answers.

    It has an `operation` (`Operation`) and two arguments, and a third where bytes are charged (`GmConfig.charge`).
    """

    operation: int
    first: int = 0
    second: int = 0
    third: int = 0

    def words(self) -> tuple[int, ...]:
        """Its four words, of which `Layout.command_words` are exchanged."""
        return astuple(self)

    @classmethod
    def unpack(cls, words: list[int]) -> Command:
        """The command in its words; an argument that is not there is 0."""
        return cls(operation=words[0], **dict(zip(("first", "second", "third"), words[1:], strict=False)))


@dataclass(frozen=True, kw_only=True)
class Event:
    """An entry of a port's event ring in host memory, 8 words.

    `count`, from 1, is in the last word, which is written last. An entry is new when it holds the count that the reader
    expects there next.

    An event has a `kind`, a `status` and a `token` number. For a received message it has the `length` in bytes, the
    `node` and `port` from which it came, and the `priority`.
    """

    kind: EventKind
    status: Status = Status.OK
    token: int = 0
    length: int = 0
    node: int = 0
    port: int = 0
    priority: int = 0

    def words(self, count: int) -> dict[int, int]:
        """Words by index, only those that mean something."""
        head = self.kind | self.status << 8
        target = pack_target(self.node, self.port, self.priority)
        return {0: head, 1: self.token, 2: self.length, 3: target, 7: count & 0xFFFFFFFF}

    def failed(self, status: Status) -> Event:
        """The same event with another end."""
        return replace(self, status=status)

    @classmethod
    def unpack(cls, words: list[int]) -> Event:
        """The event in an entry's words."""
        node, port, priority = unpack_target(words[3])
        return cls(
            kind=EventKind(words[0] & 255),
            status=Status(words[0] >> 8 & 255),
            token=words[1],
            length=words[2],
            node=node,
            port=port,
            priority=priority,
        )


@dataclass(kw_only=True)
class Counts:
    """The numbers of send descriptors, receive descriptors and commands that a port has posted, or its firmware taken.

    A doorbell word holds all three, modulo 128: a later word says everything that an overwritten one said.
    """

    sends: int = 0
    receives: int = 0
    commands: int = 0

    def word(self) -> int:
        """The doorbell word, 21 bits."""
        parts = (self.sends, self.receives, self.commands)
        return sum((count & COUNT_MASK) << COUNT_BITS * place for place, count in enumerate(parts))

    def new(self, word: int) -> Counts:
        """The counts that a doorbell word announces beyond these."""
        parts = [word >> COUNT_BITS * place & COUNT_MASK for place in range(3)]
        taken = (self.sends, self.receives, self.commands)
        sends, receives, commands = (
            (part - old) & COUNT_MASK for part, old in zip(parts, taken, strict=True)
        )
        return Counts(sends=sends, receives=receives, commands=commands)


def pack_target(node: int, port: int, priority: int) -> int:
    """A node's sub-port in a word: node 16, port 8, priority 8."""
    return node | port << 16 | priority << 24


def unpack_target(word: int) -> tuple[int, int, int]:
    """Node, port, priority of such a word."""
    return word & 0xFFFF, word >> 16 & 0xFF, word >> 24 & 1


@dataclass(frozen=True)
class Layout:
    """Byte addresses in SRAM, as processor and host see them. Raises ConfigError if the card is too small."""

    nic: NicConfig
    gm: GmConfig

    def __post_init__(self) -> None:
        if self.gm.ports > self.nic.channels:
            raise ConfigError(
                f"GmConfig.ports = {self.gm.ports}: a port is a doorbell channel, the card has "
                f"{self.nic.channels}"
            )
        if self.nic.owners:
            raise ConfigError(
                f"NicConfig.owners = {self.nic.owners}: GM has a doorbell page a port, and none an owner; 0 for GM"
            )
        if self.gm.charge == "bytes" and self.nic.rate_charge != "bytes":
            raise ConfigError(
                "GmConfig.charge = 'bytes': the card's rate control unit charges packets; it needs "
                "NicConfig.rate_charge = 'bytes'"
            )
        if self.bytes > self.nic.sram_bytes:
            raise ConfigError(
                f"NicConfig.sram_bytes = {self.nic.sram_bytes}: GM needs {self.bytes} bytes; fewer tokens, "
                "ports or buffers, or a shorter mtu_bytes, would fit"
            )

    @cached_property
    def command_words(self) -> int:
        """Words of a command that host and firmware exchange."""
        return 4 if self.gm.charge == "bytes" else 3

    @cached_property
    def buffer_bytes(self) -> int:
        """A packet buffer, a multiple of 16."""
        return -(-self.nic.packet_bytes // 16) * 16

    @cached_property
    def transmit_buffers(self) -> list[int]:
        """Addresses of the transmit buffers."""
        return [SRAM_BASE + i * self.buffer_bytes for i in range(self.gm.transmit_buffers)]

    @cached_property
    def receive_buffers(self) -> list[int]:
        """Addresses of the receive buffers."""
        start = SRAM_BASE + self.gm.transmit_buffers * self.buffer_bytes
        return [start + i * self.buffer_bytes for i in range(self.gm.receive_buffers)]

    @cached_property
    def acknowledgement(self) -> int:
        """The header in which acknowledgements are built."""
        return SRAM_BASE + (self.gm.transmit_buffers + self.gm.receive_buffers) * self.buffer_bytes

    @cached_property
    def event(self) -> int:
        """Staging of the event on its way to host memory."""
        return self.acknowledgement + HEADER_BYTES

    @cached_property
    def port_bytes(self) -> int:
        """SRAM of a port."""
        sends, receives = self.gm.send_tokens, self.gm.receive_tokens
        return COMMAND_BYTES + SEND_DESCRIPTOR_BYTES * sends + DESCRIPTOR_BYTES * receives

    @cached_property
    def bytes(self) -> int:
        """SRAM in use."""
        return self.event + EVENT_BYTES - SRAM_BASE + self.gm.ports * self.port_bytes

    def command(self, port: int) -> int:
        """A port's command slot."""
        return self.event + EVENT_BYTES + port * self.port_bytes

    def send_descriptor(self, port: int, count: int) -> int:
        """The slot of a port's `count`-th send descriptor, from 0."""
        return self.command(port) + COMMAND_BYTES + count % self.gm.send_tokens * SEND_DESCRIPTOR_BYTES

    def receive_descriptor(self, port: int, count: int) -> int:
        """The slot of a port's `count`-th receive descriptor, from 0."""
        ring = self.command(port) + COMMAND_BYTES + self.gm.send_tokens * SEND_DESCRIPTOR_BYTES
        return ring + count % self.gm.receive_tokens * DESCRIPTOR_BYTES
