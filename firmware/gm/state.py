"""The memory of the GM control program: tokens, flows, streams, connections, ports."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from .layout import OPENING_BYTES, Counts, Opening, ReceiveDescriptor, SendDescriptor, Status
from .wire import SEQUENCE_MODULUS, Code, FlowKey, behind

__all__ = [
    "Assembly",
    "Connection",
    "Flow",
    "Packet",
    "Port",
    "ReceiveStream",
    "SendStream",
    "SendToken",
]


@dataclass(eq=False)
class SendToken:
    """A message on its way out.

    `sent` bytes have been made `packets`. `status` is not OK once the message has failed. `get` is the GET whose
    request it is. A message of the card itself, a GOT, has no port to which it comes home.
    """

    descriptor: SendDescriptor
    flow: Flow
    sent: int = 0
    packets: int = 0
    status: Status = Status.OK
    get: Get | None = None

    @property
    def length(self) -> int:
        """Bytes that go out."""
        return 0 if self.get is not None else self.descriptor.length

    @property
    def opening(self) -> Opening | None:
        """The opening in its first packet, if it has one."""
        return self.descriptor.opening


@dataclass(eq=False)
class Get:
    """A GET whose bytes have not come whole.

    It has the request's `descriptor`, its `serial` number, and the ticks since the last bytes that came
    (`waited_ticks`).
    """

    descriptor: SendDescriptor
    serial: int
    waited_ticks: int = 0


@dataclass(eq=False)
class Flow:
    """(source port, target port, priority) to a node, thesis 4.2.1: the sub-port entry of a connection.

    - `number`: its place in the rate control unit.
    - `idt_ticks`: its inter-packet dispatch time.
    - `least_bytes`: the fewest bytes that a packet is charged for, where bytes are charged.
    - `sendable`: tokens not completely serviced, in order.
    - `awaiting`: tokens completely serviced that wait for acknowledgement.
    - `valid`: it may be chosen, and the unit knows it.
    - `paused_until_ticks`: the end of its rest after 'no receive token'.
    """

    key: FlowKey
    connection: Connection
    number: int
    idt_ticks: int = 0
    least_bytes: int = 1
    sendable: deque[SendToken] = field(default_factory=deque)
    awaiting: deque[SendToken] = field(default_factory=deque)
    valid: bool = False
    paused_until_ticks: int | None = None
    stream: SendStream = field(init=False)

    def __post_init__(self) -> None:
        self.stream = self.connection.sending(self.key)
        self.stream.flow = self

    @property
    def ready(self) -> bool:
        """Whether its next packet may be made now."""
        return bool(self.sendable) and self.paused_until_ticks is None and not self.stream.blocked

    @property
    def tokens(self) -> list[SendToken]:
        """Its messages, in their order."""
        return [*self.awaiting, *self.sendable]

    @property
    def begun(self) -> list[SendToken]:
        """Messages of which packets have been made; only the other side can tell which of these have come."""
        return [token for token in self.tokens if token.packets]

    def rewind(self) -> None:
        """Begin all its messages again, as none has been taken: in their order, in a stream that begins anew."""
        self.stream.begin_anew()
        self.sendable.extendleft(reversed(self.awaiting))
        self.awaiting.clear()
        for token in self.sendable:
            token.sent = token.packets = 0


@dataclass(eq=False)
class Packet:
    """A packet of a stream until it is acknowledged.

    `restart`: the stream begins anew with it. `cancelled`: its stream has begun anew since.
    """

    stream: SendStream
    sequence: int
    token: SendToken
    offset: int
    length: int
    first: bool
    last: bool
    restart: bool = False
    opening: Opening | None = None
    cancelled: bool = False

    @property
    def void(self) -> bool:
        """Whether its message has failed: only its sequence number still has to arrive."""
        return self.token.status is not Status.OK

    @property
    def payload_bytes(self) -> int:
        """Bytes that it carries."""
        if self.void:
            return 0
        return self.length if self.opening is None else OPENING_BYTES


@dataclass(eq=False)
class SendStream:
    """Packets of a flow, in sequence; go-back-N.

    It outlives its `flow`: a sequence number is never used for two packets.

    - `unacknowledged`: packets in order.
    - `resend`: those of them that must go out again.
    - `under_way`: how many are in transmit buffers.
    - `progress`: it has made progress since the last look of the timer.
    - `restart`: the next packet begins the stream anew.
    - `probing`: one packet at a time goes out, until one is taken.

    These bound a message's stay:

    - `tries`: tries in a row that were refused or got no answer.
    - `stuck_ticks`: ticks since the last packet that was taken.
    - `silences`: looks of the timer in a row without an answer.
    - `waited`: it waited for an answer at the last look already.
    """

    connection: Connection
    key: FlowKey
    window: int
    flow: Flow | None = None
    next_sequence: int = 0
    unacknowledged: deque[Packet] = field(default_factory=deque)
    resend: deque[Packet] = field(default_factory=deque)
    under_way: int = 0
    progress: bool = True
    restart: bool = True
    probing: bool = False
    tries: int = 0
    stuck_ticks: int = 0
    silences: int = 0
    waited: bool = False

    @property
    def blocked(self) -> bool:
        """Whether no new packet may be made: the stream goes back, the window is full, or a probe has no answer."""
        most = 1 if self.probing else self.window
        return bool(self.resend or len(self.unacknowledged) >= most)

    def append(self, token: SendToken, length: int) -> Packet:
        """The next packet of a token, `length` bytes."""
        last, first = token.sent + length == token.length, token.packets == 0
        opening = token.opening if first else None
        packet = Packet(
            self, self.next_sequence, token, token.sent, length, first, last, self.restart, opening
        )
        self.restart = False
        self.next_sequence = (self.next_sequence + 1) % SEQUENCE_MODULUS
        self.unacknowledged.append(packet)
        token.sent += length
        token.packets += 1
        return packet

    def acknowledge(self, expected: int) -> list[SendToken]:
        """Forget all packets before `expected`, which the other side expects.

        Returns the tokens that are thereby complete. A number that does not stand between the oldest packet and the
        next is stale and does nothing.
        """
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
        if count:
            self.progress = True
            self.forgive()
            if self.probing:
                # The packets that followed the probe before the answers stayed away may not have come.
                self.probing = False
                self.go_back()
        return complete

    def forgive(self) -> None:
        """Begin its bounds anew, as a packet was taken, or the next message's turn has come."""
        self.tries = self.stuck_ticks = self.silences = 0
        self.waited = False

    def go_back(self) -> None:
        """Send all unacknowledged packets again, in order."""
        self.resend = deque(self.unacknowledged)
        self.progress = True

    def probe(self) -> None:
        """Send the oldest unacknowledged packet again, and the others only once it has been answered.

        So a node that is silent costs little.
        """
        self.resend = deque([self.unacknowledged[0]])
        self.probing = self.progress = True

    def begin_anew(self) -> None:
        """Forget the packets that are under way: the other side has refused them, or is to forget them, too."""
        for packet in self.unacknowledged:
            packet.cancelled = True
        self.unacknowledged.clear()
        self.resend.clear()
        self.restart, self.probing, self.waited, self.silences = True, False, False, 0


