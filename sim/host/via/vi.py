"""A VI: its queues, its state, its other end."""

from __future__ import annotations

from dataclasses import dataclass

from ..bell import Bell
from ..memory import Buffer
from .attributes import NetAddress, ViAttributes, ViState
from .completion_queue import VipCompletionQueue
from .nic import VipNic
from .queue import ViQueue

__all__ = ["Other", "Vi"]


@dataclass(frozen=True)
class Other:
    """The other end of a connection: `channel` of `node`, with `attributes`. `connection`: the connection's number."""

    node: int
    channel: int
    connection: int
    attributes: ViAttributes


class Vi:
    """VIP_VI_HANDLE: a VI of a process' open NIC, on channel `channel` of the card.

    - `state`, and `why`: how it came into ERROR, a line for people.
    - `send`, `receive`: its work queues. `told`: the completion queues that tell their ends, None for none.
    - `closes`: the agent ends its connection: what is posted now ends flushed.
    - `other`: the other end, while the card knows one.
    - `local`: the address that it is bound to.
    - `bell`: rung when its state changes.
    - `alive`: False once it is destroyed.

    The states, and what each call does in them:

    - IDLE: descriptors to receive are queued. Descriptors to send end flushed. It may be connected and destroyed.
    - CONNECT_PENDING: as IDLE, but it may neither be connected nor destroyed; VipDisconnect ends the try.
    - CONNECTED: descriptors are served. VipDisconnect flushes them and makes it IDLE.
    - ERROR: all descriptors end flushed, those posted from now on too. VipDisconnect makes it IDLE.
    """

    def __init__(
        self,
        nic: VipNic,
        channel: int,
        attributes: ViAttributes,
        *,
        ring: Buffer,
        send: ViQueue,
        receive: ViQueue,
        told: tuple[VipCompletionQueue | None, VipCompletionQueue | None],
        bell: Bell,
    ) -> None:
        self.nic, self.channel, self.attributes, self.ring = nic, channel, attributes, ring
        self.send, self.receive, self.told, self.bell = send, receive, told, bell
        self.state = ViState.IDLE
        self.why = ""
        self.closes = False
        self.other: Other | None = None
        self.local: NetAddress | None = None
        self.alive = True

    @property
    def queues(self) -> tuple[tuple[ViQueue, VipCompletionQueue | None], ...]:
        """Its queues, each with the completion queue that tells its ends."""
        return (self.send, self.told[0]), (self.receive, self.told[1])

    def become(self, state: ViState, why: str = "") -> None:
        """Change the state."""
        self.state, self.why = state, why
        self.bell.ring()

    def __repr__(self) -> str:
        return f"VI {self.channel} of node {self.nic.node}"
