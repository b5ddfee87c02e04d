"""Requests for connections: what processes here wait for, what has come from other nodes, and the agent's calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lanikai.firmware.lock import Lock

from ..bus import HostBus
from .attributes import NetAddress, ViAttributes
from .errors import VipReturn
from .link import RETRY_US, TRIES
from .messages import Message
from .nic import VipNic
from .vi import Other, Vi

__all__ = ["ANSWER_US", "ConnectionHandle", "Request", "ViCalls", "Waiter"]

ANSWER_US = 2 * RETRY_US * TRIES
"""Bound of a wait for another node's answer, both ways of the link.

A server waits so for its client, which has to say that it is ready too; a VI for the answer about another rate."""


class ViCalls(Protocol):
    """The agent as a connector sees it; `agent.Agent` says what each call is."""

    bus: HostBus
    lock: Lock

    def say(self, node: int, message: Message) -> None:
        """Queue a message for another agent."""

    def withdraw(self, node: int, request: int) -> int:
        """Take back messages that ask for a connection; returns how many had not been sent."""

    def cycles_of(self, us: int) -> int:
        """Card cycles of a time."""

    def reserve(self, vi: Vi, other: ViAttributes | None, own: ViAttributes | None = None) -> None:
        """Have the card promise what the VI asks for; raises VipError."""

    def release(self, vi: Vi) -> None:
        """Take that back."""

    async def open_vi(self, vi: Vi, other: Other) -> None:
        """Have the card connect a VI."""

    async def close_vi(self, vi: Vi) -> None:
        """Have the card end a VI's connection, flush its queues, take its promise back, and make it idle."""

    async def lose_vi(self, vi: Vi, why: str) -> None:
        """End a connection that is lost."""

    @property
    def vis(self) -> Mapping[int, Vi]:
        """Channel -> VI."""


@dataclass(eq=False)
class Waiter:
    """A server that waits at `address`; `handle` is what has come for it."""

    nic: VipNic
    address: NetAddress
    handle: ConnectionHandle | None = None


@dataclass(eq=False)
class ConnectionHandle:
    """VIP_CONN_HANDLE: another node's request that an end here has in its hands.

    - `nic`: the process here. `local`: its address.
    - `remote`: the other's address. `attributes`: those of its VI.
    - `node`, `channel`, `request`: the other's VI, and the number of its request.
    - `own`: the request of the peer here, None for a server.
    - `vi`: the VI here, once it has accepted. `connection`: the connection's number.
    - `outcome`: None until both have accepted, or it has ended.
    - `acceptable`: bandwidth that would be accepted, after an acceptance that failed for the card here; -1 for none.
    """

    nic: VipNic
    local: NetAddress
    node: int
    remote: NetAddress
    attributes: ViAttributes
    channel: int
    request: int
    own: Request | None = None
    vi: Vi | None = None
    connection: int = 0
    outcome: VipReturn | None = None
    acceptable: int = -1


@dataclass(eq=False)
class Request:
    """A request of a VI here to be connected to `remote`.

    - `peer`: it is a peer's, which both ends make.
    - `deadline`: the cycle in which it ends; None: never.
    - `asked`: messages that were queued for it.
    - `taken`: the other end has accepted it, and the card is being told.
    - `outcome`: how it has ended; None until then. `other`: the other end's attributes. `reason`: more about it.
    """

    number: int
    vi: Vi
    local: NetAddress
    remote: NetAddress
    peer: bool
    deadline: int | None
    asked: int = 0
    taken: bool = False
    outcome: VipReturn | None = None
    other: ViAttributes | None = None
    reason: str = ""
