"""Messages between managers. Each is one GM message; its layout is declared here once. Little endian.

    envelope   kind 8, reply 8, sender 16, incarnation 32, sequence 32; then the body of its kind

`incarnation` is the cycle in which the calling manager started. It tells a manager that was started again from its
former self; an answer carries the incarnation of the call. `sequence` counts a manager's calls to one other manager.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum

from .flows import FlowId
from .versions import Ballot, Entry, Version

__all__ = [
    "ENTRIES",
    "MESSAGE_BYTES",
    "UPDATE_FLOWS",
    "Answer",
    "Change",
    "Envelope",
    "Kind",
    "Reply",
    "Request",
    "Stand",
    "Status",
    "Update",
    "pack_ballot",
    "pack_entries",
    "pack_flow",
    "pack_version",
    "unpack_ballot",
    "unpack_entries",
    "unpack_version",
]

MESSAGE_BYTES = 4096
"""The longest message: a page."""
_ENVELOPE = struct.Struct("<BBHII")
_FLOW = struct.Struct("<BBHBx")
_ANSWER = struct.Struct("<BBHHHII")
_BALLOT = struct.Struct("<IH")
_VERSION = struct.Struct("<IHI")
_CHANGE = struct.Struct("<IHIIHIHHB")
_ENTRY = struct.Struct("<HBBHBIB")
ENTRIES = (MESSAGE_BYTES - _ENVELOPE.size - max(_ANSWER.size, _CHANGE.size)) // _ENTRY.size
"""Entries of the ledger that one message holds."""
UPDATE_FLOWS = (MESSAGE_BYTES - _ENVELOPE.size - _BALLOT.size) // (_FLOW.size + 8)
"""Flows that one UPDATE holds: 291."""


class Kind(IntEnum):
    """The purpose of a message."""

    REQUEST = 1
    """To the master: make a flow premium (`Request`)."""
    STAND = 2
    """To the master: make a flow best-effort, or take its standing away (`Stand`)."""
    PORT_CLOSED = 3
    """To the master: a port's flows have no standing any more.

    One byte: the port; 255: the node has been started anew, and holds nothing.
    """
    VOTE = 4
    """From a candidate: may it be the master? (a ballot)"""
    UPDATE = 5
    """From the master: IDTs of this node's best-effort flows (`Update`)."""
    CHANGE = 6
    """From the master: a change of the ledger, to be copied (`Change`)."""
    FETCH = 7
    """From a candidate: this node's copy of the ledger, from an entry on (a ballot, the entry's number 32)."""
    RENEW = 9
    """To the master: is it obeyed by most nodes, and what does this node hold by its ledger?

    One byte: 1 if the master is to tell; the answer has entries.
    """
    PING = 8
    """From a manager that was asked in the master's stead: is this node's the master? (no body)"""

    @property
    def to_master(self) -> bool:
        """Whether it is the master that serves such calls."""
        return self in (Kind.REQUEST, Kind.STAND, Kind.PORT_CLOSED)

    @property
    def line(self) -> int:
        """Calls of one line follow one another: 1 to the master, 2 for a lease, 0 from a master or candidate."""
        return 2 if self is Kind.RENEW else int(self.to_master)


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
    """The one that was asked is not the master, or it asks and is not obeyed.

    - `vote`: 1 + the node whose manager is held to be the master, or 0.
    - `place`: how many nodes voted for the one that was asked.
    """
    BAD = 4
    """Not understood, or impossible."""
    BEHIND = 5
    """The copy of the ledger here is not the one that the change starts from."""
    LOST = 6
    """The one that was asked is no longer master. The change may come into force with the next one, or not."""


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A message, as the module describes it."""

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
        """The envelope of a message. Raises ValueError if it is none."""
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
    """`rate` bytes a second for a flow. Its node holds it to be best-effort with `weight` (0: it is not) until then."""

    flow: FlowId
    weight: int
    rate: int

    def pack(self) -> bytes:
        """Flow, weight 32, rate 32."""
        return pack_flow(self.flow) + struct.pack("<II", self.weight, self.rate)

    @classmethod
    def unpack(cls, source: int, body: bytes) -> Request:
        """The request in a body that node `source` sent. Raises ValueError."""
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
        """The stand in a body that node `source` sent. Raises ValueError."""
        _sized(body, _FLOW.size + 4)
        return cls(flow=_flow(source, body, 0), weight=struct.unpack_from("<I", body, _FLOW.size)[0])


@dataclass(frozen=True, kw_only=True)
class Update:
    """From the master with `ballot`: best-effort flows of a node, up to `UPDATE_FLOWS`, each as (flow, bytes a second,
    IDT in ticks)."""

    ballot: Ballot
    shares: Sequence[tuple[FlowId, int, int]]

    def pack(self) -> bytes:
        """Ballot; for each: flow, rate 32, IDT 32."""
        shares = [pack_flow(flow) + struct.pack("<II", rate, idt) for flow, rate, idt in self.shares]
        return b"".join([_BALLOT.pack(*self.ballot), *shares])

    @classmethod
    def unpack(cls, node: int, body: bytes) -> Update:
        """The update in a body to `node`. Raises ValueError."""
        step = _FLOW.size + 8
        if len(body) < _BALLOT.size or (len(body) - _BALLOT.size) % step:
            raise ValueError(
                f"a body of {len(body)} bytes: {_BALLOT.size} and a multiple of {step} are right"
            )
        return cls(
            ballot=Ballot(*_BALLOT.unpack_from(body)),
            shares=[
                (_flow(node, body, at), *struct.unpack_from("<II", body, at + _FLOW.size))
                for at in range(_BALLOT.size, len(body), step)
            ],
        )


def pack_ballot(ballot: Ballot, *more: int) -> bytes:
    """Count 32, node 16; then words of 32 bits."""
    return _BALLOT.pack(*ballot) + struct.pack(f"<{len(more)}I", *more)


def unpack_ballot(body: bytes, more: int = 0) -> tuple[Ballot, tuple[int, ...]]:
    """A ballot and so many words behind it. Raises ValueError."""
    _sized(body, _BALLOT.size + 4 * more)
    return Ballot(*_BALLOT.unpack_from(body)), struct.unpack_from(f"<{more}I", body, _BALLOT.size)


def pack_entries(entries: Iterable[Entry]) -> bytes:
    """For each: source node 16, source port 8, target port 8, target node 16, priority 8, rate 32, weight 8."""
    return b"".join(
        _ENTRY.pack(f.source, f.source_port, f.target_port, f.target, f.priority, rate, weight)
        for f, rate, weight in entries
    )


def unpack_entries(body: bytes) -> list[Entry]:
    """The entries in a body. Raises ValueError."""
    if len(body) % _ENTRY.size:
        raise ValueError(f"entries of {len(body)} bytes: a multiple of {_ENTRY.size} is right")
    return [
        Entry(FlowId(source, source_port, target, target_port, priority), rate, weight)
        for source, source_port, target_port, target, priority, rate, weight in _ENTRY.iter_unpack(body)
    ]


@dataclass(frozen=True, kw_only=True)
class Change:
    """From the master with `ballot`: a change of the ledger.

    The ledger of version `base`, with `entries` in place of what their flows held, becomes that of version (`ballot`,
    `index`). With `reset` the entries are all of it, whatever was before. If there are several messages, each says how
    many entries there are in all (`total`), and from which number on its own are (`at`).
    """

    ballot: Ballot
    base: Version
    index: int
    reset: bool
    at: int
    total: int
    entries: Sequence[Entry]

    @property
    def version(self) -> Version:
        """Version of the ledger after the change."""
        return Version(self.ballot, self.index)

    def pack(self) -> bytes:
        """Ballot, index 32, base (32, 16, 32), place 16, total 16, reset 8; entries."""
        (count, node), base_index = self.base
        head = (*self.ballot, self.index, count, node, base_index, self.at, self.total, int(self.reset))
        return _CHANGE.pack(*head) + pack_entries(self.entries)

    @classmethod
    def unpack(cls, body: bytes) -> Change:
        """The change in a body. Raises ValueError."""
        if len(body) < _CHANGE.size:
            raise ValueError(f"a body of {len(body)} bytes: at least {_CHANGE.size}")
        count, node, index, base_count, base_node, base_index, at, total, reset = _CHANGE.unpack_from(body)
        return cls(
            ballot=Ballot(count, node),
            base=Version(Ballot(base_count, base_node), base_index),
            index=index,
            reset=bool(reset),
            at=at,
            total=total,
            entries=unpack_entries(body[_CHANGE.size :]),
        )


def pack_version(version: Version, entries: int) -> bytes:
    """A vote's words on the voter's copy of the ledger: its version, how many entries it has."""
    return _VERSION.pack(*version.ballot, version.step) + struct.pack("<I", entries)


def unpack_version(more: bytes) -> tuple[Version, int]:
    """The version and the number of entries in a vote's words. Raises ValueError."""
    _sized(more, _VERSION.size + 4)
    count, node, index = _VERSION.unpack_from(more)
    return Version(Ballot(count, node), index), struct.unpack_from("<I", more, _VERSION.size)[0]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a call ended.

    - `status`: the outcome.
    - `where`, `place`, `port`: of a refusal.
    - `rate`, `idt_ticks`: bytes a second, and an IDT. With a vote `rate` is the incarnation of who votes.
    - `vote`: 1 + the master voted for, 0 for none.
    - `more`: in a vote the version of the ledger, in a fetch entries.
    """

    status: Status
    where: int = 0
    place: int = 0
    port: int = 0
    vote: int = 0
    rate: int = 0
    idt_ticks: int = 0
    more: bytes = b""

    def pack(self) -> bytes:
        """Status 8, where 8, place 16, port 16, vote 16, rate 32, IDT 32; more."""
        *fields, more = astuple(self)
        return _ANSWER.pack(*fields) + bytes(more)

    @classmethod
    def unpack(cls, body: bytes) -> Answer:
        """The answer in a body. Raises ValueError."""
        if len(body) < _ANSWER.size:
            raise ValueError(f"a body of {len(body)} bytes: at least {_ANSWER.size}")
        status, *rest = _ANSWER.unpack_from(body)
        names = ("where", "place", "port", "vote", "rate", "idt_ticks")
        return cls(status=Status(status), more=body[_ANSWER.size :], **dict(zip(names, rest, strict=True)))
