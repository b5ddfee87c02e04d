"""A card with VIA in plain Python, for tests of the agent and of VIPL: what it does at its window and in host memory.

It knows no time of its own but a few cycles for each thing, and no firmware. It follows the words of
`firmware/via/layout.py`. Protection, connections, control packets and completions are as the firmware has them; of the
reliability levels it has no retransmission, as nothing is lost here but what a test drops.
"""

from __future__ import annotations

from typing import Any

from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.descriptor import STATUS_OFFSET, TAIL_OFFSET, Descriptor, Op
from lanikai.firmware.via.layout import (
    NOTICE_SLOT_BYTES,
    SEND_CONTROL_PACKET,
    NoticeKind,
    RegionFlag,
    Reliability,
    ViRecord,
    pack_broken,
)
from lanikai.firmware.via.wire import CONTROL_PACKET_BYTES
from lanikai.firmware.work_queue.layout import pack_descriptor_number
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import STATUS_LAYOUT, CompletionStatus
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.via.admission import MessageTime, ViaCapacity
from lanikai.sim.host.via.agent import Agent
from lanikai.sim.inside.words import Fields

from ..firmware.scheduler import World
from .via_card_window import CardWindow, Channel, Ring

STEP, WIRE = 20, 60
"""Cycles of a step of the card, of a packet on its way."""
NIC = preset(
    NicConfig,
    "tiny",
    owners=8,
    channels=8,
    receive_doorbells="merged",
    completion_queues=4,
    regions=16,
    host_dma_queue_entries=2,
    mtu_bytes=256,
    sram_bytes=1 << 16,
)
CAPACITY = ViaCapacity(
    send=MessageTime(fixed_ns=10_000, byte_ps=5_000), receive=MessageTime(fixed_ns=10_000, byte_ps=5_000)
)
"""The capacity of these cards: 134 MB/s in messages of 4 KB, a tenth of it kept for best effort."""
CONFIG = ViaConfig(queue_entries=4, data_segments=2)
_STATUS = Fields(STATUS_LAYOUT)
_NAMES = {register.offset: name for name, register in NIC_REGISTERS.items()}


