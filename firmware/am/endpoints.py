"""A resident endpoint as the firmware knows it: its frame, the counts of its queues, the fate of each entry.

Nothing here is read from the endpoint's page. The process may write anything there; its counts come by its doorbell
word, and each is checked against what can be.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from .layout import AmLayout
from .words import COUNT_MODULUS, Counts, EndpointRecord

__all__ = ["COUNTS", "Frame", "FrameState", "ReceiveQueue", "SendQueue", "Slot"]

COUNTS = 1 << 16
"""Counts of a queue in a record are modulo this."""


class FrameState(Enum):
    """The state of a frame."""

    EMPTY = auto()
    LOADING = auto()
    RESIDENT = auto()
    STOPPING = auto()
    """As QUIESCING, but the last doorbell word of its process has not been read yet."""
    QUIESCING = auto()
    """Nothing new goes out or comes in; what is under way comes to its end."""
    UNLOADING = auto()


class Slot(Enum):
    """The state of a send entry."""

    FREE = auto()
    POSTED = auto()
    """It waits for its endpoint's turn."""
    UNDER_WAY = auto()
    """The transport has a copy of its message."""
    RETURNING = auto()
    """Its message waits to come back to the process; word 2 of the entry says why."""
    DONE = auto()
    """Its message has its fate; an earlier entry has not."""


class SendQueue:
    """A send queue's counts and entries. `posted`, `taken`: modulo 2^16, as in the record.

    `ready`: places of entries that wait for their endpoint's turn, in order. `returning`: places whose messages wait to
    come back, likewise.
    """

    def __init__(
        self, entries: int, posted: int = 0, taken: int = 0, done: int = 0, returning: int = 0
    ) -> None:
        self.entries = entries
        self.posted, self.taken = posted, taken
        self.slots = [Slot.FREE] * entries
        self.ready: deque[int] = deque()
        self.returning: deque[int] = deque()
        for count in range(taken, taken + self.open):
            place = count % entries
            if done >> place & 1:
                self.slots[place] = Slot.DONE
            elif returning >> place & 1:
                self.slots[place] = Slot.RETURNING
                self.returning.append(place)
            else:
                self.slots[place] = Slot.POSTED
                self.ready.append(place)

    @property
    def open(self) -> int:
        """Entries posted and not free again."""
        return (self.posted - self.taken) % COUNTS

    def post(self, more: int) -> bool:
        """The process has posted so many more. Returns whether there can be so many; if not, nothing changes."""
        if self.open + more > self.entries:
            return False
        for _ in range(more):
            place = self.posted % self.entries
            self.slots[place] = Slot.POSTED
            self.ready.append(place)
            self.posted = (self.posted + 1) % COUNTS
        return True

    def take(self) -> int:
        """The place of the next entry, which is under way now."""
        place = self.ready.popleft()
        self.slots[place] = Slot.UNDER_WAY
        return place

    def again(self, place: int) -> None:
        """An entry under way waits for its endpoint's turn again."""
        self.slots[place] = Slot.POSTED
        self.ready.appendleft(place)

    def returns(self, place: int) -> None:
        """An entry's message is to come back."""
        self.slots[place] = Slot.RETURNING
        self.returning.append(place)

    def done(self, place: int) -> bool:
        """An entry's message has its fate. Returns whether `taken` has gone on."""
        self.slots[place] = Slot.DONE
        before = self.taken
        while self.open and self.slots[self.taken % self.entries] is Slot.DONE:
            self.slots[self.taken % self.entries] = Slot.FREE
            self.taken = (self.taken + 1) % COUNTS
        return self.taken != before

    def bits(self, state: Slot) -> int:
        """A bit for each place in a state."""
        return sum(1 << place for place, slot in enumerate(self.slots) if slot is state)


class ReceiveQueue:
    """A receive queue's counts, modulo 2^16: `granted` to packets, of those `delivered` in order, of those `consumed`.

    A packet whose data are still on their way to the host holds back those behind it.
    """

    def __init__(self, entries: int, delivered: int = 0, consumed: int = 0) -> None:
        self.entries = entries
        self.granted = self.delivered = delivered
        self.consumed = consumed
        self._complete: set[int] = set()

    @property
    def room(self) -> int:
        """Entries that are free."""
        return self.entries - (self.granted - self.consumed) % COUNTS

    @property
    def waiting(self) -> int:
        """Messages that the process has not consumed."""
        return (self.delivered - self.consumed) % COUNTS

    @property
    def under_way(self) -> int:
        """Entries granted whose messages have not come whole."""
        return (self.granted - self.delivered) % COUNTS

    def grant(self) -> int:
        """Take the next entry; returns its count. There must be room."""
        assert self.room > 0
        count = self.granted
        self.granted = (count + 1) % COUNTS
        return count

    def complete(self, count: int) -> bool:
        """The message of an entry is whole. Returns whether `delivered` has gone on."""
        self._complete.add(count)
        before = self.delivered
        while self.delivered in self._complete:
            self._complete.remove(self.delivered)
            self.delivered = (self.delivered + 1) % COUNTS
        return self.delivered != before

    def consume(self, more: int) -> bool:
        """The process has consumed so many more. Returns whether there were so many; if not, nothing changes."""
        if more > self.waiting:
            return False
        self.consumed = (self.consumed + more) % COUNTS
        return True


