"""A GM port: memory, tokens, sends, receives. Its rings are those of `lanikai.firmware.gm.layout`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lanikai.firmware.gm.layout import (
    EVENT_BYTES,
    Command,
    Event,
    EventKind,
    Operation,
    ReceiveDescriptor,
    Status,
    pack_target,
)
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES

from ..checks import whole
from ..errors import GmError, MemoryUseError, NoTokensError
from ..memory import Buffer
from .failures import failure
from .library_calls import LibraryCalls
from .message import Received
from .sends import PortSends
from .sizes import length_for_size

__all__ = ["GmPort"]


class GmPort(PortSends):
    """An open port of a host; made by `Gm.open_port`.

    Calls of one port follow one another, as from one thread: two that are made at once are served in the order of their
    making. `send_tokens`, `receive_tokens`: how many are free.
    """

    def __init__(self, gm: LibraryCalls, number: int) -> None:
        super().__init__(gm, number)
        self._events = 0
        self._ring = gm.memory.allocate(gm.gm.event_entries * EVENT_BYTES)
        self._ring.data[:] = 0
        # By token: what was given, and the part of it that a message may use.
        self._buffers: dict[int, tuple[Buffer, Buffer]] = {}
        self._free_receives = deque(range(gm.gm.receive_tokens))
        self._received: deque[Received | GmError] = deque()
        self._arrival = gm.bus.flag()
        self._answer = gm.bus.flag()
        self._status = Status.OK
        self._asked = Operation.OPEN
        self._asking = False
        self._receivers = 0
        # The nodes that this port is just declaring dead.
        self._declared: list[int] = []

    @property
    def receive_tokens(self) -> int:
        """Free receive tokens: buffers that can be provided now."""
        return len(self._free_receives)

    @property
    def pending(self) -> int:
        """Messages on their way out, and a command without an answer."""
        return len(self._sends) + self._asking

    def state(self) -> list[str]:
        """Tokens and messages, a line each."""
        gm = self._gm.gm
        return [
            f"port {self.number}: {'open' if self.is_open else 'not open'}; free tokens: {self.send_tokens} of "
            f"{gm.send_tokens} to send, {self.receive_tokens} of {gm.receive_tokens} to receive; "
            f"{len(self._received)} messages not taken; {self._turns.waiting} calls wait their turn",
            *(f"  {line}" for line in self.waiting()),
        ]

    def waiting(self) -> list[str]:
        """The things that it waits for, a few words each."""
        lines = [
            f"sends {s.handle.description}, since cycle {s.handle.sent_cycle}" for s in self._sends.values()
        ]
        if self._asking:
            lines.append(f"waits for the answer to {self._asked.name.lower()}")
        if self._receivers:
            lines.append(f"{self._receivers} wait to receive")
        return lines

    async def node_died(self, node: int) -> None:
        """Do this port's part of `Gm.node_died`: its own messages end, and nobody is told of the node."""
        self._declared.append(node)
        try:
            await self._command(Operation.NODE_DIED, node)
        finally:
            self._declared.remove(node)

    def provides(self, buffer: Buffer) -> bool:
        """Whether it has been given some of these bytes to receive in, and no message has come there yet."""
        return any(given.overlaps(buffer) for _, given in self._buffers.values())

    async def provide_receive_buffer(
        self, buffer: Buffer, length: int | None = None, priority: int = 0, size: int | None = None
    ) -> None:
        """Give a registered buffer's first `length` bytes (all, by default) for one message of a priority.

        The message is of a `size`, if it is given: 2^size - 8 bytes must fit. Otherwise it is one that is sent without
        a size. Buffers are used in the order of giving.

        Raises ClosedPortError, NoTokensError, ValueError, ArgumentTypeError. Raises MemoryUseError for an address, a
        length beyond the buffer, another host's buffer, or one given already.
        """
        self._check_open()
        self._check_buffer(buffer)
        length = buffer.length if length is None else whole("length", length)
        priority = whole("priority", priority)
        if length > buffer.length:
            raise MemoryUseError(f"{length} bytes to receive do not fit a buffer of {buffer.length} bytes")
        self._check_registered(buffer.start, length)
        self._check_aligned(buffer.start)
        self._check_own(buffer)
        if priority not in (0, 1):
            raise ValueError(f"priority = {priority}: 0 (low) or 1 (high)")
        given = Buffer(buffer.start, length, buffer.data[:length])
        if self._gm.providing(given):
            raise MemoryUseError(
                f"memory at {buffer.start:#x}, {length} bytes: given to receive in already; its message must come "
                "first"
            )
        if size is not None and length < length_for_size(size):
            raise MemoryUseError(
                f"a receive buffer of size {size} has {length_for_size(size)} bytes or more, not {length}"
            )
        if not self._free_receives:
            raise NoTokensError(
                f"port {self.number} of node {self._gm.node}: all {self._gm.gm.receive_tokens} receive "
                "tokens are in use; receive a message first"
            )
        token = self._free_receives.popleft()
        self._buffers[token] = buffer, given
        descriptor = ReceiveDescriptor(
            address=buffer.start, length=length, priority=priority, token=token, size=size or 0
        )
        async with self._turns:
            place = self._gm.layout.receive_descriptor(self.number, self._counts.receives)
            self._counts.receives += 1
            await self._post(place, descriptor.words(), self._gm.host.receive_buffer_ns)

    async def receive(self) -> Received:
        """Wait for the next message, and return it. Messages of a flow come in the order of their sending. Raises
        ClosedPortError if the port is, or gets, closed."""
        while not self._received:
            self._check_open()
            self._arrival.clear()
            self._receivers += 1
            await self._arrival.wait()
            self._receivers -= 1
        return self._next()

    def poll(self) -> Received | None:
        """The next message if one has arrived. Raises BusFaultError as `receive` does."""
        return self._next() if self._received else None

    def _next(self) -> Received:
        message = self._received.popleft()
        if isinstance(message, GmError):
            raise message
        return message

    async def set_idt(
        self, *, node: int, port: int, priority: int = 0, ticks: int, least_bytes: int | None = None
    ) -> None:
        """Set the inter-packet dispatch time of this port's flow to `port` of `node`, in ticks of the NIC's RTC; 0: not
        regulated.

        - `GmConfig.charge` = "packets": a packet takes an IDT.
        - "bytes": a packet takes as large a part of it as its bytes are of `NicConfig.charge_unit_bytes`. One with
          fewer bytes than `least_bytes` (1 if it is not given) is charged for so many. This bounds the packets of a
          flow a second.

        Raises IdtRangeError, UnknownNodeError, UnknownPortError, TooManyFlowsError, ClosedPortError, ArgumentTypeError.
        """
        self._check_open()
        node, port, priority = whole("node", node), whole("port", port), whole("priority", priority)
        ticks = whole("ticks", ticks)
        least_bytes = None if least_bytes is None else whole("least_bytes", least_bytes)
        self._gm.check_idt(ticks, least_bytes)
        self._gm.check_target(self.number, node, port, priority)
        self._gm.remember(self.number, node, port, priority)
        target = pack_target(node, port, priority)
        await self._command(Operation.SET_IDT, target, ticks, least_bytes or 0)

    async def close(self, timeout_ticks: int | None = None) -> None:
        """Wait until all sends have ended, abort those that have not in time, and close.

        The wait lasts for `timeout_ticks` of the NIC's RTC at most (`GmConfig.close_ticks` by default; 0: not at all).
        So the call returns that time later, and a command's time for each message aborted. Buffers that were provided
        and not used are the caller's again.
        """
        self._check_open()
        ticks = self._gm.gm.close_ticks if timeout_ticks is None else whole("timeout_ticks", timeout_ticks)
        if ticks < 0:
            raise ValueError(f"timeout_ticks = {ticks}: 0 or more")
        self.is_open = False
        self._arrival.set()
        if self._sends and ticks:
            self._bus.spawn(self._end_wait(ticks), f"gm[{self._gm.node}].port{self.number}.close")
            await self._idle.wait()
        for token in [*self._sends]:
            if token in self._sends:
                await self._command(Operation.ABORT, token)
        await self._command(Operation.CLOSE)
        self._gm.memory.release(self._ring)
        self._gm.forget(self.number)

    async def _end_wait(self, ticks: int) -> None:
        """End the wait of `close`."""
        await self._bus.sleep(max(1, int(ticks * self._gm.nic.tick_cycles)))
        self._idle.set()

    async def _open(self) -> None:
        self._bus.spawn(self._watch_events(), f"gm[{self._gm.node}].port{self.number}")
        try:
            await self._command(Operation.OPEN, self._ring.start)
        except GmError:
            self._gm.memory.release(self._ring)
            raise
        self.is_open = True

    async def _command(self, operation: Operation, first: int = 0, second: int = 0, third: int = 0) -> None:
        """Ask the firmware something and wait for its answer."""
        async with self._turns:
            self._answer.clear()
            self._asked = operation
            self._asking = True
            command = Command(operation=operation, first=first, second=second, third=third)
            self._counts.commands += 1
            place = self._gm.layout.command(self.number)
            words = command.words()[: self._gm.layout.command_words]
            await self._post(place, words, self._gm.host.command_ns)
            await self._answer.wait()
            self._asking = False
            status = self._status
        if status:
            what = f"{operation.name.lower()} on port {self.number} of node {self._gm.node}"
            raise self._failure(status, what, self._gm.node, self.number)

    async def _post(self, place: int, words: tuple[int, ...], nanoseconds: int) -> None:
        """Write words to the NIC's SRAM, then ring the doorbell, after so much of the host's time."""
        writes = [(place + 4 * i, word) for i, word in enumerate(words)]
        writes.append((DOORBELL_BASE + self.number * DOORBELL_PAGE_BYTES, self._counts.word()))
        await self._bus.write_all(writes, after_cycles=self._gm.cycles(nanoseconds))

    async def _watch_events(self) -> None:
        """Run the poll loop over the event ring, asleep while nothing is written there."""
        watch = self._bus.watch(self._ring.start, self._ring.length)
        words = self._ring.data.view("<u4").reshape(-1, EVENT_BYTES // 4)
        poll_cycles, event_cycles = (
            self._gm.cycles(ns) for ns in (self._gm.host.poll_ns, self._gm.host.event_ns)
        )

        def there() -> bool:
            return int(words[self._events % len(words)][-1]) == self._events + 1

        def look() -> int | None:
            return event_cycles if there() else None

        while True:
            # The event's time is over when it is taken: one wake-up for both.
            await watch.wait(look, after_cycles=poll_cycles)
            while True:
                entry = words[self._events % len(words)]
                self._events += 1
                event = Event.unpack([int(word) for word in entry])
                self._take(event)
                if event.kind is EventKind.COMMAND and (
                    self._asked is Operation.CLOSE or (self._asked is Operation.OPEN and event.status)
                ):
                    return
                if not there():
                    break
                if event_cycles:
                    await self._bus.sleep(event_cycles)

    def _take(self, event: Event) -> None:
        self._gm.advanced_cycle = self._bus.cycle
        if event.kind is EventKind.COMMAND:
            self._status = event.status
            self._answer.set()
        elif event.kind is EventKind.SENT:
            send = self._sends.pop(event.token)
            self._free_sends.append(event.token)
            error = None
            if event.status:
                error = self._failure(event.status, send.handle.description, send.node, send.port)
            if not self._sends:
                self._idle.set()
            send.handle.finish(error, self._bus.cycle, event.status)
            if event.status is Status.NODE_DEAD and send.node not in self._declared:
                self._gm.found_dead(send.node)
            elif event.status is Status.OK:
                self._gm.found_alive(send.node)
        else:
            buffer, _ = self._buffers.pop(event.token, (None, None))
            if buffer is not None:
                self._free_receives.append(event.token)
            if event.status or buffer is None:  # none: of a put that the bus did not take
                what = f"a receive on port {self.number} of node {self._gm.node}"
                self._received.append(self._failure(event.status, what, self._gm.node, self.number))
            else:
                self._gm.found_alive(event.node)
                self._received.append(
                    Received(buffer, event.length, event.node, event.port, event.priority, self._bus.cycle)
                )
            self._arrival.set()

    def _failure(self, status: Status, what: str, node: int, port: int) -> GmError:
        return failure(status, what, node=node, port=port, nic=self._gm.nic, gm=self._gm.gm)

    def _in_use(self) -> Iterator[Buffer]:
        yield from (send.buffer for send in self._sends.values())
        yield from (given for _, given in self._buffers.values())
