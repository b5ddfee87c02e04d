"""A bare driver and bare processes on a host whose card runs the program of virtual networks, for tests.

A process here writes its page as a library would, but keeps to no rule unless a test wants it to.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from lanikai.firmware.am.layout import AmLayout, PageWord, Queue
from lanikai.firmware.am.words import (
    COMMAND_WORDS,
    ENTRY_WORDS,
    NOTICE_WORDS,
    RECORD_BYTES,
    Command,
    CommandKind,
    CommandStatus,
    Counts,
    EndpointRecord,
    Entry,
    Notice,
    unpack_pair,
)
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES


class Endpoint:
    """An endpoint of a node: its memory, and its process' counts."""

    def __init__(self, node: AmHost, number: int, tag: int, segment_bytes: int = 0) -> None:
        layout = node.layout
        self.node, self.number, self.tag = node, number, tag
        self.page = node.allocate(layout.config.page_bytes)
        self.record = node.allocate(RECORD_BYTES)
        self.send_staging = node.allocate(layout.staging_bytes)
        self.receive_staging = node.allocate(layout.staging_bytes)
        self.segment = node.allocate(segment_bytes) if segment_bytes else 0
        record = EndpointRecord(
            endpoint=number,
            tag=tag,
            send_staging=self.send_staging,
            receive_staging=self.receive_staging,
            segment=self.segment,
            segment_bytes=segment_bytes,
        )
        node.put(self.record, record.pack())
        self.frame: int | None = None
        self.posted, self.consumed = [0, 0], [0, 0]

    async def read(self, offset: int, words: int = 1) -> list[int]:
        """Words of the page, from the frame or from host memory."""
        if self.frame is None:
            return self.node.get(self.page + offset, words)
        base = self.node.layout.frame(self.frame) + offset
        return [await self.node.host.read(base + 4 * at) for at in range(words)]

    async def write(self, offset: int, words: Any) -> None:
        """Write words of the page; the endpoint must be resident."""
        assert self.frame is not None, "a fault"
        base = self.node.layout.frame(self.frame) + offset
        for at, word in enumerate(words):
            await self.node.host.write(base + 4 * at, word)

    async def ring(self) -> None:
        """Ring the doorbell with the present counts."""
        counts = Counts(
            requests_posted=self.posted[0],
            replies_posted=self.posted[1],
            requests_consumed=self.consumed[0],
            replies_consumed=self.consumed[1],
        )
        await self.ring_word(counts.word())

    async def ring_word(self, word: int) -> None:
        """Ring the doorbell with any word."""
        assert self.frame is not None, "a fault"
        await self.node.host.write(DOORBELL_BASE + self.frame * DOORBELL_PAGE_BYTES, word)

    async def taken(self) -> tuple[int, int]:
        return unpack_pair((await self.read(4 * PageWord.TAKEN))[0])

    async def delivered(self) -> tuple[int, int]:
        return unpack_pair((await self.read(4 * PageWord.DELIVERED))[0])

    async def post(self, entry: Entry, data: bytes = b"") -> None:
        """Post an entry, and ring. `entry.reply` names the queue. Waits for a free entry."""
        layout, reply = self.node.layout, int(entry.reply)
        while self.posted[reply] - (await self.taken())[reply] & 0xFFFF >= layout.config.queue_entries:
            await self.node.host.sleep(200)
        count = self.posted[reply]
        if data:
            slot = layout.slot(reply=entry.reply, count=count)
            self.node.put_bytes(self.send_staging + layout.slot_offset(slot), data)
        await self.write(layout.entry(Queue.SEND_REPLY if reply else Queue.SEND_REQUEST, count), entry.pack())
        self.posted[reply] = (count + 1) & 0xFFFF
        await self.ring()

    async def poll(self, reply: bool) -> tuple[Entry, bytes] | None:
        """The next message of a receive queue, consumed, with its data."""
        layout, count = self.node.layout, self.consumed[reply]
        if (await self.delivered())[reply] == count:
            return None
        queue = Queue.RECEIVE_REPLY if reply else Queue.RECEIVE_REQUEST
        entry = Entry.unpack(await self.read(layout.entry(queue, count), ENTRY_WORDS))
        data = b""
        if entry.bytes and not entry.status:
            at = self.receive_staging + layout.slot_offset(layout.slot(reply=reply, count=count))
            data = self.node.get_bytes(at, entry.bytes)
        self.consumed[reply] = (count + 1) & 0xFFFF
        await self.ring()
        return entry, data

    async def receive(self, reply: bool, limit: int = 2_000_000) -> tuple[Entry, bytes]:
        """The next message, when it has come."""
        start = self.node.host.cycle
        while (found := await self.poll(reply)) is None:
            await self.node.host.sleep(100)
            assert self.node.host.cycle - start < limit, f"endpoint {self.number}: nothing came"
        return found