class Frame:
    """A frame and its endpoint.

    - `number`: from 1; its doorbell channel has the same.
    - `page`: SRAM address of the page. `state`: a `FrameState`.
    - `record`: the endpoint's record as it was loaded; the counts are those of `sends` and `receives`, requests first.
    - `host_page`, `host_record`: the host addresses from which it was loaded.
    - `moving`: host DMAs under way for messages of it.
    - `killed`: its process is gone: what is under way is waited for, and nothing written back.
    """

    def __init__(self, layout: AmLayout, number: int) -> None:
        self.layout, self.number = layout, number
        self.page = layout.frame(number)
        self.state = FrameState.EMPTY
        self.record = EndpointRecord(endpoint=0)
        self.host_page = self.host_record = 0
        self.sends: tuple[SendQueue, ...] = ()
        self.receives: tuple[ReceiveQueue, ...] = ()
        self.moving = 0
        self.killed = self._replied = False
        self.refused = self.activity = 0

    @property
    def endpoint(self) -> int | None:
        """Its endpoint, None if it is empty."""
        return None if self.state is FrameState.EMPTY else self.record.endpoint

    def loading(self, endpoint: int, host_page: int, host_record: int) -> None:
        """An endpoint is on its way into the frame."""
        self.state = FrameState.LOADING
        self.record = EndpointRecord(endpoint=endpoint)
        self.host_page, self.host_record = host_page, host_record
        self.moving, self.killed = 0, False

    def loaded(self, record: EndpointRecord) -> None:
        """The endpoint is there."""
        entries = self.layout.config.queue_entries
        self.record, self.state = record, FrameState.RESIDENT
        self.refused, self.activity = record.refused_doorbells, record.activity
        self.sends = tuple(
            SendQueue(entries, *counts)
            for counts in zip(record.posted, record.taken, record.done, record.returning, strict=True)
        )
        self.receives = tuple(
            ReceiveQueue(entries, *counts) for counts in zip(record.delivered, record.consumed, strict=True)
        )

    def written_back(self) -> EndpointRecord:
        """The record as it is now, for the driver."""
        record, (requests, replies) = self.record, self.sends
        return EndpointRecord(
            endpoint=record.endpoint,
            owner=record.owner,
            tag=record.tag,
            send_staging=record.send_staging,
            receive_staging=record.receive_staging,
            segment=record.segment,
            segment_bytes=record.segment_bytes,
            flags=record.flags,
            posted=(requests.posted, replies.posted),
            taken=(requests.taken, replies.taken),
            done=(requests.bits(Slot.DONE), replies.bits(Slot.DONE)),
            returning=(requests.bits(Slot.RETURNING), replies.bits(Slot.RETURNING)),
            delivered=(self.receives[0].delivered, self.receives[1].delivered),
            consumed=(self.receives[0].consumed, self.receives[1].consumed),
            refused_doorbells=self.refused,
            activity=self.activity % (1 << 32),
        )

    def rung(self, word: int) -> None:
        """Take in a doorbell word. Each of its counts that cannot be is refused and counted, the others are taken."""
        counts = Counts(
            requests_posted=self.sends[0].posted % COUNT_MODULUS,
            replies_posted=self.sends[1].posted % COUNT_MODULUS,
            requests_consumed=self.receives[0].consumed % COUNT_MODULUS,
            replies_consumed=self.receives[1].consumed % COUNT_MODULUS,
        )
        since = Counts.unpack(word).since(counts)
        queues = (self.sends[0].post, self.sends[1].post, self.receives[0].consume, self.receives[1].consume)
        self.refused += sum(not take(more) for take, more in zip(queues, since, strict=True))

    def next_send(self) -> tuple[bool, int, bool]:
        """The entry whose turn it is, of a frame that is `sendable`: whether it is a reply, its place, and whether its
        message comes back. Those that come back are first, then the two queues take turns."""
        if self.receives[1].room > 0:
            for reply, queue in enumerate(self.sends):
                if queue.returning:
                    return bool(reply), queue.returning.popleft(), True
        if self.sends[not self._replied].ready:
            self._replied = not self._replied
        return self._replied, self.sends[self._replied].take(), False

    @property
    def sendable(self) -> bool:
        """Whether there is anything for it to do when its turn comes."""
        if self.state is not FrameState.RESIDENT:
            return False
        room = self.receives[1].room > 0
        return any(queue.ready or (queue.returning and room) for queue in self.sends)