@dataclass(eq=False)
class ReceiveStream:
    """Packets of a flow of another node.

    - `expected`: the next packet, None before the first.
    - `refusal`: the packet `expected` has been refused, with this code and for good. So every packet that does not
      begin a new stream is dropped.
    - `gap`: the sender was told that packets are missing, so those behind are dropped in silence.
    - `due`: an answer waits to be sent; a later one takes its place.
    - `missing`: the answer says that packets are missing.
    - `available`: a receive token has come for a flow that was refused one, which the sender is to be told.
    """

    expected: int | None = None
    refusal: Code | None = None
    gap: bool = False
    due: bool = False
    missing: bool = False
    available: bool = False

    def begin(self, sequence: int) -> None:
        """The sender begins anew, with this packet."""
        self.expected, self.refusal, self.gap, self.missing = sequence, None, False, False

    def accept(self) -> None:
        """The expected packet is taken."""
        assert self.expected is not None
        self.expected = (self.expected + 1) % SEQUENCE_MODULUS
        self.due, self.gap, self.missing = True, False, False

    def miss(self) -> None:
        """A packet has come, and one before it has not."""
        self.due = self.gap = self.missing = True

    def refuse(self, code: Code) -> None:
        """The expected packet is not taken, whatever copy of it still comes.

        The sender hears of it, once or more often, and may rely on it.
        """
        self.due, self.refusal = True, code


