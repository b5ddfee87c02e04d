"""What the GM control program keeps in its memory: tokens, flows, streams, connections, ports."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from .layout import Counts, ReceiveDescriptor, SendDescriptor, Status
from .wire import SEQUENCE_MODULUS, Code, FlowKey, behind

__all__ = [
    "Assembly",
    "Connection",
    "Flow",
    "Nack",
    "Packet",
    "Port",
    "ReceiveStream",
    "SendStream",
    "SendToken",
]


@dataclass(eq=False)
class SendToken:
    """A message on its way out: `sent` bytes have been made packets; `status` is not OK once it has
    failed."""

    descriptor: SendDescriptor
    flow: Flow
    sent: int = 0
    packets: int = 0
    status: Status = Status.OK


@dataclass(eq=False)
class Flow:
    """(source port, target port, priority) to a node, thesis 4.2.1: the sub-port entry of a connection.

    `number`: its place in the rate control unit; `idt_ticks`; `sendable`: tokens not completely serviced, in
    order; `awaiting`: tokens completely serviced that wait for acknowledgement; `valid`: may be chosen, and
    the unit knows; `paused_until_ticks`: resting after 'no receive token'.
    """

    key: FlowKey
    connection: Connection
    number: int
    idt_ticks: int = 0
    sendable: deque[SendToken] = field(default_factory=deque)
    awaiting: deque[SendToken] = field(default_factory=deque)
    valid: bool = False
    paused_until_ticks: int | None = None

    @property
    def stream(self) -> SendStream:
        """The stream that carries it."""
        return self.connection.send[self.key.priority]

    @property
    def ready(self) -> bool:
        """Whether its next packet may be made now."""
        return bool(self.sendable) and self.paused_until_ticks is None and not self.stream.blocked

    def rewind(self) -> None:
        """None of its messages has been taken: all begin again, in their order, with new packets. Those that
        were made become void, so that the other flows of the stream pass."""
        for packet in self.stream.unacknowledged:
            if packet.token.flow is self:
                packet.cancelled = True
        self.sendable.extendleft(reversed(self.awaiting))
        self.awaiting.clear()
        for token in self.sendable:
            token.sent = token.packets = 0


@dataclass(eq=False)
class Packet:
    """A packet of a stream until it is acknowledged. `copies`: how often it has been made ready to go out;
    `cancelled`: its message begins again in other packets."""

    stream: SendStream
    sequence: int
    token: SendToken
    offset: int
    length: int
    first: bool
    last: bool
    copies: int = 0
    cancelled: bool = False

    @property
    def void(self) -> bool:
        """Its message has failed, or begins again: only its sequence number still has to arrive."""
        return self.cancelled or self.token.status is not Status.OK


@dataclass(eq=False)
class SendStream:
    """Packets to one node at one priority, in sequence; go-back-N.

    `unacknowledged`: packets in order; `resend`: those of them that must go out again; `under_way`: how many
    are in transmit buffers; `progress` since the last look of the timer.
    """

    connection: Connection
    priority: int
    window: int
    next_sequence: int = 0
    unacknowledged: deque[Packet] = field(default_factory=deque)
    resend: deque[Packet] = field(default_factory=deque)
    under_way: int = 0
    progress: bool = True

    @property
    def blocked(self) -> bool:
        """Whether no new packet may be made: going back, or the window is full."""
        return bool(self.resend or len(self.unacknowledged) >= self.window)

    def append(self, token: SendToken, length: int) -> Packet:
        """The next packet of a token, `length` bytes."""
        last = token.sent + length == token.descriptor.length
        packet = Packet(self, self.next_sequence, token, token.sent, length, token.packets == 0, last)
        self.next_sequence = (self.next_sequence + 1) % SEQUENCE_MODULUS
        self.unacknowledged.append(packet)
        token.sent += length
        token.packets += 1
        return packet

    def acknowledge(self, expected: int) -> list[SendToken]:
        """The other side expects `expected`: forget all before it; return the tokens that are thereby
        complete. A number that does not stand between the oldest packet and the next is stale and does
        nothing."""
        complete: list[SendToken] = []
        if not self.unacknowledged:
            return complete
        count = behind(self.unacknowledged[0].sequence, expected)
        if not 0 <= count <= len(self.unacknowledged):
            return complete
        for _ in range(count):
            packet = self.unacknowledged.popleft()
            if self.resend and self.resend[0] is packet:
                self.resend.popleft()
            if packet.last and not packet.void:
                complete.append(packet.token)
            self.progress = True
        return complete

    def go_back(self) -> None:
        """All unacknowledged packets go out again, in order."""
        self.resend = deque(self.unacknowledged)
        self.progress = True


@dataclass(frozen=True)
class Nack:
    """A negative acknowledgement that waits to be sent: `code`, and the flow and the copy of the packet that
    caused it."""

    code: Code
    flow: FlowKey
    copy: int = 0


@dataclass(eq=False)
class ReceiveStream:
    """Packets from one node at one priority: `expected` next; `due`: an acknowledgement waits to be sent (a
    later one takes its place); `nack`: as a negative one; `refused`: one was sent for the expected packet, so
    that those behind it are dropped in silence."""

    expected: int = 0
    due: bool = False
    nack: Nack | None = None
    refused: bool = False

    def accept(self) -> None:
        """The expected packet is taken."""
        self.expected = (self.expected + 1) % SEQUENCE_MODULUS
        self.due, self.nack, self.refused = True, None, False

    def refuse(self, nack: Nack) -> None:
        """The expected packet is not taken."""
        self.due, self.nack, self.refused = True, nack, True


@dataclass(eq=False)
class Connection:
    """A remote node: `send` and `receive` streams by priority; `flows` in the order of the circular sub-port
    queue; `tokens` of all its flows, not yet complete."""

    node: int
    route: int
    window: int
    flows: deque[Flow] = field(default_factory=deque)
    tokens: int = 0
    send: tuple[SendStream, SendStream] = field(init=False)
    receive: tuple[ReceiveStream, ReceiveStream] = field(init=False)

    def __post_init__(self) -> None:
        self.send = (SendStream(self, 0, self.window), SendStream(self, 1, self.window))
        self.receive = (ReceiveStream(), ReceiveStream())


@dataclass(eq=False)
class Assembly:
    """A message on its way in: its receive `token`, how many bytes have come; `broken` if the bus refused
    some."""

    token: ReceiveDescriptor
    received: int = 0
    broken: bool = False


@dataclass(eq=False)
class Port:
    """A port of this node: `open`; its event ring in host memory; descriptors `taken`; receive tokens by
    priority; messages being put together by (node, flow); memory registered as (start, bytes)."""

    number: int
    open: bool = False
    ring_address: int = 0
    events: int = 0
    taken: Counts = field(default_factory=Counts)
    receive_tokens: tuple[deque[ReceiveDescriptor], deque[ReceiveDescriptor]] = field(
        default_factory=lambda: (deque(), deque())
    )
    assemblies: dict[tuple[int, FlowKey], Assembly] = field(default_factory=dict)
    regions: list[tuple[int, int]] = field(default_factory=list)

    def registered(self, address: int, length: int) -> bool:
        """Whether these bytes of host memory lie in one registered region."""
        return any(start <= address and address + length <= start + size for start, size in self.regions)

    def close(self) -> None:
        """Forget tokens, messages and memory of the port; counts of descriptors go on."""
        self.open = False
        self.assemblies.clear()
        self.regions.clear()
        for tokens in self.receive_tokens:
            tokens.clear()
