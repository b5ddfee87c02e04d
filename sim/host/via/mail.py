"""The driver of a card with VIA: notices of the firmware, and messages to and from the agents of other nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from lanikai.firmware.lock import Lock
from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.layout import (
    NOTICE_NUMBER,
    NOTICE_SLOT_BYTES,
    SEND_CONTROL_PACKET,
    NoticeKind,
    ViaLayout,
    unpack_broken,
)
from lanikai.firmware.via.wire import CONTROL_PACKET_BYTES
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..bell import Bell
from ..bus import HostBus
from ..config import KitConfig, cycles
from ..kit.card_driver import CardDriver
from .link import Link
from .messages import Message

__all__ = ["MailDriver"]

NOTICES = 32
"""Slots of the ring in which the firmware tells the agent: a page. Control packets beyond are dropped, and repeated."""
_COUNTS = 1 << 32


class MailDriver(CardDriver):
    """A card's driver that hears the firmware's notices and speaks with other agents.

    - `config`, `layout`: the firmware's.
    - `lock`: whoever changes the state of a VI, or gives or takes a resource, has it. No wait for another node is made
      with it. So a call that has begun ends, whatever happens to its process.
    - `bell`: rung when a state changes for which somebody may wait.
    - `links`: node -> the link to its agent.
    """

    program = "ViaProgram"

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: ViaConfig | None = None,
        kit: KitConfig | None = None,
    ) -> None:
        self.config = ViaConfig() if config is None else config
        self.layout = ViaLayout(nic, self.config)
        super().__init__(
            bus, nic=nic, routes=routes, kit=kit, mailbox=self.layout.mailbox, broken=self.layout.broken
        )
        self.lock = Lock(bus.flag)
        self.bell = Bell(bus)
        self.links: dict[int, Link] = {}
        self._notice_ring = self.pages.allocate(NOTICES * NOTICE_SLOT_BYTES)
        self._notice_words = self._notice_ring.data.view("<u4").reshape(NOTICES, -1)
        self._noticed = 0
        self._inbox: deque[tuple[NoticeKind, int, int, bytes]] = deque()
        self._heard: deque[tuple[int, Message, bool]] = deque()

    def start(self) -> None:
        """Spawn the interrupt's handler, and the agent's own work."""
        super().start()
        self.bus.spawn(self._serve(), f"agent[{self.bus.node}]")

    def cycles_of(self, us: int) -> int:
        """Card cycles of a time in microseconds."""
        return cycles(1000 * us, self.nic)

    def say(self, node: int, message: Message) -> None:
        """Queue a message for the agent of `node`, to which there is a route."""
        self._link(node).post(message)

    def withdraw(self, node: int, request: int) -> int:
        """Take back messages that ask for a connection and have not been sent; returns how many."""
        return self._link(node).withdraw(request)

    def _link(self, node: int) -> Link:
        if node not in self.links:
            self.links[node] = Link(
                self.bus,
                self.nic,
                node,
                send=self._send_packet,
                hear=lambda other, message: self._put((other, message, True)),
                lost=lambda other, message: self._put((other, message, False)),
            )
        return self.links[node]

    def _put(self, item: tuple[int, Message, bool]) -> None:
        self._heard.append(item)
        self.bell.ring()

    async def _send_packet(self, node: int, packet: bytes) -> None:
        """Have the firmware send a control packet; returns when it has taken it."""
        route = self.routes[node]
        words = [
            route & 0xFFFFFFFF,
            route >> 32 | node << 16,
            *(int.from_bytes(packet[i : i + 4], "little") for i in range(0, CONTROL_PACKET_BYTES, 4)),
        ]
        async with self._turns:
            await self.bus.write_all(
                [(self.layout.control_route + 4 * i, word) for i, word in enumerate(words)]
            )
            await self._ask([SEND_CONTROL_PACKET, self._answer.start])

    async def _notices(self) -> None:
        """Take what the firmware has put into the ring of notices."""
        await self._bury()
        before = self._noticed
        while True:
            words = self._notice_words[self._noticed % NOTICES]
            if int(words[NOTICE_NUMBER]) != (self._noticed + 1) % _COUNTS:
                break
            kind, source, reason = (int(word) for word in words[:3])
            packet = words[3:NOTICE_NUMBER].tobytes()
            self._inbox.append((NoticeKind(kind), source, reason, packet))
            self._noticed = (self._noticed + 1) % _COUNTS
        if self._noticed != before:
            await self.bus.write(self.layout.notices + 8, self._noticed)
            self.bell.ring()

    async def _serve(self) -> None:
        """Give the firmware its ring of notices, then act on what it and other agents tell, one after the other."""
        async with self._turns:
            await self._ask([0, self._answer.start])  # the firmware has booted once it answers
            ring = [self._notice_ring.start, NOTICES, 0]
            await self.bus.write_all([(self.layout.notices + 4 * i, word) for i, word in enumerate(ring)])
        while True:
            await self.bell.until(lambda: bool(self._inbox or self._heard))
            while self._inbox:
                kind, source, reason, packet = self._inbox.popleft()
                if kind is NoticeKind.VI_BROKEN:
                    await self._hear_broken(*unpack_broken(source), CompletionStatus(reason))
                elif (message := Message.unpack(packet)) is not None and source in self.routes:
                    await self._link(source).came(message)
            while self._heard:
                node, message, heard = self._heard.popleft()
                async with self.lock:
                    await (self._hear if heard else self._lost)(node, message)

    async def _hear_broken(self, channel: int, connection: int, reason: CompletionStatus) -> None:
        """The firmware has ended a connection of a VI."""
        raise NotImplementedError

    async def _hear(self, node: int, message: Message) -> None:
        """Another agent has said something; the lock is held."""
        raise NotImplementedError

    async def _lost(self, node: int, message: Message) -> None:
        """Another agent has not answered a message; the lock is held."""
        raise NotImplementedError