class AmHost:
    """A host and its driver. `host`: a `HostBus`; `layout`: the firmware's."""

    def __init__(self, host: Any, number: int, layout: AmLayout) -> None:
        self.host, self.number, self.layout = host, number, layout
        self._free = 64
        self._answers: list[int] = []
        self.ring = self.allocate(layout.notice_ring_bytes)
        self.noticed = 0
        self.commands = 0
        self.notices: deque[Notice] = deque()

    def allocate(self, size: int) -> int:
        at, self._free = self._free, self._free + -(-size // 64) * 64
        return at

    def put_bytes(self, at: int, data: bytes) -> None:
        self.host.memory[at : at + len(data)] = memoryview(data)

    def get_bytes(self, at: int, size: int) -> bytes:
        return self.host.memory[at : at + size].tobytes()

    def put(self, at: int, words: Any) -> None:
        self.put_bytes(at, b"".join(word.to_bytes(4, "little") for word in words))

    def get(self, at: int, words: int) -> list[int]:
        data = self.get_bytes(at, 4 * words)
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, 4 * words, 4)]

    async def ask(self, kind: CommandKind, limit: int = 5_000_000, **fields: Any) -> CommandStatus:
        """Give the firmware a command, and wait for the answer, if it has one."""
        host, layout = self.host, self.layout
        self.commands += 1
        number = self.commands
        answer = self._answers.pop() if self._answers else self.allocate(8)
        words = Command(kind=kind, number=number, answer=answer, **fields).pack()
        assert len(words) == COMMAND_WORDS
        while await host.read(layout.mailbox):
            await host.sleep(20)
        for at in reversed(range(COMMAND_WORDS)):
            await host.write(layout.mailbox + 4 * at, words[at])
        await host.write(DOORBELL_BASE, number & 0x7FFFFFFF)
        start = host.cycle
        while kind is not CommandKind.CONSUMED and self.get(answer + 4, 1)[0] != number:
            await host.sleep(50)
            assert host.cycle - start < limit, f"{kind.name}: no answer"
        self._answers.append(answer)
        return CommandStatus(self.get(answer, 1)[0])

    async def set_ring(self) -> None:
        assert await self.ask(CommandKind.SET_RING, page=self.ring) is CommandStatus.OK

    async def load(self, endpoint: Endpoint, frame: int) -> None:
        status = await self.ask(
            CommandKind.LOAD,
            frame=frame,
            endpoint=endpoint.number,
            page=endpoint.page,
            record=endpoint.record,
        )
        assert status is CommandStatus.OK, status.name
        endpoint.frame = frame

    async def unload(self, endpoint: Endpoint) -> None:
        frame, endpoint.frame = endpoint.frame, None
        assert frame is not None
        status = await self.ask(CommandKind.UNLOAD, frame=frame)
        assert status is CommandStatus.OK, status.name

    async def poll_notices(self) -> list[Notice]:
        """New notices, consumed."""
        layout, found = self.layout, []
        while True:
            slot = self.ring + layout.notice_bytes * (self.noticed % layout.config.notice_entries)
            if self.get(slot + layout.notice_number, 1)[0] != self.noticed + 1:
                break
            found.append(Notice.unpack(self.get(slot, NOTICE_WORDS)))
            self.noticed += 1
        if found:
            await self.ask(CommandKind.CONSUMED, length=self.noticed)
        return found
