"""The other ends of a node's VIs as one light program on a card: it answers, after a latency that was measured.

In nagar-thesis-2001 4.3 a node has up to 127 others. All are alike, so any of them has the load of the one that is
looked at. Here one card stands for all. Its program takes packets in, acknowledges them where the VI's level asks, and
answers each message with another one. It has no host, no memory and no descriptors: what a real node does between a
message and its answer is a latency (`PeerTimes`).

Packets, link and network are as real as everywhere: the model ends at the card's network port.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from lanikai.firmware.accesses import AccessList
from lanikai.firmware.costs import CostTable
from lanikai.firmware.lock import Lock
from lanikai.firmware.ports import CardPorts
from lanikai.firmware.processor import Processor
from lanikai.firmware.via.config import WORD_BYTES
from lanikai.firmware.via.layout import HEADER_BYTES, Reliability
from lanikai.firmware.via.parallel.tasks import Packet, SendTasks
from lanikai.firmware.via.wire import VIA_HEADER_BYTES, ViaHeader, next_number, pack_sequence, read_header
from lanikai.hdl.config import NicConfig
from lanikai.hdl.packet import Header, Kind

__all__ = ["PeerEnd", "PeerTimes", "ViaPeer"]

_COSTS = CostTable("peer", dict.fromkeys(("dispatch", "take", "send", "queued", "send_ended"), 0))
"""It is a model: its steps cost nothing beside their accesses."""
_HEAD_WORDS = (HEADER_BYTES + VIA_HEADER_BYTES) // WORD_BYTES
_ALIGNMENT = 64
RECEIVE_BUFFERS = 4
"""More than a receive engine takes at once, so that it is armed again at once."""


@dataclass(frozen=True, kw_only=True)
class PeerTimes:
    """How long a peer takes, cycles of the card's clock.

    - `latency_cycles`: from a message's last packet in the card's SRAM until its answer begins to leave it.
    - `interval_cycles`: from one answer's begin to the next, at least: the peer is one server for all VIs.
    - `acknowledge_cycles`: as the latency, of an acknowledgement.
    """

    latency_cycles: int
    interval_cycles: int = 0
    acknowledge_cycles: int = 0

    def __post_init__(self) -> None:
        for name in ("latency_cycles", "interval_cycles", "acknowledge_cycles"):
            if getattr(self, name) < 0:
                raise ValueError(f"PeerTimes: {name} = {getattr(self, name)}: 0 or more cycles")


@dataclass(kw_only=True)
class PeerEnd:
    """An end of a VI at the peer, by its `channel`; the other end is `other` of node `node`.

    - `answer_bytes`: length of its answers, None for none. `immediate`: they stand in the descriptor.
    - `connection`, `level`: as the other end has them.
    - `number`: its next message's. `taken`: messages that have come as a whole.
    """

    channel: int
    node: int
    other: int
    answer_bytes: int | None
    immediate: bool = False
    connection: int = 1
    level: Reliability = Reliability.UNRELIABLE
    number: int = 0
    taken: int = 0


class ViaPeer:
    """The program: `start` spawns it. `node`, `nic`, `routes`: as those of any firmware.

    `dropped`: packets that are no messages of one of its ends, by the reason.
    """

    def __init__(
        self, card: CardPorts, *, node: int, nic: NicConfig, routes: Mapping[int, int], times: PeerTimes
    ) -> None:
        self.node, self.nic, self.routes, self.times = node, nic, dict(routes), times
        self.processor = Processor(card.processors[0], _COSTS, sources=("receive", "send"))
        self.sends = SendTasks(self.processor, nic)
        self.dropped: Counter[str] = Counter()
        self._ends: dict[int, PeerEnd] = {}
        size = -(-(HEADER_BYTES + nic.mtu_bytes) // _ALIGNMENT) * _ALIGNMENT
        buffers = min(RECEIVE_BUFFERS, nic.sram_bytes // size - 1)
        if buffers < 1:
            raise ValueError(f"sram_bytes = {nic.sram_bytes}: no room for two packets of {size} bytes")
        self._spare = deque(size * (1 + place) for place in range(buffers))
        self._armed: deque[int] = deque()
        self._sending = Lock(self.processor.port.flag)
        self._begin_cycle = 0

    def start(self) -> None:
        """Spawn it."""
        name = f"peer[{self.node}]"
        for what, coroutine in (
            ("packets", self._run_packets()),
            ("sends", self.sends.run()),
            ("idle", self._boot()),
        ):
            self.processor.port.spawn(coroutine, f"{name}.{what}")

    def connect(self, end: PeerEnd) -> None:
        """Have an end. Raises ValueError for answers that are longer than a packet."""
        most = self.nic.mtu_bytes - VIA_HEADER_BYTES
        if end.answer_bytes is not None and not 0 <= end.answer_bytes <= most:
            raise ValueError(f"answer_bytes = {end.answer_bytes}: 0 to {most}, those of a packet")
        self._ends[end.channel] = end

    def send(self, channel: int, size: int, *, delay_cycles: int = 0) -> None:
        """Have an end send a message of `size` bytes, `delay_cycles` from now."""
        end = self._ends[channel]
        ahead = size if end.immediate else 0
        via = ViaHeader(
            immediate_bytes=ahead, connection=end.connection, number=end.number, length=size - ahead
        )
        end.number = next_number(end.number)
        self._spawn(end, Kind.DATA, via, VIA_HEADER_BYTES + size, self.processor.port.cycle + delay_cycles)

    async def _boot(self) -> None:
        async with self.processor.step("take"):
            await self._arm()
            await self.processor.enable("receive", "send")
        await self.processor.idle_loop()

    async def _arm(self) -> None:
        """Inside a step: arm the spare buffers that the receive engine takes."""
        accesses = AccessList()
        queued = self.nic.receive_queue_entries
        while self._spare and len(self._armed) < 1 + queued:
            buffer = self._spare.popleft()
            self._armed.append(buffer)
            accesses.write("RECEIVE_ADDRESS", address=buffer)
            if queued:
                accesses.write("RECEIVE_TAG", tag=0, notify=1)
            accesses.write("RECEIVE_CONTROL", bytes=self.nic.mtu_bytes)
        await self.processor.carry_out(accesses)

    async def _run_packets(self) -> None:
        """Take packets in for ever."""
        came = self.processor.events["receive"]
        while True:
            async with self.processor.step("take", after=came):
                cycle = self.processor.woken_cycle
                while (buffer := await self._received()) is not None:
                    accesses = AccessList()
                    words = accesses.load(buffer, _HEAD_WORDS)
                    await self.processor.carry_out(accesses)
                    self._spare.append(buffer)
                    await self._arm()
                    self._take([word.get() for word in words], cycle)
                    if not self.nic.receive_queue_entries:
                        break

    async def _received(self) -> int | None:
        """Inside a step: the next buffer with a packet."""
        if self.nic.receive_queue_entries:
            accesses = AccessList()
            finished = accesses.read("RECEIVE_FINISHED")
            await self.processor.carry_out(accesses)
            if not finished["valid"]:
                return None
        return self._armed.popleft() if self._armed else None

    def _take(self, words: list[int], cycle: int) -> None:
        """A packet has come: note a message that it ends, acknowledge it, answer it."""
        half = HEADER_BYTES // WORD_BYTES
        header = read_header(sum(word << 32 * place for place, word in enumerate(words[:half])))
        via = ViaHeader.unpack(words[half:])
        end = self._ends.get(header.flow)
        if header.kind is Kind.ACK:
            return
        if header.kind is not Kind.DATA or header.destination != self.node:
            self.dropped["unknown"] += 1
        elif end is None or (header.source, via.connection) != (end.node, end.connection):
            self.dropped["stranger"] += 1
        elif via.last:
            end.taken += 1
            if end.level is not Reliability.UNRELIABLE:
                told = ViaHeader(connection=end.connection, number=via.number)
                self._spawn(end, Kind.ACK, told, VIA_HEADER_BYTES, cycle + self.times.acknowledge_cycles)
            if end.answer_bytes is not None:
                times = self.times
                begin = max(cycle + times.latency_cycles, self._begin_cycle + times.interval_cycles)
                self._begin_cycle = begin
                self.send(end.channel, end.answer_bytes, delay_cycles=begin - self.processor.port.cycle)

    def _spawn(self, end: PeerEnd, kind: Kind, via: ViaHeader, payload: int, cycle: int) -> None:
        header = Header(
            kind=kind,
            route=self.routes[end.node],
            destination=end.node,
            source=self.node,
            flow=end.other,
            length=payload,
            sequence=pack_sequence(end.channel, via.number),
        )
        self.processor.port.spawn(self._send(header, via, cycle), f"peer[{self.node}].send")

    async def _send(self, header: Header, via: ViaHeader, cycle: int) -> None:
        """Send a packet from cycle `cycle` on, behind those that were to go before."""
        left = cycle - self.processor.port.cycle
        if left > 0:
            await self.processor.port.sleep(left)
        bits = header.pack()
        accesses = AccessList()
        accesses.store(
            0,
            *(bits >> 32 * word & 0xFFFFFFFF for word in range(HEADER_BYTES // WORD_BYTES)),
            *via.words(),
        )
        async with self._sending:
            async with self.processor.step("send", accesses=accesses):
                task = await self.sends.submit(Packet(0, header.length), stamp=0, started=lambda: None)
            await task.sent.wait()
