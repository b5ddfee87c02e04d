"""The program's state: VIs with their work queues, messages on their way, and what all of a card's coroutines share."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container
from dataclasses import dataclass

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from .config import ARRIVAL, ViaConfig
from .descriptor import Descriptor
from .layout import AGENT_CHANNEL, COUNT_BITS, Reliability, ViaLayout, ViRecord
from .trace import Trace
from .wire import ViaHeader

__all__ = ["Inbound", "Key", "Outgoing", "ReadRequest", "Vi", "ViaContext", "WorkQueue"]

COUNTS = 1 << COUNT_BITS


@dataclass(frozen=True)
class Key:
    """A message: the VI by which it goes or comes, and its running number there.

    The number is that of its descriptor if it goes, and the other end's number of the message if it comes.
    """

    channel: int
    index: int
    receive: bool = False


class WorkQueue:
    """A work queue of a VI. Its counts run modulo 2^16.

    - `posted`: descriptors of which the firmware has been told.
    - `taken`: descriptors that it has begun with.
    - `completed`: descriptors of which it has told the end.
    - `staged`: the descriptor that stands in the SRAM (`ViaLayout.staged`), None if none does.
    """

    def __init__(self, channel: int, *, receive: bool) -> None:
        self.channel, self.receive = channel, receive
        self.reset()

    def reset(self) -> None:
        """Make it as new."""
        self.posted = self.taken = self.completed = 0
        self.staged: int | None = None

    @property
    def waiting(self) -> int:
        """Descriptors posted and not taken."""
        return (self.posted - self.taken) % COUNTS

    def drop(self) -> None:
        """Forget all that has been posted: nobody wants to know its end."""
        self.taken = self.completed = self.posted

    def take(self) -> int:
        """Begin with the next descriptor, and return its number."""
        index, self.taken = self.taken, (self.taken + 1) % COUNTS
        return index


class Outgoing:
    """A descriptor to send that has been taken and whose end has not been told: `index` of its queue.

    - `number`: its message's number on the connection, None until its first packet goes.
    - `done`: its end is known, `status`; it is told when those before it have been.
    - `gone`: its end is nobody's business any more, as its work queue has been emptied.
    - `read`: bytes of an RDMA read that have come.
    """

    def __init__(self, vi: Vi, index: int) -> None:
        self.vi, self.index = vi, index
        self.key = Key(vi.channel, index)
        self.descriptor = Descriptor()
        self.number: int | None = None
        self.status = CompletionStatus.OK
        self.done = self.gone = False
        self.read = 0
        self.stamp: int | None = None


class Inbound:
    """A message on its way in, whose `first` packet has come.

    - `remote`: tag and address of the memory that it is written into, if it is an RDMA.
    - `offset`: bytes that have come.
    - `index`: its receive descriptor, None if it needs none. `descriptor`: that one, if its segments are needed.
    - `refused`: why it is thrown away; OK if it is not.
    - `touched_cycle`: when its last packet came.
    - `stamp`: its place in the order of the design, None if that orders nothing that comes in.
    """

    def __init__(self, first: ViaHeader, key: Key, cycle: int, stamp: int | None = None) -> None:
        self.number, self.op, self.length, self.key = first.number, first.op, first.length, key
        self.remote = first.tag, first.address
        self.offset = 0
        self.index: int | None = None
        self.descriptor: Descriptor | None = None
        self.refused = CompletionStatus.OK
        self.touched_cycle = cycle
        self.stamp = stamp

    def goes_on(self, packet: ViaHeader) -> bool:
        """Whether a packet is the next part of this message, and says the same of it as the first one has."""
        seen = packet.number, packet.offset, packet.op, packet.length, (packet.tag, packet.address)
        return seen == (self.number, self.offset, self.op, self.length, self.remote)


class ReadRequest:
    """Memory that the other end asks for: message `number`, `length` bytes at `address` in the region of `tag`."""

    def __init__(self, number: int, tag: int, address: int, length: int) -> None:
        self.number, self.tag, self.address, self.length = number, tag, address, length


class Vi:
    """A VI.

    - `send`, `receive`: its work queues.
    - `record`: the agent's record of its connection, as it was last read; None: not connected.
    - `number`, `expected`: numbers of the next message out, and in.
    - `under_way`: descriptors taken to send, in order.
    - `held`: the first of them if it waits, by its fence, for RDMA reads before it.
    - `inbound`: the message that comes in.
    - `ack`: the message up to which all are to be acknowledged; `refusal`: the one to be refused, and why.
    - `reads`: what the other end asks for.
    - `broken`: its connection has ended by an error: descriptors are flushed until the agent sets it up anew.
    - `generation`: counts its connections, so that who has waited knows whether it is still the same.
    - `users`: coroutines that are at work for it, which the parallel designs count.
    """

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.send, self.receive = WorkQueue(channel, receive=False), WorkQueue(channel, receive=True)
        self.under_way: deque[Outgoing] = deque()
        self.reads: deque[ReadRequest] = deque()
        self.users = self.generation = 0
        self.reset()

    def reset(self) -> None:
        """Make it as new: not connected, nothing posted."""
        self.send.reset()
        self.receive.reset()
        self._begin(None)

    def _begin(self, record: ViRecord | None) -> None:
        self.record = record
        self.generation += 1
        self.number = self.expected = 0
        for message in self.under_way:
            message.gone = True
        self.under_way.clear()
        self.reads.clear()
        self.held: Outgoing | None = None
        self.inbound: Inbound | None = None
        self.ack: int | None = None
        self.refusal: tuple[int, CompletionStatus] | None = None
        self.broken = False

    def look(self, record: ViRecord | None) -> ViRecord | None:
        """Take up the record that the agent has written; None if nothing may come or go."""
        if record is None:
            return None
        if self.record is None or self.record.connection != record.connection:
            self._begin(record)
        self.record = record
        return None if self.broken else record

    @property
    def reliable(self) -> bool:
        """Whether its connection is of a reliable level."""
        return self.record is not None and self.record.reliability != Reliability.UNRELIABLE

    @property
    def reading(self) -> bool:
        """Whether an RDMA read of its own has not come to its end."""
        return any(one.descriptor.is_read and not one.done for one in self.under_way)


class ViaContext:
    """All that the coroutines of one card share.

    - `vis`: by channel, those of which the firmware has heard.
    - `ready`: VIs with a message to send, in the order in which they go (`arrived`).
    - `answers`: VIs with an acknowledgement, refusal or read to answer.
    - `drops`: packets and doorbells that were dropped, by the reason.
    - `sent`, `received`: messages whose end was told, well or not.
    - `advanced_cycle`: the cycle in which a message last moved on.
    - `declared`: channels that are open, the agent's among them, in order: whose doorbell words are polled.
    - `control`: packets of the agent to be sent, each with the host address of its answer.
    - `turned`: called when a VI has got a turn, or something to answer.
    - `first_come`: messages go in the order of their doorbells: `ready` has a VI once for each.
    - `begun`: channels of which a message is at the front, so that the next one has to wait. They get no new turn.
    - `doing`: the present step in a few words, "" for none.
    """

    def __init__(self, *, node: int, nic: NicConfig, config: ViaConfig, clock: Callable[[], int]) -> None:
        self.node, self.nic, self.config, self.clock = node, nic, config, clock
        self.layout = ViaLayout(nic, config)
        self.vis: dict[int, Vi] = {}
        self.ready: deque[Vi] = deque()
        self.answers: deque[Vi] = deque()
        self.drops: Counter[str] = Counter()
        self.sent = self.received = 0
        self.advanced_cycle = 0
        self.declared = [AGENT_CHANNEL]
        self.control: deque[tuple[int, list[int]]] = deque()
        self.doing = "starts"
        self._before_wait: str | None = None
        self.trace = Trace(clock)
        self.turned: Callable[[], None] = lambda: None
        self.first_come = nic.doorbell == "queue" and config.order == ARRIVAL
        self.begun: Container[int] = ()

    def vi(self, channel: int) -> Vi:
        """The VI of a channel that the card has."""
        if channel not in self.vis:
            self.vis[channel] = Vi(channel)
        return self.vis[channel]

    def wait(self, what: str) -> None:
        """Note that it waits for something that takes long; with "", that it does not any more."""
        if what:
            self._before_wait = self.doing if self._before_wait is None else self._before_wait
            self.doing = what
        elif self._before_wait is not None:
            self.doing, self._before_wait = self._before_wait, None

    def advance(self) -> None:
        """Note that a message has moved on."""
        self.advanced_cycle = self.clock()

    def may_send(self, vi: Vi) -> bool:
        """Whether a VI has a message that may go now."""
        if vi.broken:
            return False
        if vi.held is not None:
            return not vi.reading
        return vi.send.waiting > 0 and len(vi.under_way) < self.config.queue_entries

    def arrived(self, vi: Vi, count: int) -> None:
        """A VI's doorbell says that `count` more messages have been posted.

        The card's queue of doorbells is served first come, first served (nagar-thesis-2001 5.2.1), message by message.
        PVIA puts each at the tail of its task queues (5.3.3). Else VIs have turns, a message each.
        """
        if self.first_come and self.may_send(vi):
            self.ready.extend([vi] * count)
            self.turned()
        else:
            self.give_turn(vi)

    def give_turn(self, vi: Vi) -> None:
        """Give a VI that may send a turn, behind the others, if it has none yet.

        In the order of doorbells that is for a message which could not go in its own turn.
        """
        if self.first_come and vi.channel in self.begun:
            return
        if self.may_send(vi) and vi not in self.ready:
            self.ready.append(vi)
            self.turned()

    def answer(self, vi: Vi) -> None:
        """Note that a VI has something to answer."""
        if vi not in self.answers:
            self.answers.append(vi)
            self.turned()
