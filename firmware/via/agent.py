"""The firmware's side of the agent: its requests, packets between agents, and notices to it.

The agent is the part of VIA in the operating system's kernel. It is trusted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header, Kind

from .. import registers
from ..accesses import AccessList
from ..driver_mailbox import DriverMailbox
from ..lock import Lock
from .config import WORD_BYTES
from .engines import Engines, Move, PacketOut, Transfer
from .layout import (
    AGENT_CHANNEL,
    HEADER_BYTES,
    NOTICE_BYTES,
    NOTICE_SLOT_BYTES,
    SEND_CONTROL_PACKET,
    NoticeKind,
    pack_broken,
)
from .state import Key, Vi, ViaContext
from .trace import Stage
from .wire import CONTROL_PACKET_BYTES

__all__ = ["Agent", "Flush"]

NOTICE_WORDS = 4
COUNTS = 1 << 32


class Flush(Protocol):
    """Empties the work queues of a VI (`Stages.flush`)."""

    async def __call__(self, vi: Vi) -> None:
        """Tell the end of all that it has posted."""


class Agent(DriverMailbox):
    """The agent of one card, by `engines`.

    A register write of DOORBELL_CHANNEL by the mailbox begins the channel's VI anew, whether it opens or closes it:
    what was posted is flushed, both counts of descriptors are 0. When it has been answered nothing of the VI's past is
    under way any more.

    - `meanwhile`: takes doorbells. `flush`: empties a VI's work queues.
    - `drain`: takes the doorbells that another processor's queue holds. Those of the VI's past are among them.
    """

    def __init__(
        self,
        context: ViaContext,
        engines: Engines,
        *,
        meanwhile: Callable[[], Awaitable[None]],
        flush: Flush,
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(
            engines.processor, context.nic, context.layout, meanwhile=meanwhile, says=context.wait
        )
        self.context, self.engines, self._flush, self._drain = context, engines, flush, drain
        self._count = 0
        self._turns = Lock(engines.processor.port.flag)
        self._late: deque[tuple[int, int, CompletionStatus]] = deque()

    async def request(self) -> None:
        """The agent has rung: do what the mailbox says."""
        await self.retry()
        async with self.processor.step("set_up"):
            count = await self.processor.load(self.context.layout.mailbox)
        if count == SEND_CONTROL_PACKET:
            await self._send()
        else:
            await self.set_up()

    async def written(self, offset: int, word: int) -> None:
        """Begin a VI anew whose channel is opened or closed."""
        register = registers.NIC_REGISTERS["DOORBELL_CHANNEL"]
        fields = register.unpack(word)
        channel = fields["channel"]
        if offset != register.offset or channel == AGENT_CHANNEL:
            return
        # Nobody is to hear of a connection that the agent has ended by itself.
        self._late = deque(late for late in self._late if late[0] != channel)
        declared = (
            {*self.context.declared, channel} if fields["open"] else {*self.context.declared} - {channel}
        )
        self.context.declared = sorted(declared)
        if self.context.nic.doorbell == "polled":
            # A word that is not looked at any more would raise the event for ever.
            accesses = AccessList()
            for receive in (False, True):
                accesses.write("DOORBELL_SELECT", channel=channel, receive=receive)
                accesses.read("DOORBELL_WORD")
            await self.processor.run("look", accesses)
        await self._drain()
        if channel in self.context.vis:
            vi = self.context.vi(channel)
            await self._flush(vi)
            await self.engines.quiet(channel)
            vi.reset()

    async def _send(self) -> None:
        """Send the agent's packet; then answer."""
        layout = self.context.layout
        accesses = AccessList()
        (answer,) = accesses.load(layout.mailbox + WORD_BYTES)
        low, high = accesses.load(layout.control_route, 2)
        found = accesses.load(layout.control_out, CONTROL_PACKET_BYTES // WORD_BYTES)
        async with self.processor.step("set_up", accesses=accesses):
            header = Header(
                route=low.get() | (high.get() & 0xFFFF) << 32,
                destination=high.get() >> 16,
                source=self.context.node,
                flow=AGENT_CHANNEL,
                length=CONTROL_PACKET_BYTES,
            )
            bits = header.pack()
            words = [bits >> 32 * word & 0xFFFFFFFF for word in range(HEADER_BYTES // WORD_BYTES)]
            words += [word.get() for word in found]
        self.context.control.append((answer.get(), words))

    async def send_control(self, answer: int, words: list[int]) -> None:
        """Send a packet of the agent's, in its turn among messages; then answer."""
        key = Key(AGENT_CHANNEL, 0)
        buffer = await self.engines.send_buffer(key=key, last=True)
        await self.engines.send_packet(
            PacketOut(buffer=buffer, payload_bytes=CONTROL_PACKET_BYTES, step="answer", words=words, key=key)
        )
        await self.post(answer, channel=AGENT_CHANNEL, number=0)

    async def packet(self, header: Header, buffer: int) -> None:
        """A packet of another agent has come: tell this one, if its ring of notices is not more than half full."""
        if header.kind is not Kind.DATA or header.length != CONTROL_PACKET_BYTES:
            self.context.drops["unknown"] += 1
            return
        async with self._turns:
            if not await self._notice(NoticeKind.CONTROL_PACKET, header.source, CompletionStatus.OK, buffer):
                self.context.drops["agent"] += 1

    async def tell(self, channel: int, connection: int, reason: CompletionStatus) -> None:
        """Tell the agent that the firmware has ended a VI's connection; later, if its ring is full now."""
        self._late.append((channel, connection, reason))
        await self.retry()

    async def retry(self) -> None:
        """Tell the agent what it could not be told before."""
        if not self._late:
            return
        async with self._turns:
            while self._late:
                late = channel, connection, reason = self._late[0]
                source, at = pack_broken(channel, connection), self.context.layout.notice_out
                if not await self._notice(NoticeKind.VI_BROKEN, source, reason, at):
                    return
                if self._late and self._late[0] is late:
                    self._late.popleft()

    async def _notice(self, kind: NoticeKind, source: int, reason: CompletionStatus, at: int) -> bool:
        """Write a notice into the ring, and interrupt the agent.

        Its payload stands behind a header at `at`, whose room the words before the payload take.

        Returns whether it had room. Packets leave half of the ring to the firmware's own notices.
        """
        context = self.context
        accesses = AccessList()
        ring, entries, consumed = accesses.load(context.layout.notices, 3)
        async with self.processor.step("notice", accesses=accesses):
            length = entries.get()
            room = length // 2 if kind is NoticeKind.CONTROL_PACKET else length
            if (self._count - consumed.get()) % COUNTS >= room:
                return False
            slot = ring.get() + NOTICE_SLOT_BYTES * (self._count % length)
            self._count = (self._count + 1) % COUNTS
            words = AccessList()
            words.store(at + WORD_BYTES, kind, source, reason)
            words.store(at + NOTICE_BYTES, self._count)
            await self.processor.carry_out(words)
        transfer = Transfer(
            moves=[Move(address=slot, sram=at + WORD_BYTES, bytes=NOTICE_BYTES, to_host=True)],
            step="notice",
            key=Key(AGENT_CHANNEL, self._count),
            stages=(Stage.PROGRAM_DATA, Stage.DATA),
        )
        await self.engines.move(transfer)
        async with self.processor.step("notice", 0):
            await self.processor.write("HOST_INTERRUPT", vector=1)
        return True
