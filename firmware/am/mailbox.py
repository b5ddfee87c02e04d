"""The driver's commands and their answers, and notices to it.

The driver is trusted. It writes a command into the mailbox and rings its channel. The firmware clears the command's
first word when it has taken it, and the next one may be written. So an unload that waits for a node far away holds up
no other command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lanikai.hdl.packet import Header, Kind

from ..accesses import Reading
from .card.engines import Move, Outgoing
from .frames import Paging
from .layout import HEADER_BYTES
from .state import NO_ROUTE, AmState, header_words
from .words import COMMAND_WORDS, NOTICE_WORDS, Command, CommandKind, CommandStatus, Notice, NoticeKind

__all__ = ["Mailbox", "Notices"]

COUNTS = 1 << 32


class Notices:
    """The ring of notices in host memory.

    A notice that finds the ring full waits until the driver has consumed one: none is lost but those of raw packets. At
    most one a subject waits, so the number of those that wait is bounded.
    """

    def __init__(self, state: AmState) -> None:
        self.state = state
        self.ring = 0
        self.count = self.consumed = 0
        self._waiting: dict[tuple[NoticeKind, int], Notice] = {}
        self._faults: set[int] = set()

    def set_ring(self, address: int) -> None:
        """The ring is at a host address, and empty."""
        self.ring, self.count, self.consumed = address, 0, 0
        self._send()

    def consume(self, count: int) -> None:
        """The driver has consumed so many notices in all."""
        if (count - self.consumed) % COUNTS <= self._under_way:
            self.consumed = count
        self._send()

    def fault(self, endpoint: int) -> None:
        """A packet has come for an endpoint in host memory. Told once until it is loaded."""
        if endpoint not in self._faults:
            self._faults.add(endpoint)
            self._tell(Notice(kind=NoticeKind.ENDPOINT_FAULT, endpoint=endpoint))

    def forget_fault(self, endpoint: int) -> None:
        """The endpoint is on its way, or gone: the next fault is a new one."""
        self._faults.discard(endpoint)

    def event(self, endpoint: int) -> None:
        """A receive queue is no longer empty."""
        self._tell(Notice(kind=NoticeKind.EVENT, endpoint=endpoint))

    def unreachable(self, node: int) -> None:
        """A node gives no answer."""
        self._tell(Notice(kind=NoticeKind.UNREACHABLE, node=node))

    def raw(self, header: Header, buffer: int, release: Callable[[], None]) -> None:
        """A raw packet is in a receive buffer; `release` is called when that is free."""
        length = -(-header.length // 4) * 4
        half = self._under_way >= self.state.config.notice_entries // 2
        if not self.ring or half or header.length > self.state.layout.raw_bytes:
            self.state.drops["raw"] += 1
            release()
            return
        notice = Notice(
            kind=NoticeKind.RAW_PACKET, node=header.source, length=header.length, header=header.pack()
        )
        packet = Move(
            host=self._slot + 4 * (NOTICE_WORDS - HEADER_BYTES // 4),
            sram=buffer,
            bytes=HEADER_BYTES + length,
            to_host=True,
            done=lambda error: release(),
        )
        self._write(notice, packet)

    @property
    def waiting(self) -> int:
        """Notices that wait for room."""
        return len(self._waiting)

    @property
    def _under_way(self) -> int:
        return (self.count - self.consumed) % COUNTS

    @property
    def _slot(self) -> int:
        layout = self.state.layout
        return self.ring + layout.notice_bytes * (self.count % self.state.config.notice_entries)

    def _tell(self, notice: Notice) -> None:
        self._waiting.setdefault((notice.kind, notice.endpoint or notice.node), notice)
        self._send()

    def _send(self) -> None:
        while self.ring and self._waiting and self._under_way < self.state.config.notice_entries:
            self._write(self._waiting.pop(next(iter(self._waiting))))

    def _write(self, notice: Notice, packet: Move | None = None) -> None:
        """Write the words, the packet, and last the running number; then interrupt the driver."""
        state, layout = self.state, self.state.layout
        words = notice.pack()[: NOTICE_WORDS - HEADER_BYTES // 4 if packet else NOTICE_WORDS]
        slot = self._slot
        self.count = (self.count + 1) % COUNTS
        state.script.pay("notice")
        moves = state.host_dma.moves
        moves.append(Move(host=slot, sram=layout.notice_out, bytes=4 * len(words), to_host=True, words=words))
        if packet is not None:
            moves.append(packet)
        moves.append(
            Move(
                host=slot + layout.notice_number,
                sram=layout.notice_out + layout.notice_number,
                bytes=4,
                to_host=True,
                done=lambda error: state.script.write("HOST_INTERRUPT", vector=1),
                words=(self.count,),
            )
        )


class Mailbox:
    """Commands: each is carried out by `paging`, or at once, and answered."""

    def __init__(self, state: AmState, paging: Paging, notices: Notices) -> None:
        self.state, self.paging, self.notices = state, paging, notices
        self._raw: deque[Command] = deque()

    def rung(self) -> None:
        """The driver has rung: read the mailbox in the next pass."""
        words = self.state.script.load(self.state.layout.mailbox, COMMAND_WORDS)
        self.state.then(lambda: self._take(words))

    def _take(self, readings: list[Reading]) -> None:
        words = [reading.get() for reading in readings]
        if not words[0]:
            return  # taken before
        self.state.script.pay("command")
        self.state.script.store(self.state.layout.mailbox, [0])
        try:
            command = Command.unpack(words)
        except ValueError:
            self._answer(words[1], words[2], CommandStatus.BAD_COMMAND)
            return
        self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        def answer(status: CommandStatus) -> None:
            self._answer(command.number, command.answer, status)

        match command.kind:
            case CommandKind.LOAD:
                self.paging.load(command, answer)
            case CommandKind.UNLOAD:
                self.paging.unload(command.frame, answer)
            case CommandKind.KILL:
                self.paging.kill(command.endpoint, answer)
            case CommandKind.CREATE:
                answer(self.paging.create(command.endpoint))
            case CommandKind.SET_ROUTE:
                answer(self._set_route(command.node, command.route))
            case CommandKind.SEND_RAW:
                self._send_raw(command, answer)
            case CommandKind.SET_RING:
                self.notices.set_ring(command.page)
                answer(CommandStatus.OK)
            case CommandKind.CONSUMED:
                self.notices.consume(command.length)

    def _answer(self, number: int, address: int, status: CommandStatus) -> None:
        if address % 4:
            self.state.drops["answer"] += 1
            return
        self.state.host_dma.moves.append(
            Move(
                host=address,
                sram=self.state.layout.answer,
                bytes=8,
                to_host=True,
                words=(int(status), number),
            )
        )

    def _set_route(self, node: int, route: int) -> CommandStatus:
        if node >= self.state.config.nodes_max:
            return CommandStatus.BAD_COMMAND
        if route == NO_ROUTE:
            self.state.routes.pop(node, None)
        else:
            self.state.routes[node] = route
        return CommandStatus.OK

    def _send_raw(self, command: Command, answer: Callable[[CommandStatus], None]) -> None:
        """Send what stands in the raw area, which is the driver's again when the answer comes."""
        layout = self.state.layout
        if command.length > layout.raw_bytes:
            answer(CommandStatus.TOO_LONG)
            return
        header = Header(kind=Kind.PROBE, route=command.route, source=self.state.node, length=command.length)
        self.state.script.store(layout.raw_out, header_words(header))
        self.state.send.packets.append(
            Outgoing(
                address=layout.raw_out,
                bytes=command.length,
                sent=lambda: answer(CommandStatus.OK),
                # Raw packets may go ways that could deadlock with those of messages: they have the last VL.
                vl=layout.nic.link.vls - 1,
            )
        )