class Card(CardWindow):
    """A card of a `Net`: its firmware's part."""

    async def _mailbox(self) -> None:
        await self.sleep(STEP)
        at = self.layout.mailbox
        count, answer = self.sram[at], self.sram[at + 4]
        if count == SEND_CONTROL_PACKET:
            low, high = (self.sram[self.layout.control_route + 4 * i] for i in range(2))
            assert low == self.net.route(self.node, high >> 16)
            words = [self.sram[self.layout.control_out + 4 * i] for i in range(CONTROL_PACKET_BYTES // 4)]
            packet = b"".join(word.to_bytes(4, "little") for word in words)
            self.net.send(self.node, high >> 16, ("control", packet))
        else:
            for i in range(count):
                await self._register(self.sram[at + 8 + 8 * i], self.sram[at + 12 + 8 * i])
        self.put(answer, _STATUS.pack(done=1).to_bytes(4, "little"))

    async def _register(self, offset: int, word: int) -> None:
        name = _NAMES[offset]
        fields = NIC_REGISTERS[name].unpack(word)
        self.registers[name] = fields
        if name == "REGION":
            number = fields["region"]
            if fields["valid"]:
                self.regions[number] = {
                    "key": fields["key"],
                    "owner": fields["owner"],
                    "writable": fields["writable"],
                    "start": self.registers["REGION_START"]["address"],
                    "bytes": self.registers["REGION_BYTES"]["bytes"],
                    "table": self.registers["REGION_TABLE"]["address"],
                }
            else:
                self.regions.pop(number, None)
        elif name == "COMPLETION_SETUP":
            if fields["entries_log2"]:
                self.rings[fields["queue"]] = Ring(
                    fields["owner"], self.registers["COMPLETION_RING"]["address"], 1 << fields["entries_log2"]
                )
            else:
                self.rings.pop(fields["queue"], None)
        elif name == "DOORBELL_CHANNEL":
            channel = fields["channel"]
            while channel in self.under_way:
                await self.sleep(STEP)
            if fields["open"]:
                assert self.record(channel) is None, "a channel is opened whose record is"
                self.channels[channel] = Channel(fields["owner"])
            else:
                self._flush(channel)
                self.channels.pop(channel, None)

    def _flush(self, number: int) -> None:
        """End the descriptors that the card was told of, if it has ever looked at the VI's record."""
        channel = self.channels.get(number)
        if channel is None or channel.seen is None:
            return
        record = channel.seen
        for half, receive in ((channel.send, False), (channel.receive, True)):
            ring = record.receive_ring if receive else record.send_ring
            queue = record.receive_completions if receive else record.send_completions
            while half.taken < half.posted:
                at = ring + self.layout.form.slot_bytes * (half.taken % self.config.queue_entries)
                self.complete(number, half.taken, at, CompletionStatus.FLUSHED, 0, queue, receive=receive)
                half.taken += 1

    def _kick(self, number: int) -> None:
        if number not in self.under_way:
            self.under_way.add(number)
            self.spawn(self._serve(number), f"card {self.node}, channel {number}")

    async def _serve(self, number: int) -> None:
        while True:
            await self.sleep(STEP)
            channel, record = self.channels.get(number), self.record(number)
            if channel is None or record is None or channel.send.posted == channel.send.taken:
                if channel is not None and record is None:
                    channel.send.taken = channel.send.posted
                break
            await self._send(number, channel, record)
        self.under_way.discard(number)

    async def _send(self, number: int, channel: Channel, record: ViRecord) -> None:
        channel.seen = record
        index = channel.send.taken
        at = record.send_ring + self.layout.form.slot_bytes * (index % self.config.queue_entries)
        descriptor = Descriptor.unpack(self.get(at, self.layout.form.slot_bytes), self.layout.form)
        status = descriptor.refusal(self.layout.form, receive=False)
        content = b""
        if status is CompletionStatus.OK and descriptor.data_bytes > record.most_bytes:
            status = CompletionStatus.TOO_LONG
        if status is CompletionStatus.OK and descriptor.op is not Op.RDMA_READ:
            for segment in descriptor.segments:
                status = self.check(channel.owner, segment.handle, segment.address, segment.bytes)
                if status is not CompletionStatus.OK:
                    break
                content += self.load(segment.handle, segment.address, segment.bytes)
        reliable = record.reliability is not Reliability.UNRELIABLE
        if status is CompletionStatus.OK:
            answer = self.net.send(
                self.node, record.node, ("message", number, record, descriptor, content), answered=reliable
            )
            if reliable:
                self.under_way.discard(number)  # a close does not wait for an answer
                found = await self.net.answer(answer)
                if self.channels.get(number) is not channel or self.record(number) is None:
                    return
                self.under_way.add(number)
                status, back = found
                if status is CompletionStatus.OK and back is not None:
                    status = self.scatter(channel.owner, descriptor.segments, back)
        channel.send.taken += 1
        queue = record.send_completions
        self.complete(number, index, at, status, descriptor.data_bytes, queue, receive=False)
        if reliable and status not in (CompletionStatus.OK,):
            self.break_vi(number, status)

    def break_vi(self, number: int, status: CompletionStatus) -> None:
        record = self.record(number)
        at = self.layout.record(number) + 4 * ViRecord.OPEN_WORD
        self.sram[at] = 0
        self._flush(number)
        if record is not None:
            self.notice(NoticeKind.VI_BROKEN, pack_broken(number, record.connection), status, b"")

    def complete(
        self,
        number: int,
        index: int,
        at: int,
        status: CompletionStatus,
        length: int,
        queue: int | None,
        *,
        receive: bool,
    ) -> None:
        self.put(at + STATUS_OFFSET, _STATUS.pack(done=1, status=status, bytes=length).to_bytes(4, "little"))
        ring = None if queue is None else self.rings.get(queue)
        if ring is None or ring.dead:
            return
        ring.dead = (ring.produced - ring.consumed) % 65536 >= ring.entries - 1
        phase = 1 - ring.produced // ring.entries % 2
        told = CompletionStatus.OVERRUN if ring.dead else status
        word = (
            phase << 31
            | phase << 63
            | told << 16
            | length
            | (number << 48 | pack_descriptor_number(index, receive=receive) << 32)
        )
        self.put(ring.address + 8 * (ring.produced % ring.entries), word.to_bytes(8, "little"))
        ring.produced = (ring.produced + 1) % (65536 * 2)
        if ring.armed:
            self._tell(ring)

    def notice(self, kind: NoticeKind, source: int, reason: int, packet: bytes) -> None:
        start, entries, consumed = (self.sram.get(self.layout.notices + 4 * i, 0) for i in range(3))
        if not entries or (self.noticed - consumed) % (1 << 32) >= entries:
            assert kind is NoticeKind.CONTROL_PACKET
            self.dropped += 1
            return
        number = ((self.noticed + 1) % (1 << 32)).to_bytes(4, "little")
        content = b"".join(word.to_bytes(4, "little") for word in (kind, source, reason))
        content += packet.ljust(CONTROL_PACKET_BYTES, b"\0") + number
        self.put(start + NOTICE_SLOT_BYTES * (self.noticed % entries), content)
        self.noticed = (self.noticed + 1) % (1 << 32)
        self.says = True
        self._raise()

    def arrive(self, source: int, packet: tuple[Any, ...]) -> tuple[CompletionStatus, bytes | None]:
        """Take a packet in; returns how that has ended, for its sender."""
        if packet[0] == "control":
            self.notice(NoticeKind.CONTROL_PACKET, source, 0, packet[1])
            return CompletionStatus.OK, None
        _, sender, theirs, descriptor, content = packet
        number, channel = theirs.channel, self.channels.get(theirs.channel)
        record = self.record(number)
        if channel is None or record is None:
            return CompletionStatus.TRANSPORT, None
        if (record.node, record.channel, record.connection) != (source, sender, theirs.connection):
            return CompletionStatus.TRANSPORT, None
        refused = CompletionStatus.REMOTE_ACCESS
        if (remote := descriptor.remote) is not None:
            write = descriptor.op is Op.RDMA_WRITE
            wanted = RegionFlag.RDMA_WRITE if write else RegionFlag.RDMA_READ
            flags = self.sram.get(self.layout.region_flag(remote.handle & 0xFF), 0)
            size = descriptor.data_bytes
            may = record.rdma_write if write else record.rdma_read
            found = self.check(channel.owner, remote.handle, remote.address, size, write=write)
            if not may or not flags & wanted or found is not CompletionStatus.OK:
                return refused, None
            if not write:
                return CompletionStatus.OK, self.load(remote.handle, remote.address, size)
            self.store(remote.handle, remote.address, content)
            if descriptor.immediate is None:
                return CompletionStatus.OK, None
        channel.seen = record
        half = channel.receive
        if half.posted == half.taken:
            self.dropped += 1
            return CompletionStatus.NO_DESCRIPTOR, None
        index = half.taken
        half.taken += 1
        at = record.receive_ring + self.layout.form.slot_bytes * (index % self.config.queue_entries)
        mine = Descriptor.unpack(self.get(at, self.layout.form.slot_bytes), self.layout.form)
        status = mine.refusal(self.layout.form, receive=True)
        if status is CompletionStatus.OK and remote is None:
            if len(content) > mine.data_bytes:
                status = CompletionStatus.TOO_LONG
            else:
                status = self.scatter(channel.owner, mine.segments, content)
        if status is CompletionStatus.OK and descriptor.immediate is not None:
            word = len(descriptor.immediate).to_bytes(4, "little") + descriptor.immediate[:4]
            self.put(at + TAIL_OFFSET, word)
            status = CompletionStatus.IMMEDIATE if remote is None else CompletionStatus.WRITTEN
        self.complete(number, index, at, status, len(content), record.receive_completions, receive=True)
        good = status in (CompletionStatus.OK, CompletionStatus.IMMEDIATE, CompletionStatus.WRITTEN)
        return CompletionStatus.OK if good else CompletionStatus.NO_DESCRIPTOR, None


class Net:
    """Cards that are joined: `cards`, and an `Agent` on each, in a `World`.

    `lose(source, target)` says whether a control packet is lost.
    """

    def __init__(
        self,
        nodes: int = 2,
        *,
        nic: NicConfig = NIC,
        config: ViaConfig = CONFIG,
        kit: KitConfig | None = None,
        memory_bytes: int = 1 << 20,
    ) -> None:
        self.world = World()
        self.cards = [
            Card(self, node, nic=nic, config=config, memory_bytes=memory_bytes) for node in range(nodes)
        ]
        self.lose = lambda source, target: False
        self.sent = 0
        self.agents = [
            Agent(
                card,
                nic=nic,
                routes={other: self.route(card.node, other) for other in range(nodes) if other != card.node},
                config=config,
                kit=kit,
            )
            for card in self.cards
        ]
        for agent in self.agents:
            agent.admission.capacity = CAPACITY
            agent.start()

    @staticmethod
    def route(source: int, target: int) -> int:
        return 0x100 + 16 * source + target

    def send(
        self, source: int, target: int, packet: tuple[Any, ...], *, answered: bool = False
    ) -> dict[str, Any]:
        """Bring a packet to a card; the answer is that of `Card.arrive`."""
        answer: dict[str, Any] = {"flag": self.world.flag()}
        self.sent += 1

        def arrive() -> None:
            card = self.cards[target]
            if card.dead or self.cards[source].dead:
                found = (CompletionStatus.TRANSPORT, None)
            else:
                found = card.arrive(source, packet)
            answer["found"] = found
            answer["flag"].set()

        if packet[0] != "control" or not self.lose(source, target):
            self.world.at(self.world.cycle + WIRE, arrive)
        return answer

    async def answer(self, answer: dict[str, Any]) -> tuple[CompletionStatus, bytes | None]:
        await answer["flag"].wait()
        return answer["found"]

    def run(self, main: Any, limit: int = 200_000_000) -> Any:
        return self.world.run(main, limit=limit)
