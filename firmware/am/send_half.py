"""The sending half of the transport protocol: the send channel table, what is due, and what has ended."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import NamedTuple

from lanikai.hdl.packet import Header, Kind

from .channels import Group, Leave, Mode, Row, SendChannel
from .config import VirtualNetworkConfig
from .messages import Ending, Message, Outcome, Packet
from .wire import (
    STAMP_MODULUS,
    UNKNOWN_INCARNATION,
    AmHeader,
    Reason,
    pack_channel,
    unpack_channel,
)

__all__ = ["Scanned", "SendHalf"]


class Scanned(NamedTuple):
    """The work of a scan, for its cost: rows looked at, and channels with a packet that waits for its answer."""

    rows: int
    channels: int


class SendHalf:
    """The channels from one card to all others. `transport.Transport` is the whole.

    - `node`: the card's number.
    - `incarnation`: how often the card was started, 1 to 65,535 (`wire.next_incarnation`); its driver counts.
    - `drops`: packets thrown away, by reason: stale, malformed, copy.
    """

    def __init__(self, config: VirtualNetworkConfig, *, node: int, incarnation: int = 1) -> None:
        if incarnation == UNKNOWN_INCARNATION:
            raise ValueError(f"incarnation = {UNKNOWN_INCARNATION}: counts from 1")
        self.config, self.node, self.incarnation = config, node, incarnation
        self.drops: Counter[str] = Counter()
        self._rows: dict[int, Row] = {}
        self._due: deque[SendChannel] = deque()
        self._outcomes: deque[Outcome] = deque()
        self._open: Counter[int] = Counter()
        self._leaving: set[int] = set()
        self._scans = 0

    # State.

    @property
    def pending(self) -> int:
        """Messages that were offered and have not ended, and outcomes that nobody has taken."""
        return self._open.total() + len(self._outcomes)

    @property
    def unacknowledged(self) -> int:
        """Packets that wait for an answer, to all cards."""
        return sum(row.unacknowledged for row in self._rows.values())

    @property
    def scans(self) -> bool:
        """Whether scans are needed: while it is false and `ready` is, too, there is nothing to look for."""
        return any(row.scanned for row in self._rows.values())

    @property
    def ready(self) -> bool:
        """Whether `next_packet` may have a packet."""
        return bool(self._due)

    def open(self, endpoint: int) -> int:
        """Messages of an endpoint that were offered and have not ended."""
        return self._open[endpoint]

    def state(self) -> list[str]:
        """A line for each channel with a message, and each group of channels for which messages wait."""
        return [line for _, row in sorted(self._rows.items()) for line in row.state()]

    # Sending.

    def offer(self, message: Message) -> bool:
        """A message is to be sent. Returns whether it has a channel at once; else it waits for one, in turn.

        Its endpoint must not be leaving (`quiesce`), and the node must be one of `nodes_max`. Raises ValueError.
        """
        source = message.header.source_endpoint
        if source in self._leaving:
            raise ValueError(f"endpoint {source}: it is to be quiet, and sends nothing")
        row = self._row(message.node)
        if row is None:
            raise ValueError(f"node {message.node}: 0 to {self.config.nodes_max - 1}")
        if row.tries > self.config.tries and not row.down:
            self._give_up_row(row)
        self._open[source] += 1
        group = row.groups[message.header.reply]
        group.waiting.put(message)
        self._fill(group)
        return any(channel.message is message for channel in group.channels)

    def next_packet(self, now: int) -> Packet | None:
        """The next packet of the channels, sent at RTC tick `now`; None if there is nothing to be sent."""
        while self._due:
            channel = self._due.popleft()
            channel.due = False
            if channel.mode is not Mode.IDLE:
                return self._packet(channel, now)
        return None

    def sent(self, packet: Packet) -> None:
        """A packet of `next_packet` has left, and its data have been read.

        Without reliability its message has ended.
        """
        message = packet.message
        if self.config.reliability or message is None:
            return
        row = self._rows[message.node]
        channel = row.send[unpack_channel(packet.header.bandwidth)[0]]
        channel.advance()
        self._free(channel, Ending.DELIVERED)

    def _packet(self, channel: SendChannel, now: int) -> Packet:
        row = channel.group.row
        if row.tried != self._scans:
            row.tried = self._scans
            row.tries += 1
        # A stamp names a try, so no two tries with a number have the same.
        late = not channel.waits or 0 < (now - channel.stamp) % STAMP_MODULUS < STAMP_MODULUS // 2
        channel.stamp = (now if late else channel.stamp + 1) % STAMP_MODULUS
        channel.tries += 1
        channel.refusal, channel.age, channel.welcome = None, 0, False
        if not channel.waits and self.config.reliability:
            channel.waits = True
            row.unacknowledged += 1
        tried = AmHeader(stamp=channel.stamp, incarnation=self.incarnation, expected=row.peer)
        message = channel.message if channel.mode is Mode.DATA else None
        words: tuple[int, ...]
        if message is None:
            words = tried.pack()
        else:
            channel.sent = True
            front = replace(
                message.header, stamp=tried.stamp, incarnation=tried.incarnation, expected=tried.expected
            )
            words = (*front.pack(), *message.words)
        data = 0 if message is None else message.header.bytes
        header = Header(
            kind=Kind.DATA,
            destination=row.node,
            source=self.node,
            flow=0 if message is None else message.endpoint,
            bandwidth=pack_channel(channel.column, void=message is None),
            sequence=channel.sequence,
            length=4 * len(words) + data,
        )
        return Packet(header=header, words=words, message=message)

    def _restart(self, row: Row, incarnation: int) -> None:
        """A card was started again: numbers begin anew. A message of which it may have had a packet comes back."""
        row.begin(incarnation)
        for channel in row.send:
            if channel.mode is Mode.IDLE:
                continue
            if channel.message is None or channel.sent:
                self._free(channel, Ending.RETURNED, Reason.RESTARTED, fill=False)
            else:
                self._unwait(channel)
                self._begin(channel, Mode.DATA)
        for group in row.groups:
            self._fill(group)

    def _settled(self, channel: SendChannel, fate: Reason) -> None:
        """The fate of a channel's number is known."""
        mode = channel.mode
        channel.advance()
        self._unwait(channel)
        if mode is Mode.SYNC:
            self._begin(channel, Mode.DATA)
        elif mode is not Mode.IDLE:
            if fate is Reason.DELIVERED:
                self._free(channel, Ending.DELIVERED)
            elif fate is not Reason.VOID:
                self._free(channel, Ending.RETURNED, fate)
            elif channel.leave is Leave.QUIET:
                self._free(channel, Ending.WITHDRAWN, fate)
            else:
                self._turn(channel)

    def _refused(self, channel: SendChannel, stamp: int, reason: Reason) -> None:
        """A try was refused: it is noted, the scan does the rest (4.4.4). That of an earlier try is not noted."""
        message = channel.message
        if channel.mode is not Mode.DATA or message is None or stamp != channel.stamp:
            return
        channel.refusal, waiting = reason, channel.group.waiting
        absent = reason is Reason.NOT_RESIDENT and not channel.welcome
        waiting.refuse(message, absent=absent)
        if message.header.source_endpoint in self._leaving:
            self._void(channel, Leave.QUIET)
        elif absent and waiting.wanted(message):
            self._void(channel, Leave.TURN)
        elif reason is Reason.NOT_RESIDENT and not absent:
            self._enqueue(channel)

    def _invited(self, row: Row, endpoint: int) -> None:
        """An endpoint of a card is there now, or is no more: its messages that were refused go at once.

        That may overtake a refusal.
        """
        for group in row.groups:
            group.waiting.come(endpoint)
            for channel in group.channels:
                if channel.mode is Mode.DATA and channel.message and channel.message.endpoint == endpoint:
                    channel.tries, channel.welcome = 0, True
                    if channel.refusal is Reason.NOT_RESIDENT:
                        self._enqueue(channel)
            self._fill(group)

    # Channels.

    def _row(self, node: int) -> Row | None:
        if not 0 <= node < self.config.nodes_max:
            return None
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = Row(node, self.config)
        return row

    def _fill(self, group: Group) -> None:
        """Give free channels to messages that wait."""
        while (channel := group.free()) is not None and (message := group.waiting.take()) is not None:
            channel.message, channel.leave = message, Leave.TURN
            channel.known = channel.known and not group.row.down
            self._begin(channel, Mode.DATA if channel.known or not self.config.reliability else Mode.SYNC)
        if (channel := group.to_make_way()) is not None:
            self._void(channel, Leave.TURN)

    def _begin(self, channel: SendChannel, mode: Mode) -> None:
        channel.begin(mode)
        self._enqueue(channel)

    def _enqueue(self, channel: SendChannel) -> None:
        if not channel.due:
            channel.due = True
            self._due.append(channel)

    def _void(self, channel: SendChannel, leave: Leave) -> None:
        channel.leave = leave
        self._begin(channel, Mode.VOID)

    def _unwait(self, channel: SendChannel) -> None:
        if channel.waits:
            channel.waits = False
            channel.group.row.unacknowledged -= 1

    def _turn(self, channel: SendChannel) -> None:
        """A message gives its channel up, and waits again."""
        self._unwait(channel)
        message = channel.end()
        if message is not None:
            channel.group.waiting.release(message, again=True)
        self._fill(channel.group)

    def _free(
        self,
        channel: SendChannel,
        ending: Ending,
        reason: Reason = Reason.DELIVERED,
        *,
        fill: bool = True,
    ) -> None:
        """A message has ended; its channel is free."""
        self._unwait(channel)
        message = channel.end()
        if message is not None:
            channel.group.waiting.release(message)
            self._end(message, ending, reason)
        if fill:
            self._fill(channel.group)

    def _end(self, message: Message, ending: Ending, reason: Reason) -> None:
        source = message.header.source_endpoint
        self._open[source] -= 1
        if not self._open[source]:
            del self._open[source]
        self._outcomes.append(Outcome(message=message, ending=ending, reason=reason))

    def next_outcome(self) -> Outcome | None:
        """A message that has ended; None if there is none more."""
        return self._outcomes.popleft() if self._outcomes else None

    # Time.

    def scan(self) -> Scanned:
        """Look at all channels that wait for an answer (4.3). Packets to be sent again are due then.

        A packet is sent again if it was refused, or if `silence_scans` have been since it was sent, without an answer.
        One that was refused as NOT_RESIDENT waits for `absent_scans` instead, or until it is told to come.
        After `tries` its message comes back. If the card has not answered anything else meanwhile, all others to it
        come back, too, and later ones after a single try, until it answers.
        """
        self._scans += 1
        looked = channels = 0
        for row in list(self._rows.values()):
            if not row.scanned:
                continue
            looked += 1
            for group in row.groups:
                if group.waiting.absent:
                    group.waiting.age(self.config.absent_scans)
                    self._fill(group)
            if row.tries > self.config.tries and not row.down:
                self._give_up_row(row)
            for channel in row.send:
                if channel.waits and not channel.due:
                    channels += 1
                    self._look(channel)
        return Scanned(looked, channels)

    def _look(self, channel: SendChannel) -> None:
        message = channel.message
        leaving = message is not None and message.header.source_endpoint in self._leaving
        if channel.age < self._patience(channel, leaving):
            channel.age += 1
            return
        row = channel.group.row
        if row.down or channel.tries >= self.config.tries:
            if row.down or row.tries >= self.config.tries:
                self._give_up_row(row)
            else:
                self._give_up(channel)
        elif channel.mode is Mode.DATA and message is not None:
            if leaving:
                self._void(channel, Leave.QUIET)
            elif channel.refusal is not None and channel.group.waiting.wanted(message):
                self._void(channel, Leave.TURN)
            else:
                self._enqueue(channel)
        else:
            self._enqueue(channel)

    def _patience(self, channel: SendChannel, leaving: bool) -> int:
        """Scans that a packet lets go by before the one that sends it again, or has its message give way."""
        if channel.refusal is None:
            return 1 if leaving else self.config.silence_scans
        message, absent = channel.message, channel.refusal is Reason.NOT_RESIDENT
        stays = absent and message is not None and not channel.group.waiting.wanted(message)
        return self.config.absent_scans - 1 if stays else 0

    def _give_up(self, channel: SendChannel) -> None:
        """A packet has had all its tries."""
        channel.known = False
        self._free(channel, Ending.RETURNED, Reason.UNREACHABLE)

    def _give_up_row(self, row: Row) -> None:
        """A card has not answered any of so many tries: all messages to it come back, but those just begun if it was
        down before.
        """
        again, row.down = row.down, True
        for group in row.groups:
            for message in group.waiting.clear():
                self._end(message, Ending.RETURNED, Reason.UNREACHABLE)
        for channel in row.send:
            if channel.mode is not Mode.IDLE and not (again and not channel.age):
                self._give_up(channel)

    # Endpoints.

    def quiesce(self, endpoint: int) -> None:
        """An endpoint is to be quiet: nothing more of it is sent, and each of its messages gets its outcome.

        - Those of which no packet was sent are withdrawn at once; if their card is down they come back.
        - Those whose last try was refused are withdrawn as soon as the other card says that it takes no copy.
        - The others wait for their answers, until the next scan but one; then they are as those that were refused.
        """
        self._leaving.add(endpoint)
        for row in list(self._rows.values()):
            ending = Ending.RETURNED if row.down else Ending.WITHDRAWN
            reason = Reason.UNREACHABLE if row.down else Reason.VOID
            for group in row.groups:
                for message in group.waiting.remove(endpoint):
                    self._end(message, ending, reason)
                for channel in group.channels:
                    message_there = channel.message
                    if message_there is None or message_there.header.source_endpoint != endpoint:
                        continue
                    if not channel.sent:
                        self._free(channel, ending, reason)
                    elif channel.mode is Mode.VOID:
                        channel.leave = Leave.QUIET
                    elif channel.refusal is not None:
                        self._void(channel, Leave.QUIET)

    def quiet(self, endpoint: int) -> bool:
        """Whether all messages of an endpoint have ended, each with its outcome taken or to be taken."""
        return not self._open[endpoint]

    def resume(self, endpoint: int) -> None:
        """An endpoint that was quiet may send again. Raises ValueError if it is not quiet."""
        if not self.quiet(endpoint):
            raise ValueError(f"endpoint {endpoint}: {self._open[endpoint]} of its messages have not ended")
        self._leaving.discard(endpoint)

    def abandon(self, endpoint: int) -> None:
        """The process of an endpoint has died: its messages are forgotten at once, and have no outcome.

        Its channels are free when the other cards say that they take no copy.
        """
        for row in list(self._rows.values()):
            for group in row.groups:
                group.waiting.remove(endpoint)
                for channel in group.channels:
                    message = channel.message
                    if message is None or message.header.source_endpoint != endpoint:
                        continue
                    channel.message = None
                    group.waiting.release(message)
                    if not channel.sent:
                        self._free(channel, Ending.WITHDRAWN)
                    elif channel.mode is Mode.DATA:
                        self._void(channel, Leave.TURN)
                self._fill(group)
        self._open.pop(endpoint, None)
        self._leaving.discard(endpoint)
        self._outcomes = deque(
            outcome for outcome in self._outcomes if outcome.message.header.source_endpoint != endpoint
        )
