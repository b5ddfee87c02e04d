"""The channel tables: a row for each card, and in it an entry for each channel, to send and to receive.

A channel carries one packet at a time, stop and wait (chun-1998 4.2.1, figure 4). Channels of requests come first, then
those of replies. Numbers of a channel count within an *epoch*: as long as neither of the two cards is started again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from .config import VirtualNetworkConfig
from .messages import Message
from .waiting import Waiting
from .wire import SEQUENCE_MODULUS, UNKNOWN_INCARNATION, Reason

__all__ = ["FIRST_SEQUENCE", "Group", "Mode", "ReceiveChannel", "Row", "SendChannel"]

FIRST_SEQUENCE = SEQUENCE_MODULUS - 8
"""The first number of a channel in an epoch: shortly before the wrap, so that every run goes across it."""


class Mode(Enum):
    """The packet that a send channel has under way."""

    IDLE = "idle"
    """None."""
    SYNC = "sync"
    """A VOID with a number whose fate is not known; the message goes with the next one."""
    DATA = "data"
    """The message."""
    VOID = "void"
    """A VOID in the place of the message, which is to give the channel up; or of one that is abandoned."""


class Leave(Enum):
    """The reason why a message gives its channel up."""

    TURN = "turn"
    """Another one waits; it waits again."""
    QUIET = "quiet"
    """Its endpoint is to be quiet; it is withdrawn."""


@dataclass(eq=False)
class SendChannel:
    """An entry of the send table.

    - `sequence`: the number of the packet that is, or next will be, under way.
    - `known`: no packet with this number has been sent before the one under way.
    - `message`: the one that has the channel; with Mode.VOID it may be None.
    - `sent`: a packet with the message has been sent in this epoch.
    - `waits`: a packet is sent and not answered for good.
    - `tries`: packets sent since the last answer.
    - `stamp`: time of the last one.
    - `refusal`: the answer to the last one, if it was a refusal.
    - `welcome`: since then its endpoint has come into a frame. So a refusal as absent is of the past.
    - `age`: scans since the last one was sent.
    - `due`: it is in the queue of packets to be sent.
    """

    group: Group
    column: int
    sequence: int = FIRST_SEQUENCE
    known: bool = False
    mode: Mode = Mode.IDLE
    message: Message | None = None
    leave: Leave = Leave.TURN
    sent: bool = False
    waits: bool = False
    tries: int = 0
    stamp: int = 0
    refusal: Reason | None = None
    welcome: bool = False
    age: int = 0
    due: bool = False

    def begin(self, mode: Mode) -> None:
        """A packet of another kind than before is to be sent."""
        self.mode, self.tries, self.refusal, self.age, self.welcome = mode, 0, None, 0, False

    def advance(self) -> None:
        """The number's fate is known: the next one is new."""
        self.sequence, self.known = (self.sequence + 1) % SEQUENCE_MODULUS, True

    def end(self) -> Message | None:
        """The channel is free again; returns the message that had it."""
        message, self.message = self.message, None
        self.begin(Mode.IDLE)
        self.sent = False
        return message


@dataclass(eq=False)
class ReceiveChannel:
    """An entry of the receive table.

    - `last`: the number that was taken last.
    - `fate`: its fate.
    - `open`: the number after it has come, and the firmware has not answered yet.
    """

    column: int
    last: int = FIRST_SEQUENCE - 1
    fate: Reason = Reason.VOID
    open: bool = False


@dataclass(eq=False)
class Group:
    """The channels to a card that carry requests, or those that carry replies; and the messages that wait for one."""

    row: Row
    reply: bool
    channels: list[SendChannel] = field(default_factory=list)
    waiting: Waiting = field(init=False)

    def free(self) -> SendChannel | None:
        """A channel that is free, one whose number's fate is known if there is one; None if all are taken."""
        free = [channel for channel in self.channels if channel.mode is Mode.IDLE]
        return next((channel for channel in free if channel.known), free[0] if free else None)

    def to_make_way(self) -> SendChannel | None:
        """A channel whose message should give it up, as its endpoint is absent and others wait; one at a time.

        None if there is no reason, or none to be had.
        """
        if not self.waiting.absent or not self.waiting.pressing:
            return None
        absent = None
        for channel in self.channels:
            if channel.mode is Mode.VOID and channel.leave is Leave.TURN:
                return None
            refused = channel.mode is Mode.DATA and channel.refusal is Reason.NOT_RESIDENT
            if refused and not channel.due and (absent is None or channel.age > absent.age):
                absent = channel
        return absent


class Row:
    """A card's row in both tables.

    - `peer`: its incarnation, as far as it is known.
    - `unacknowledged`: packets sent to it that wait for an answer (4.3).
    - `tries`: tries since it has answered anything, one at most counted between two scans; the last of them after the
      scan `tried`.
    - `down`: it has answered nothing for so many tries that it is given up, until it answers again.
    """

    def __init__(self, node: int, config: VirtualNetworkConfig) -> None:
        self.node, self._columns = node, config.columns
        self.peer = UNKNOWN_INCARNATION
        self.unacknowledged = 0
        self.tries, self.tried, self.down = 0, -1, False
        self.groups = (Group(self, False), Group(self, True))
        columns = iter(range(config.columns))
        for group, count in zip(self.groups, (config.request_channels, config.reply_channels), strict=True):
            group.channels = [SendChannel(group, next(columns)) for _ in range(count)]
            group.waiting = Waiting(count)
        self.send = [channel for group in self.groups for channel in group.channels]
        self.receive = [ReceiveChannel(column) for column in range(config.columns)]

    @property
    def scanned(self) -> bool:
        """Whether a scan looks at it: a packet waits for its answer, or a message for its endpoint to come."""
        return bool(self.unacknowledged or any(group.waiting.absent for group in self.groups))

    def answers(self) -> None:
        """The card has answered something."""
        self.tries, self.tried, self.down = 0, -1, False

    def state(self) -> list[str]:
        """A line for each channel with a message, and each group of channels for which messages wait."""
        lines = []
        for channel in self.send:
            if channel.mode is not Mode.IDLE:
                said = f", refused: {channel.refusal.name}" if channel.refusal is not None else ""
                lines.append(
                    f"channel {channel.column} to node {self.node}: {channel.mode.value} {channel.sequence}, "
                    f"{channel.tries} tries{said}"
                )
        for group in self.groups:
            if len(group.waiting):
                what = "replies" if group.reply else "requests"
                lines.append(f"node {self.node}: {len(group.waiting)} {what} wait for a channel")
        return lines

    def begin(self, peer: int) -> None:
        """A new epoch: all numbers begin anew. The transport ends what was under way."""
        self.answers()
        self.peer = peer
        self.receive = [ReceiveChannel(column) for column in range(self._columns)]
        for channel in self.send:
            channel.sequence, channel.known = FIRST_SEQUENCE, True
