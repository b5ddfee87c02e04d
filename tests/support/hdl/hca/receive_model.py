"""The plain model of the adapter's receive side: what packets do to memory, completions and counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.layout import CONTROL_VL, RECEIVE_WQE_LAYOUT, TRAILER_LAYOUT, CqeStatus
from lanikai.hdl.hca.receive_engine import RECEIVE_COUNTERS
from lanikai.hdl.hca.trailer_crc import trailer_crc
from lanikai.hdl.packet import Header

from ..protection_model import Region, expected
from .completion_model import cqe_bits

__all__ = ["Packet", "Pair", "ReceiveModel", "wqe_bits"]

FLIT = 16
TURNS = 1 << 16


def wqe_bits(**fields: int) -> bytes:
    """A receive work queue element, as it stands in a ring."""
    bits = sum(value << RECEIVE_WQE_LAYOUT[name].offset for name, value in fields.items())
    return bits.to_bytes(RECEIVE_WQE_LAYOUT.size // 8, "little")


@dataclass(kw_only=True)
class Packet:
    """A packet as its sender means it. It lacks `cut` flits of its payload; bit `flip` of its trailer is wrong."""

    qp: int
    source: int
    source_qp: int
    payload: bytes
    number: int = 0
    first: bool = True
    last: bool = True
    total_bytes: int | None = None
    immediate: int | None = None
    kind: int = 0
    vl: int = 0
    life: int = 0
    source_life: int = 0
    generation: int = 0
    cut: int = 0
    flip: int | None = None

    @classmethod
    def of(cls, words: list[int], config: HcaConfig, vl: int = 0) -> Packet:
        """The packet in these flits; `flip` says that its CRC is wrong, `cut` that its length is."""
        header = Header.unpack(words[0])
        trailer = {name: words[-1] >> place.offset & (1 << place.width) - 1 for name, place in TRAILER_LAYOUT}
        body = b"".join(word.to_bytes(FLIT, "little") for word in words[1:-1])
        payload = body[: header.length]
        right = trailer_crc(words[0], payload, words[-1], config.link) == trailer["crc"]
        return cls(
            qp=header.flow & 0xFF,
            source=header.source,
            source_qp=header.sequence & 0xFF,
            number=header.sequence >> 8,
            payload=payload,
            first=bool(trailer["first"]),
            last=bool(trailer["last"]),
            total_bytes=trailer["total_bytes"],
            immediate=trailer["immediate"] if trailer["with_immediate"] else None,
            kind=header.kind,
            vl=vl,
            life=trailer["life"],
            source_life=trailer["source_life"],
            cut=-(-header.length // FLIT) - len(words[1:-1]),
            flip=None if right else 0,
        )

    @property
    def total(self) -> int:
        """Bytes of the message that it tells."""
        return len(self.payload) if self.total_bytes is None else self.total_bytes

    def flits(self, config: HcaConfig) -> list[int]:
        """Its flits, header and trailer included."""
        header = Header(
            source=self.source,
            flow=self.generation << 8 | self.qp,
            length=len(self.payload),
            sequence=self.number % 256 << 8 | self.source_qp,
        ).pack()
        header |= self.kind
        body = self.payload + bytes(-len(self.payload) % FLIT)
        fields = {
            "immediate": self.immediate or 0,
            "total_bytes": self.total,
            "first": int(self.first),
            "last": int(self.last),
            "with_immediate": int(self.immediate is not None),
            "life": self.life,
            "source_life": self.source_life,
        }
        trailer = sum(value << TRAILER_LAYOUT[name].offset for name, value in fields.items())
        trailer |= trailer_crc(header, self.payload, trailer, config.link)
        if self.flip is not None:
            trailer ^= 1 << self.flip
        words = [int.from_bytes(body[i : i + FLIT], "little") for i in range(0, len(body), FLIT)]
        return [header, *words[: len(words) - self.cut], trailer]


@dataclass
class Pair:
    """A queue pair's receive side: its set-up, its ring's indices and its message."""

    owner: int
    queue: int
    base: int
    entries_log2: int
    peer: tuple[int, int] | None
    life: int = 0
    peer_life: int = 0
    control: bool = False
    posted: int = 0
    taken: int = 0
    held: tuple[int, bool] | None = None
    state: str = "none"
    buffer: dict[str, int] = field(default_factory=dict)
    next: int = 0
    received: int = 0
    total: int = 0
    failed: bool = False


class ReceiveModel:
    """The receive side over `memory`. `fails(address)`: the bus answers this beat with an error.

    `posts` lists (queue, entry) of all ends of messages, `counts` has the counters that do not depend on the cache.
    """

    def __init__(
        self, config: HcaConfig, memory: bytearray, fails: Callable[[int], bool] = lambda address: False
    ) -> None:
        self.config, self.memory, self.fails = config, memory, fails
        self.pairs: dict[int, Pair] = {}
        self.regions: dict[int, Region] = {}
        self.posts: list[tuple[int, int]] = []
        self.counts = dict.fromkeys((name for name in RECEIVE_COUNTERS if name not in ("hits", "misses")), 0)

    def setup(self, qp: int, pair: Pair | None) -> None:
        """Open a queue pair, or close it."""
        self.pairs.pop(qp, None)
        if pair is not None and qp < self.config.queue_pairs:
            self.pairs[qp] = pair

    def doorbell(self, owner: int, qp: int, index: int) -> None:
        """A process posts buffers. The first one is fetched before the next doorbell."""
        pair = self.pairs.get(qp)
        # The element that is fetched has left the ring.
        fetched = 0 if pair is None else (pair.taken + (pair.held is not None)) % TURNS
        if (
            pair is None
            or pair.owner != owner
            or (index - fetched) % TURNS > 1 << pair.entries_log2
            or (index - fetched) % TURNS < (pair.posted - fetched) % TURNS
        ):
            self.counts["refusals"] += 1
        else:
            pair.posted = index
            self._fetch(pair)

    def _fetch(self, pair: Pair) -> None:
        """The next element is fetched: what the host writes to its place after that does not count."""
        if pair.held is None and pair.posted != pair.taken:
            at = pair.base + pair.taken % (1 << pair.entries_log2) * FLIT
            pair.held = int.from_bytes(self.memory[at : at + FLIT], "little"), self.fails(at)

    def packet(self, packet: Packet) -> None:
        """A packet comes in."""
        drop = self._judge(packet)
        if drop:
            self.counts[drop] += 1

    def _judge(self, packet: Packet) -> str | None:
        """Returns the counter of what happens to it beside `packets`, if there is one."""
        most = self.config.payload_bytes
        if packet.cut or len(packet.payload) > most:
            return "length_errors"
        if packet.flip is not None:
            return "crc_errors"
        self.counts["packets"] += 1
        pair = self.pairs.get(packet.qp)
        if pair is None:
            return "closed_drops"
        if pair.peer is not None and pair.peer != (packet.source, packet.source_qp):
            return "foreign_drops"
        if packet.life != pair.life or (pair.peer is not None and packet.source_life != pair.peer_life):
            return "life_drops"
        if pair.control != (packet.vl == CONTROL_VL):
            return "lane_drops"
        before = 0 if packet.first else pair.received
        size, total = len(packet.payload), packet.total
        fits = before + size == total if packet.last else before + size < total and size % FLIT == 0
        begins = packet.first and fits and packet.number == 0 and (pair.peer is not None or packet.last)
        if (
            not packet.first
            and fits
            and pair.state == "begun"
            and packet.number % 256 == pair.next
            and total == pair.total
        ):
            return self._write(packet, pair)
        if not packet.first and pair.state == "lost":
            return "rest_drops"
        if pair.state == "begun":
            self._end(packet, pair, CqeStatus.PARTIAL, pair.received)
        return self._begin(packet, pair) if begins else "order_drops"

    def _begin(self, packet: Packet, pair: Pair) -> str | None:
        if pair.held is None:
            pair.state = "lost"
            return "buffer_drops"
        (bits, failed), pair.held = pair.held, None
        pair.taken = (pair.taken + 1) % TURNS
        self._fetch(pair)
        pair.buffer = {
            name: bits >> place.offset & (1 << place.width) - 1 for name, place in RECEIVE_WQE_LAYOUT
        }
        pair.next, pair.received, pair.total = 0, 0, packet.total
        if failed:
            pair.buffer["tag"] = 0
            self._end(packet, pair, CqeStatus.BUS_ERROR, 0)
            return "ended_drops"
        if packet.total > pair.buffer["bytes"]:
            self._end(packet, pair, CqeStatus.TOO_LONG, 0)
            return "ended_drops"
        return self._write(packet, pair)

    def _write(self, packet: Packet, pair: Pair) -> str | None:
        status, pieces = expected(
            self.regions,
            {qp: one.owner for qp, one in self.pairs.items()},
            self.memory,
            channel=packet.qp,
            region=pair.buffer["region"],
            key=pair.buffer["key"],
            address=(pair.buffer["address"] + pair.received) % (1 << 32),
            size=len(packet.payload),
            write=1,
            alignment=FLIT,
        )
        if status:
            self.counts["violations"] += 1
            self._end(packet, pair, status, pair.received)
            return "ended_drops"
        data = packet.payload
        for address, size in pieces:
            self._put(pair, address, data[:size])
            data = data[size:]
        pair.state, pair.next = "begun", (packet.number + 1) % 256
        pair.received += len(packet.payload)
        if packet.last:
            self._end(packet, pair, CqeStatus.OK, pair.received)
            pair.state = "none"
        return None

    def _put(self, pair: Pair, address: int | None, piece: bytes) -> None:
        """A segment: bursts, of which each with a bad beat is an error."""
        burst = self.config.burst_beats * FLIT
        for start in range(0, len(piece), burst):
            bad = False
            for i in range(start, min(start + burst, len(piece)), FLIT):
                beat = piece[i : i + FLIT]
                if self.fails(address + i):
                    bad = True
                else:
                    self.memory[address + i : address + i + len(beat)] = beat
            if bad:
                self.counts["bus_errors"] += 1
                pair.failed = True

    def _end(self, packet: Packet, pair: Pair, status: int, received: int) -> None:
        fields: dict[str, Any] = {
            "bytes": received,
            "tag": pair.buffer["tag"],
            "qp": packet.qp,
            "status": status,
            "receive": 1,
            "source": packet.source,
            "source_qp": packet.source_qp,
            "vl": packet.vl,
            "kind": packet.kind,
            "life": pair.life,
        }
        if status == CqeStatus.OK and packet.immediate is not None:
            fields |= {"with_immediate": 1, "immediate": packet.immediate}
        if pair.failed:
            fields |= {"status": CqeStatus.BUS_ERROR, "bytes": 0}
        pair.failed, pair.state = False, "lost"
        self.posts.append((pair.queue, cqe_bits(**fields)))
