"""Messages between managers. Each is one GM message; its layout is declared here once. Little endian.

    envelope   kind 8, reply 8, sender 16, incarnation 32, sequence 32; then the body of its kind

`incarnation` is the cycle in which the calling manager started, so that a manager that was started again is told from
its former self; an answer carries those of the call. `sequence` counts a manager's calls to one other manager.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum

from .flows import FlowId

__all__ = [
    "MESSAGE_BYTES",
    "Answer",
    "Envelope",
    "Kind",
    "Reply",
    "Request",
    "Stand",
    "Status",
    "Update",
    "pack_flow",
]

MESSAGE_BYTES = 4096
"""The longest message: a page."""
_ENVELOPE = struct.Struct("<BBHII")
_FLOW = struct.Struct("<BBHBx")
_ANSWER = struct.Struct("<BBHHHII")


class Kind(IntEnum):
    """What a message asks."""

    REQUEST = 1
    """To the master: make a flow premium (`Request`)."""
    STAND = 2
    """To the master: make a flow best-effort, or take its standing away (`Stand`)."""
    PORT_CLOSED = 3
    """To the master: a port's flows have no standing any more (one byte: the port)."""
    VOTE = 4
    """From the master: may it grant what this node takes part in? (no body)"""
    UPDATE = 5
    """From the master: IDTs of this node's best-effort flows (`Update`)."""

    @property
    def to_master(self) -> bool:
        """Whether it is the master that serves such calls."""
        return self not in (Kind.VOTE, Kind.UPDATE)


class Reply(IntEnum):
    """`Envelope.reply`."""

    CALL = 0
    ANSWER = 1
    WORKING = 2
    """The call has come and is being served: wait on."""


class Status(IntEnum):
    """How a call ended."""

    OK = 0
    REFUSED = 1
    """A criterion does not hold: `where`, `place`, `port`, `rate` (what is left)."""
    SILENT = 2
    """The manager of node `place`, which has to slow best-effort flows down first, does not answer."""
    NO_MASTER = 3
    """Most nodes have not voted for the manager that was asked; `place`: how many have."""
    BAD = 4
    """Not understood, or impossible."""


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A message: see above."""

    kind: Kind
    reply: Reply
    sender: int
    incarnation: int
    sequence: int
    body: bytes = b""

    def pack(self) -> bytes:
        """Its bytes."""
        head = (self.kind, self.reply, self.sender, self.incarnation, self.sequence)
        return _ENVELOPE.pack(*head) + self.body

    @classmethod
    def unpack(cls, message: bytes) -> Envelope:
        """From a message. Raises ValueError for what is none."""
        if len(message) < _ENVELOPE.size:
            raise ValueError(f"a message of {len(message)} bytes: at least {_ENVELOPE.size}")
        kind, reply, sender, incarnation, sequence = _ENVELOPE.unpack_from(message)
        return cls(
            kind=Kind(kind),
            reply=Reply(reply),
            sender=sender,
            incarnation=incarnation,
            sequence=sequence,
            body=message[_ENVELOPE.size :],
        )


def pack_flow(flow: FlowId) -> bytes:
    """A flow from the sender's node: source port 8, target port 8, target node 16, priority 8, 0."""
    return _FLOW.pack(flow.source_port, flow.target_port, flow.target, flow.priority)


def _flow(source: int, body: bytes, offset: int) -> FlowId:
    source_port, target_port, target, priority = _FLOW.unpack_from(body, offset)
    return FlowId(source, source_port, target, target_port, priority)


def _sized(body: bytes, size: int) -> None:
    if len(body) != size:
        raise ValueError(f"a body of {len(body)} bytes: {size} are right")


@dataclass(frozen=True, kw_only=True)
class Request:
    """`rate` bytes a second for a flow, whose node holds it to be best-effort with `weight` (0: it is not) until
    then."""

    flow: FlowId
    weight: int
    rate: int

    def pack(self) -> bytes:
        """Flow, weight 32, rate 32."""
        return pack_flow(self.flow) + struct.pack("<II", self.weight, self.rate)

    @classmethod
    def unpack(cls, source: int, body: bytes) -> Request:
        """From a body that node `source` sent. Raises ValueError."""
        _sized(body, _FLOW.size + 8)
        weight, rate = struct.unpack_from("<II", body, _FLOW.size)
        return cls(flow=_flow(source, body, 0), weight=weight, rate=rate)


@dataclass(frozen=True, kw_only=True)
class Stand:
    """A flow is to be best-effort with `weight`, or nothing (0), whatever it was."""

    flow: FlowId
    weight: int

    def pack(self) -> bytes:
        """Flow, weight 32."""
        return pack_flow(self.flow) + struct.pack("<I", self.weight)

    @classmethod
    def unpack(cls, source: int, body: bytes) -> Stand:
        """From a body that node `source` sent. Raises ValueError."""
        _sized(body, _FLOW.size + 4)
        return cls(flow=_flow(source, body, 0), weight=struct.unpack_from("<I", body, _FLOW.size)[0])


@dataclass(frozen=True, kw_only=True)
class Update:
    """The best-effort flows of a node: (flow, bytes a second, IDT in ticks) of each."""

    shares: Sequence[tuple[FlowId, int, int]]

    def pack(self) -> bytes:
        """For each: flow, rate 32, IDT 32."""
        return b"".join(pack_flow(flow) + struct.pack("<II", rate, idt) for flow, rate, idt in self.shares)

    @classmethod
    def unpack(cls, node: int, body: bytes) -> Update:
        """From a body to `node`. Raises ValueError."""
        step = _FLOW.size + 8
        if len(body) % step:
            raise ValueError(f"a body of {len(body)} bytes: a multiple of {step} is right")
        return cls(
            shares=[
                (_flow(node, body, at), *struct.unpack_from("<II", body, at + _FLOW.size))
                for at in range(0, len(body), step)
            ]
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a call ended: `status`; a refusal's `where`, `place`, `port`; `rate` bytes a second, `idt_ticks`;
    `vote`: 1 + the master voted for, 0 for none, and with it `rate` is the incarnation of who votes."""

    status: Status
    where: int = 0
    place: int = 0
    port: int = 0
    vote: int = 0
    rate: int = 0
    idt_ticks: int = 0

    def pack(self) -> bytes:
        """Status 8, where 8, place 16, port 16, vote 16, rate 32, IDT 32."""
        return _ANSWER.pack(*astuple(self))

    @classmethod
    def unpack(cls, body: bytes) -> Answer:
        """From a body. Raises ValueError."""
        _sized(body, _ANSWER.size)
        status, *rest = _ANSWER.unpack(body)
        names = ("where", "place", "port", "vote", "rate", "idt_ticks")
        return cls(status=Status(status), **dict(zip(names, rest, strict=True)))
