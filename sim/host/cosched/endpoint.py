"""An endpoint: the queue of messages of one process, which user level and the kernel's driver can look at."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from ..cpu.host import Host
from ..cpu.process import HostProcess
from ..cpu.requests import Signal
from .config import CoschedConfig

__all__ = ["Endpoint", "Message", "NodeGround"]


class NodeGround(Protocol):
    """The node, as far as endpoint, card and strategy stand on it (`lanikai.sim.host.cosched.node.Node`). Its `card`
    and `strategy` are a `Card` and a `Strategy`, which stand on it themselves."""

    host: Host
    config: CoschedConfig
    endpoints: list[Endpoint]
    card: Any
    strategy: Any
    way_cycles: int
    check_cycles: int
    estimate_cycles: int
    spin_cycles: int

    def out_cycles(self, length: int) -> int:
        """Cycles in which the card has sent so many bytes."""


@dataclass(frozen=True)
class Message:
    """A message of rank `source` of a job. `sent_at`: the cycle in which its send began."""

    source: int
    tag: int
    data: bytes
    sent_at: int


class Endpoint:
    """The endpoint of a process of `node`.

    - `inbox`: messages in host memory that the process has not taken: pending ones. `arrived`: one has come since the
      process looked last.
    - `semaphore`: the driver's, on which the process blocks.
    - `last_arrival`: the cycle of the latest arrival.
    - `waits`: the process is inside a receive and has not found its message. The library keeps it where the driver can
      see it.
    - `spin_left`: cycles that it may still spin in this receive. `lowered`: it has yielded in this receive.
    """

    def __init__(self, node: NodeGround) -> None:
        self.node = node
        self.process: HostProcess | None = None
        self.inbox: deque[Message] = deque()
        self.arrived = Signal()
        self.semaphore = Signal()
        self.last_arrival = -1
        self.waits = False
        self.spin_left = 0
        self.lowered = False

    @property
    def pending(self) -> bool:
        """Whether a message is there that has not been taken."""
        return bool(self.inbox)

    def take_in(self, message: Message) -> None:
        """Put a message into the queue: the card has written it into host memory."""
        self.inbox.append(message)
        self.last_arrival = self.node.host.time.cycle
        self.arrived.set()