@dataclass(eq=False)
class Connection:
    """A remote node.

    - `send`, `receive`: streams of its flows, by `FlowKey`.
    - `flows`: in the order of the circular sub-port queue.
    - `tokens`: those of all its flows, not yet complete.
    - `incarnation`: how often the node has been started, modulo 8; None before its first packet.
    - `silent_looks`: looks of the timer since its last packet.
    - `doubted`: another incarnation, which may be over, and a time (ticks) since which packets come of it alone.
    """

    node: int
    route: int
    window: int
    flows: deque[Flow] = field(default_factory=deque)
    tokens: int = 0
    send: dict[FlowKey, SendStream] = field(default_factory=dict)
    receive: dict[FlowKey, ReceiveStream] = field(default_factory=dict)
    incarnation: int | None = None
    silent_looks: int = 0
    doubted: tuple[int, int] | None = None

    def sending(self, key: FlowKey) -> SendStream:
        """The stream of a flow to the node."""
        if key not in self.send:
            self.send[key] = SendStream(self, key, self.window)
        return self.send[key]

    def receiving(self, key: FlowKey) -> ReceiveStream:
        """The stream of a flow of the node."""
        if key not in self.receive:
            self.receive[key] = ReceiveStream()
        return self.receive[key]


@dataclass(eq=False)
class Assembly:
    """A message on its way in.

    It has taken a receive `token`, or is a PUT, or has the bytes that a `get` asked for.

    - `address`, `room`: the host address to which it goes, and the bytes that are there.
    - `received`: bytes that have come.
    - `broken`: the bus refused some of them.
    - `idle_ticks`: time without a packet of it, while others wait for a token.
    """

    address: int
    room: int
    token: ReceiveDescriptor | None = None
    get: Get | None = None
    received: int = 0
    broken: bool = False
    idle_ticks: int = 0


@dataclass(eq=False)
class Port:
    """A port of this node.

    It has these, beside `open`:

    - its event ring in host memory
    - the descriptors `taken`
    - receive tokens by priority
    - messages being put together by (node, flow)
    - flows that were `refused` a token, with the size of their message, the longest wait first
    - memory registered as (start, bytes), and the exposed part of it
    - GETs by token
    """

    number: int
    open: bool = False
    ring_address: int = 0
    events: int = 0
    taken: Counts = field(default_factory=Counts)
    receive_tokens: tuple[deque[ReceiveDescriptor], deque[ReceiveDescriptor]] = field(
        default_factory=lambda: (deque(), deque())
    )
    assemblies: dict[tuple[int, FlowKey], Assembly] = field(default_factory=dict)
    refused: dict[tuple[int, FlowKey], int] = field(default_factory=dict)
    regions: list[tuple[int, int]] = field(default_factory=list)
    exposed: list[tuple[int, int]] = field(default_factory=list)
    gets: dict[int, Get] = field(default_factory=dict)

    def registered(self, address: int, length: int) -> bool:
        """Whether these bytes of host memory lie in one registered region."""
        return any(start <= address and address + length <= start + size for start, size in self.regions)

    def is_exposed(self, address: int, length: int) -> bool:
        """Whether others may write and read these bytes of host memory."""
        exposed = any(start <= address and address + length <= start + size for start, size in self.exposed)
        return exposed and not address % 4 and self.registered(address, length)

    def take_token(self, node: int, key: FlowKey, size: int) -> ReceiveDescriptor | None:
        """The first receive token of a flow's priority for messages of a size.

        Without one, the flow is told when it comes.
        """
        tokens = self.receive_tokens[key.priority]
        for token in tokens:
            if token.size == size:
                tokens.remove(token)
                self.refused.pop((node, key), None)
                return token
        # Its message may be of another size than the one that was refused before.
        self.refused[node, key] = size
        return None

    def waiting_for(self, token: ReceiveDescriptor) -> tuple[int, FlowKey] | None:
        """The flow that waits longest for such a token, which waits no longer."""
        for (node, key), size in self.refused.items():
            if key.priority == token.priority and size == token.size:
                del self.refused[node, key]
                return node, key
        return None

    def close(self) -> None:
        """Forget tokens, messages and memory of the port; counts of descriptors go on."""
        self.open = False
        self.assemblies.clear()
        self.regions.clear()
        self.refused.clear()
        self.exposed.clear()
        self.gets.clear()
        for tokens in self.receive_tokens:
            tokens.clear()
