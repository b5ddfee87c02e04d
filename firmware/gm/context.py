"""The control program as its state machines see it: their shared state, and the calls that each has for the others.

`program.GmProgram` is the one `GmContext`. The state machines import this file and not the program, so the program
knows them and they do not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from lanikai.hdl.config import NicConfig
from lanikai.hdl.packet import Header

from ..accesses import AccessList
from ..processor import Processor
from .config import GmConfig
from .engine import HostDma
from .layout import Event, Layout, ReceiveDescriptor, Status
from .queues import ConnectionQueue
from .state import Assembly, Connection, Flow, Get, Packet, Port, SendStream, SendToken
from .wire import Code, FlowKey

__all__ = ["GmContext", "RdmaCalls", "RecvCalls", "SdmaCalls", "SendCalls", "TimerCalls"]


class SdmaCalls(Protocol):
    """SDMA, for the others."""

    waits_for: str

    def look_at(self, flow: Flow) -> None:
        """A flow may have become ready to send, or no longer ready."""

    def look_at_stream(self, stream: SendStream) -> None:
        """A stream may have become free to send, or blocked, or it has packets to send again."""

    def give_back(self, buffer: int) -> None:
        """A transmit buffer is free."""

    async def set_idt(self, flow: Flow, ticks: int) -> None:
        """Inside a step: another IDT for a flow."""

    async def forget(self, flow: Flow) -> None:
        """Inside a step: a flow's number is free."""


class SendCalls(Protocol):
    """SEND, for the others."""

    waits_for: str

    def submit(self, packet: Packet, buffer: int) -> None:
        """A packet is in a transmit buffer."""

    def acknowledge(self, connection: Connection, key: FlowKey) -> None:
        """Send the answer that is due on a flow."""

    def note(self, connection: Connection, key: FlowKey, code: Code) -> None:
        """Send a code to a node."""

    def store_header(self, accesses: AccessList, buffer: int, header: Header) -> None:
        """Write a header to SRAM."""


class RecvCalls(Protocol):
    """RECV, for the others."""

    @property
    def armed(self) -> int | None:
        """The receive buffer to which the next packet goes."""

    async def give_back(self, buffer: int) -> None:
        """A receive buffer is free."""


class RdmaCalls(Protocol):
    """RDMA, for the others."""

    waits_for: str

    def post(self, port: Port, event: Event) -> None:
        """Tell a port of an event."""

    def receive(
        self, port: Port, assembly: Assembly, buffer: int, address: int, length: int, event: Event | None
    ) -> None:
        """Move bytes of a receive buffer to host memory, then tell of an event."""


class TimerCalls(Protocol):
    """The timers, for the state machines."""

    async def watch(self, accesses: AccessList) -> None:
        """Inside a step: carry out `accesses`; a packet is on its way out."""

    def expired(self, stream: SendStream) -> bool:
        """Whether a stream's oldest message has come to one of its bounds."""

    async def pause(self, flow: Flow) -> None:
        """Inside a step: let a flow rest."""

    async def resume(self, stream: SendStream) -> None:
        """Inside a step: a flow rests no longer."""

    async def now(self) -> int:
        """Inside a step: the clock, ticks."""

    def after(self, now: int, ticks: int) -> int:
        """The clock's value `ticks` after `now`."""

    def left(self, deadline: int, now: int) -> int:
        """Ticks until a deadline, negative once it is past."""


class GmContext(Protocol):
    """The control program of `node`; `program.GmProgram` describes each attribute and call."""

    node: int
    incarnation: int
    gets: int
    nic: NicConfig
    gm: GmConfig
    layout: Layout
    processor: Processor
    host_dma: HostDma
    ports: list[Port]
    connections: dict[int, Connection]
    queue: ConnectionQueue
    flows: dict[int, Flow]
    dispatched: Callable[[int, int, FlowKey], None] | None

    @property
    def routes(self) -> Mapping[int, int]:
        """Node -> source route."""

    @property
    def sdma(self) -> SdmaCalls:
        """The state machine SDMA."""

    @property
    def send(self) -> SendCalls:
        """The state machine SEND."""

    @property
    def recv(self) -> RecvCalls:
        """The state machine RECV."""

    @property
    def rdma(self) -> RdmaCalls:
        """The state machine RDMA."""

    @property
    def timers(self) -> TimerCalls:
        """The timers."""

    def connection(self, node: int) -> Connection:
        """The connection to a node."""

    def flow(self, node: int, key: FlowKey) -> Flow | None:
        """The flow to a node; None if there is no room for it."""

    def advance(self) -> None:
        """A packet has been delivered, or a message has ended."""

    def complete(self, token: SendToken, status: Status) -> None:
        """A send token goes home."""

    def end_get(self, port: Port, get: Get, status: Status) -> None:
        """A GET ends without all of its bytes."""

    def enqueue(self, token: SendToken) -> None:
        """A message waits to go out."""

    def abort(self, token: SendToken, status: Status) -> None:
        """End a message that is under way."""

    def give_up(self, stream: SendStream) -> None:
        """No answer has come."""

    def heard(self, connection: Connection, incarnation: int) -> bool:
        """A packet has come from a node. Returns whether it is one of its present incarnation."""

    async def believe(self, connection: Connection, incarnation: int) -> bool:
        """Inside a step: whether another incarnation is the present one."""

    def abandon(self, port: Port, node: int, key: FlowKey) -> None:
        """A message will not be completed."""

    def token_available(self, port: Port, token: ReceiveDescriptor) -> None:
        """A receive token is free."""

    def sent_event(self, port: Port, token: int, status: Status) -> None:
        """Tell a port how a message ended."""
