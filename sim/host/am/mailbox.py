"""The driver's commands to the firmware, and the firmware's notices to the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lanikai.firmware.am.layout import DRIVER_CHANNEL, HEADER_BYTES, AmLayout
from lanikai.firmware.am.words import COMMAND_WORDS, NOTICE_WORDS, Command, CommandKind, CommandStatus, Notice
from lanikai.firmware.lock import Lock
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES

from ..bus import HostBus, Watch
from ..memory import PAGE_BYTES, Buffer, PageAllocator
from .errors import AmCode, AmError

__all__ = ["Mailbox", "NoticeRing"]

LOOK_CYCLES = 64
"""Between two looks whether the firmware has taken a command, which takes it a pass of its loop."""
MOST_LOOKS = 4096
"""Looks after which the firmware is given up: 7 ms at 37.5 MHz, longer than it takes to boot."""
ANSWER_BYTES = 8


class _Answer:
    """A place for the answer to one command: status, then the command's number."""

    def __init__(self, bus: HostBus, buffer: Buffer) -> None:
        self.start = buffer.start
        self.words = buffer.data.view("<u4")
        self.watch: Watch = bus.watch(buffer.start, buffer.length)


class Mailbox:
    """Commands of the driver. Each has a place of its own for its answer, so a slow one holds up no other.

    The firmware clears the mailbox' first word when it has taken a command. `ask` writes that word last.
    """

    def __init__(self, bus: HostBus, layout: AmLayout, pages: PageAllocator) -> None:
        self._bus, self._layout = bus, layout
        self._turn = Lock(bus.flag)
        page = pages.allocate(PAGE_BYTES)
        self._room = [
            Buffer(page.start + at, ANSWER_BYTES, page.data[at : at + ANSWER_BYTES])
            for at in reversed(range(0, PAGE_BYTES, ANSWER_BYTES))
        ]
        self._answers: list[_Answer] = []
        self._number = 0
        self._taken = True

    async def ask(
        self,
        kind: CommandKind,
        *,
        frame: int = 0,
        endpoint: int = 0,
        page: int = 0,
        record: int = 0,
        node: int = 0,
        route: int = 0,
        length: int = 0,
        raw: Sequence[int] = (),
    ) -> CommandStatus:
        """Have the firmware carry a command out, and return its answer. `raw`: words of a raw packet.

        Raises AmError if the firmware takes no commands.
        """
        # There are as many as commands under way at once: one for each move, and for each call of a process.
        answer = self._answers.pop() if self._answers else _Answer(self._bus, self._room.pop())
        async with self._turn:
            await self._until_taken()
            self._number = number = (self._number + 1) % (1 << 32)
            answer.words[:] = number + 1 & 0xFFFFFFFF
            command = Command(
                kind=kind,
                frame=frame,
                endpoint=endpoint,
                number=number,
                answer=answer.start,
                page=page,
                record=record,
                node=node,
                route=route,
                length=length,
            )
            await self._put(command, raw)
        while int(answer.words[1]) != number:
            await answer.watch.wait()
        if self._number == number:
            self._taken = True
        status = CommandStatus(int(answer.words[0]))
        self._answers.append(answer)
        return status

    async def tell(self, kind: CommandKind, *, length: int) -> None:
        """Give a command that has no answer."""
        async with self._turn:
            await self._until_taken()
            self._number = (self._number + 1) % (1 << 32)
            await self._put(Command(kind=kind, number=self._number, length=length), ())

    async def _put(self, command: Command, raw: Sequence[int]) -> None:
        words = command.pack()
        at = self._layout.mailbox
        self._taken = False
        await self._bus.write_all(
            [
                *((self._layout.raw_out + HEADER_BYTES + 4 * i, word) for i, word in enumerate(raw)),
                *((at + 4 * i, words[i]) for i in range(1, COMMAND_WORDS)),
                (at, words[0]),
                (DOORBELL_BASE + DOORBELL_PAGE_BYTES * DRIVER_CHANNEL, command.number & 0x7FFFFFFF),
            ]
        )

    async def _until_taken(self) -> None:
        """Wait until the firmware has taken the command before."""
        for _ in range(MOST_LOOKS):
            if not self._taken:
                self._taken = await self._bus.read(self._layout.mailbox) == 0
            if self._taken:
                return
            await self._bus.sleep(LOOK_CYCLES)
        raise AmError(
            AmCode.AM_ERR_RESOURCE,
            f"node {self._bus.node}: the card's firmware takes no command after {MOST_LOOKS * LOOK_CYCLES} cycles: "
            "start an AmProgram on it",
        )


class NoticeRing:
    """The ring of notices in host memory. `consumed`: notices taken out of it, in all."""

    def __init__(self, layout: AmLayout, pages: PageAllocator) -> None:
        self._layout = layout
        self._ring = pages.allocate(layout.notice_ring_bytes)
        self._ring.data[:] = 0
        self._words = self._ring.data.view("<u4").reshape(layout.config.notice_entries, -1)
        self.consumed = self._told = 0

    @property
    def start(self) -> int:
        """Its host address."""
        return self._ring.start

    @property
    def owed(self) -> bool:
        """Whether the firmware should hear how many have been consumed: a quarter of the ring since it last did."""
        return (self.consumed - self._told) % (1 << 32) >= self._layout.config.notice_entries // 4

    async def tell(self, mailbox: Mailbox) -> None:
        """Tell the firmware how many have been consumed."""
        self._told = self.consumed
        await mailbox.tell(CommandKind.CONSUMED, length=self.consumed)

    def take(self, hear: Callable[[Notice, bytes], None]) -> bool:
        """Take the next notice, if there is one, and call `hear(notice, payload)`. Returns whether there was."""
        words = self._words[self.consumed % len(self._words)]
        if int(words[self._layout.notice_number // 4]) != (self.consumed + 1) % (1 << 32):
            return False
        self.consumed = (self.consumed + 1) % (1 << 32)
        notice = Notice.unpack(words[:NOTICE_WORDS].tolist())
        length = min(notice.length, self._layout.raw_bytes)
        hear(notice, words[NOTICE_WORDS:].tobytes()[:length])
        return True
