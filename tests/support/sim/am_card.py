"""Cards of virtual networks in plain Python, as a host sees them: a small stand-in for card, firmware and network.

A message moves in one instant, whole: from the sender's entry into the receiver's queue, or back. So nothing is ever
half under way. Pages move as the driver says. All delays are random, so messages overtake each other.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.layout import AmLayout, PageWord, Queue
from lanikai.firmware.am.wire import MessageKind, Reason
from lanikai.firmware.am.words import (
    COMMAND_WORDS,
    RECORD_BYTES,
    RECORD_WORDS,
    Command,
    CommandKind,
    CommandStatus,
    Counts,
    EndpointRecord,
    Entry,
    Notice,
    NoticeKind,
    pack_pair,
)
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header, Kind
from lanikai.sim.host.am.config import AmHostConfig
from lanikai.sim.host.am.driver import SegmentDriver

from support.firmware.python_card import CardWatch
from support.firmware.scheduler import World

WRITE, READ = 12, 20
PAGE_CYCLES = 3000
WIRE = (50, 600)
COUNTS = 1 << 16
_HOST = {REGISTER_BASE + register.offset: name for name, register in HOST_REGISTERS.items()}
MOST_WORDS = 8


@dataclass
class Frame:
    """A frame with an endpoint: the counts of the firmware, requests first."""

    number: int
    page: int
    record: int
    words: EndpointRecord
    posted: list[int]
    taken: list[int]
    done: list[set[int]]
    delivered: list[int]
    consumed: list[int]
    returning: list[dict[int, Reason]]
    refused: int = 0


class AmCard:
    """The card of a node and its host: `HostBus`, memory, SRAM.

    - `frames`: those with an endpoint. `known`: endpoints that exist.
    - `dead`: it answers nothing any more.
    """

    def __init__(self, net: AmNet, node: int, memory_bytes: int) -> None:
        self.net, self.node, self.world = net, node, net.world
        self.layout, self.config, self.rng = net.layout, net.config, net.rng
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.sram = np.zeros(net.nic.sram_bytes, np.uint8)
        self.sleep, self.flag, self.spawn = self.world.sleep, self.world.flag, self.world.spawn
        self.watches: list[CardWatch] = []
        self.frames: dict[int, Frame] = {}
        self.known: set[int] = set()
        self.faults: set[int] = set()
        self.line = self.world.flag()
        self.ring = self.noticed = self.consumed = 0
        self.waiting: deque[tuple[Notice, bytes]] = deque()
        self.words: dict[int, int] = {}
        self.dead = False

    # `HostBus`.

    @property
    def cycle(self) -> int:
        return self.world.cycle

    def watch(self, start: int, length: int) -> CardWatch:
        self.watches.append(CardWatch(start, length, self.flag(), self.sleep))
        return self.watches[-1]

    async def interrupt(self) -> None:
        await self.line.wait()

    async def read(self, address: int) -> int:
        await self.sleep(READ)
        return self.load(address, 1)[0]

    async def read_all(self, addresses, *, after_cycles: int = 0) -> list[int]:
        if after_cycles:
            await self.sleep(after_cycles)
        return [await self.read(address) for address in addresses]

    async def write_all(self, writes, *, after_cycles: int = 0) -> None:
        if after_cycles:
            await self.sleep(after_cycles)
        for address, data in writes:
            await self.write(address, data)

    async def write(self, address: int, data: int) -> None:
        await self.sleep(WRITE)
        if address >= DOORBELL_BASE:
            channel = (address - DOORBELL_BASE) // DOORBELL_PAGE_BYTES
            self.words[channel] = data & 0x7FFFFFFF
            self.later(lambda: self.look(channel), 20, 200)
        elif address in _HOST:
            if _HOST[address] == "HOST_ISR":
                self.line.clear()
        else:
            self.store(address, [data])

    # The card.

    def load(self, address: int, words: int) -> list[int]:
        start = address - SRAM_BASE
        return self.sram[start : start + 4 * words].view("<u4").tolist()

    def store(self, address: int, words) -> None:
        start = address - SRAM_BASE
        self.sram[start : start + 4 * len(words)].view("<u4")[:] = words

    def dma(self, host: int, data: Any) -> None:
        """Write bytes, or words, to the host."""
        if not isinstance(data, bytes):
            data = b"".join(int(word).to_bytes(4, "little") for word in data)
        self.memory[host : host + len(data)] = np.frombuffer(data, np.uint8)
        for watch in self.watches:
            watch.written(host, len(data))

    def later(self, act: Any, least: int, most: int) -> None:
        self.world.at(self.world.cycle + self.rng.randrange(least, most), act)

    def look(self, channel: int) -> None:
        """Take a doorbell word, if it has not been taken."""
        word = self.words.pop(channel, None)
        if word is None:
            return
        if channel == 0:
            self.command()
        elif channel in self.frames:
            self.rung(self.frames[channel], word)

    def rung(self, frame: Frame, word: int) -> None:
        before = Counts(
            requests_posted=frame.posted[0],
            replies_posted=frame.posted[1],
            requests_consumed=frame.consumed[0],
            replies_consumed=frame.consumed[1],
        )
        since = Counts.unpack(word).since(before)
        for reply in range(2):
            open_ = (frame.posted[reply] - frame.taken[reply]) % COUNTS
            if open_ + since[reply] <= self.config.queue_entries:
                for _ in range(since[reply]):
                    self.plan(frame, reply, frame.posted[reply])
                    frame.posted[reply] = (frame.posted[reply] + 1) % COUNTS
            else:
                frame.refused += 1
            if since[2 + reply] <= (frame.delivered[reply] - frame.consumed[reply]) % COUNTS:
                frame.consumed[reply] = (frame.consumed[reply] + since[2 + reply]) % COUNTS
            else:
                frame.refused += 1

    # Commands.

    def command(self) -> None:
        words = self.load(self.layout.mailbox, COMMAND_WORDS)
        if not words[0]:
            return
        self.store(self.layout.mailbox, [0])
        command = Command.unpack(words)

        def answer(status: CommandStatus = CommandStatus.OK) -> None:
            self.dma(command.answer, [status, command.number])

        match command.kind:
            case CommandKind.LOAD:
                assert command.frame not in self.frames
                self.later(lambda: (self.arrived(command), answer()), PAGE_CYCLES, 2 * PAGE_CYCLES)
            case CommandKind.UNLOAD:
                self.later(lambda: (self.leave(command.frame), answer()), PAGE_CYCLES, 2 * PAGE_CYCLES)
            case CommandKind.KILL:
                self.later(lambda: (self.kill(command.endpoint), answer()), 100, 2000)
            case CommandKind.CREATE:
                self.known.add(command.endpoint)
                self.faults.discard(command.endpoint)  # of an endpoint that had the number before
                answer()
            case CommandKind.SET_RING:
                self.ring, self.noticed, self.consumed = command.page, 0, 0
                answer()
            case CommandKind.CONSUMED:
                self.consumed = command.length
                self.tell()
            case CommandKind.SEND_RAW:
                data = self.sram[self.layout.raw_out + 16 - SRAM_BASE :][: command.length].tobytes()
                header = Header(kind=Kind.PROBE, source=self.node, length=len(data), route=command.route)
                notice = Notice(
                    kind=NoticeKind.RAW_PACKET, node=self.node, length=len(data), header=header.pack()
                )
                other = self.net.cards[command.route]
                self.later(lambda: (other.notice(notice, data), answer()), 100, 500)
            case _:
                answer()

    def arrived(self, command: Command) -> None:
        size = self.config.page_bytes
        page = self.memory[command.page : command.page + size]
        start = self.layout.frame(command.frame) - SRAM_BASE
        self.sram[start : start + size] = page
        record = EndpointRecord.unpack(
            self.memory[command.record : command.record + RECORD_BYTES].view("<u4").tolist()
        )
        self.words.pop(command.frame, None)
        frame = self.frames[command.frame] = Frame(
            command.frame,
            command.page,
            command.record,
            record,
            list(record.posted),
            list(record.taken),
            [{place for place in range(16) if bits >> place & 1} for bits in record.done],
            list(record.delivered),
            list(record.consumed),
            [{}, {}],
        )
        self.faults.discard(record.endpoint)
        for reply in range(2):
            for count in range(frame.taken[reply], frame.taken[reply] + self.open(frame, reply)):
                place = count % self.config.queue_entries
                if record.returning[reply] >> place & 1:
                    at = self.layout.entry(Queue.SEND_REPLY if reply else Queue.SEND_REQUEST, count) + 8
                    frame.returning[reply][place] = Reason(
                        self.load(self.layout.frame(frame.number) + at, 1)[0] & 15
                    )
                if place not in frame.done[reply]:
                    self.plan(frame, reply, count % COUNTS)

    def open(self, frame: Frame, reply: int) -> int:
        return (frame.posted[reply] - frame.taken[reply]) % COUNTS

    def leave(self, number: int) -> None:
        if number in self.words:
            self.rung(self.frames[number], self.words.pop(number))
        frame = self.frames.pop(number)
        start = self.layout.frame(number) - SRAM_BASE
        self.dma(frame.page, self.sram[start : start + self.config.page_bytes].tobytes())
        record = frame.words
        record.posted, record.taken = (frame.posted[0], frame.posted[1]), (frame.taken[0], frame.taken[1])
        record.done = tuple(sum(1 << place for place in done) for done in frame.done)  # type: ignore
        record.returning = tuple(sum(1 << place for place in one) for one in frame.returning)  # type: ignore
        record.delivered = (frame.delivered[0], frame.delivered[1])
        record.consumed = (frame.consumed[0], frame.consumed[1])
        words = record.pack()
        assert len(words) == RECORD_WORDS
        self.dma(frame.record, words)
        self.sram[start : start + self.config.page_bytes] = 0xEE

    def kill(self, endpoint: int) -> None:
        self.known.discard(endpoint)
        for number, frame in list(self.frames.items()):
            if frame.words.endpoint == endpoint:
                del self.frames[number]

    # Messages.

    def plan(self, frame: Frame, reply: int, count: int, *, again: bool = False) -> None:
        """Try a send entry soon."""
        least, most = (3000, 6000) if again else WIRE
        self.later(lambda: self.attempt(frame, reply, count), least, most)

    def attempt(self, frame: Frame, reply: int, count: int) -> None:
        if self.frames.get(frame.number) is not frame or self.dead:
            return
        at = self.layout.frame(frame.number) + self.layout.entry(
            Queue.SEND_REPLY if reply else Queue.SEND_REQUEST, count
        )
        words = self.load(at, 16)
        place = count % self.config.queue_entries
        reason = frame.returning[reply].get(place) or self.deliver(frame, reply, count, words)
        if reason in (Reason.NO_BUFFER, Reason.NOT_RESIDENT):
            self.plan(frame, reply, count, again=True)
            return
        if reason is not Reason.DELIVERED:
            self.store(at + 8, [reason])
            frame.returning[reply][place] = reason
            back = [*words[:2], reason, words[3] & 0xFFF | reply << 12, *words[4:]]
            if not self.put(frame, 1, back):
                self.plan(frame, reply, count, again=True)
                return
            del frame.returning[reply][place]
        frame.done[reply].add(count % self.config.queue_entries)
        while self.open(frame, reply) and frame.taken[reply] % self.config.queue_entries in frame.done[reply]:
            frame.done[reply].remove(frame.taken[reply] % self.config.queue_entries)
            frame.taken[reply] = (frame.taken[reply] + 1) % COUNTS
        self.store(self.layout.frame(frame.number) + 4 * PageWord.TAKEN, [pack_pair(*frame.taken)])

    def deliver(self, frame: Frame, reply: int, count: int, words: list[int]) -> Reason:
        try:
            entry = Entry.unpack(words)
        except ValueError:
            return Reason.BAD_ENTRY
        card = self.net.cards.get(entry.node)
        if card is None:
            return Reason.NO_ROUTE
        if card.dead:
            return Reason.UNREACHABLE
        if entry.endpoint not in card.known:
            return Reason.NO_ENDPOINT
        target = next((one for one in card.frames.values() if one.words.endpoint == entry.endpoint), None)
        if target is None:
            card.fault(entry.endpoint)
            return Reason.NOT_RESIDENT
        if entry.tag != target.words.tag:
            return Reason.WRONG_TAG
        short = entry.kind is MessageKind.SHORT
        size, offset = (0, 0) if short else (entry.bytes, entry.offset)
        if size > self.layout.slot_bytes:
            return Reason.TOO_LONG
        if entry.kind is MessageKind.BULK and offset + size > target.words.segment_bytes:
            return Reason.OUTSIDE
        place = target.delivered[reply] % self.config.queue_entries + reply * self.config.queue_entries
        come = Entry(
            node=self.node,
            endpoint=frame.words.endpoint,
            kind=entry.kind,
            tag=frame.words.tag,
            handler=entry.handler,
            bytes=size,
            slot=place,
            offset=offset if entry.kind is MessageKind.BULK else 0,
            reference=entry.reference,
            words=entry.words,
        )
        if not card.room(target, reply):
            return Reason.NO_BUFFER
        if size:
            source = frame.words.send_staging + self.layout.slot_offset(
                self.layout.slot(reply=bool(reply), count=count)
            )
            goal = target.words.receive_staging + self.layout.slot_offset(place)
            card.dma(goal, self.memory[source : source + size].tobytes())
        card.put(target, reply, come.pack())
        return Reason.DELIVERED

    def room(self, frame: Frame, reply: int) -> bool:
        return (frame.delivered[reply] - frame.consumed[reply]) % COUNTS < self.config.queue_entries

    def put(self, frame: Frame, reply: int, words: Sequence[int]) -> bool:
        """Put a message into a receive queue, if it has room."""
        if not self.room(frame, reply):
            return False
        page, count = self.layout.frame(frame.number), frame.delivered[reply]
        queue = Queue.RECEIVE_REPLY if reply else Queue.RECEIVE_REQUEST
        self.store(page + self.layout.entry(queue, count), words)
        empty = count == frame.consumed[reply]
        frame.delivered[reply] = (count + 1) % COUNTS
        self.store(page + 4 * PageWord.DELIVERED, [pack_pair(*frame.delivered)])
        if empty and self.load(page + 4 * PageWord.EVENT_MASK, 1)[0] & 1:
            self.notice(Notice(kind=NoticeKind.EVENT, endpoint=frame.words.endpoint))
        return True

    # Notices.

    def fault(self, endpoint: int) -> None:
        if endpoint not in self.faults:
            self.faults.add(endpoint)
            self.notice(Notice(kind=NoticeKind.ENDPOINT_FAULT, endpoint=endpoint))

    def notice(self, notice: Notice, data: bytes = b"") -> None:
        self.waiting.append((notice, data))
        self.tell()

    def tell(self) -> None:
        entries = self.config.notice_entries
        while self.ring and self.waiting and (self.noticed - self.consumed) % (1 << 32) < entries:
            notice, data = self.waiting.popleft()
            slot = self.ring + self.layout.notice_bytes * (self.noticed % entries)
            self.noticed = (self.noticed + 1) % (1 << 32)
            self.dma(slot, notice.pack())
            self.dma(slot + 32, data)
            self.dma(slot + self.layout.notice_number, [self.noticed])
            self.line.set()


class AmNet:
    """Nodes with stand-in cards and segment drivers. `run(main)` runs a coroutine.

    `each`: changes of the costs of each node, if they differ. Other keywords are those of `AmHostConfig`.
    """

    def __init__(
        self,
        nodes: int = 2,
        *,
        seed: int = 1,
        memory_bytes: int = 1 << 20,
        config: dict[str, Any] | None = None,
        endpoints: int = 16,
        **costs: Any,
    ) -> None:
        self.rng = random.Random(seed)
        self.nic = preset(NicConfig, "tiny", channels=4, mtu_bytes=256, doorbell="polled", sram_bytes=1 << 16)
        self.config = VirtualNetworkConfig.for_nic(
            self.nic, **{"scan_us": 100, "endpoints_max": endpoints} | (config or {})
        )
        self.layout = AmLayout(self.nic, self.config)
        self.world = World()
        self.cards = {node: AmCard(self, node, memory_bytes) for node in range(nodes)}
        routes = {node: node for node in range(nodes)}
        self.drivers = [
            SegmentDriver(
                card,
                nic=self.nic,
                routes={to: route for to, route in routes.items() if to != card.node},
                config=self.config,
                costs=AmHostConfig(**{"patience_us": 3000} | costs),
            )
            for card in self.cards.values()
        ]
        for driver in self.drivers:
            driver.start()

    def cut(self, node: int) -> None:
        """Let a node give no answer any more."""
        self.cards[node].dead = True

    def refused(self) -> int:
        """Doorbell words that the cards have refused, of resident endpoints."""
        return sum(frame.refused for card in self.cards.values() for frame in card.frames.values())

    def run(self, main: Any, limit: int = 200_000_000) -> Any:
        """Run a coroutine to its end."""
        return self.world.run(main, limit)
