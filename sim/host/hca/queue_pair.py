"""A queue pair, as the process that owns it sees it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lanikai.hdl.hca.layout import (
    INDEX_BITS,
    RECEIVE_WQE_BYTES,
    RECEIVE_WQE_LAYOUT,
    SEND_WQE_BYTES,
    SEND_WQE_LAYOUT,
    TAG_BITS,
    Opcode,
    WindowWord,
)
from lanikai.hdl.packet import Kind

from ..memory import Buffer
from .element_page import ElementPage
from .errors import QueueFullError
from .port import AdapterPort

if TYPE_CHECKING:
    from .region import Region

__all__ = ["QueuePair"]

_SEND = {name: (field.offset, (1 << field.width) - 1) for name, field in SEND_WQE_LAYOUT}
_RECEIVE = {name: (field.offset, (1 << field.width) - 1) for name, field in RECEIVE_WQE_LAYOUT}
_INDEX = (1 << INDEX_BITS) - 1
_INDEX_OFFSET = 16
_TAGS = 1 << TAG_BITS


class QueuePair:
    """Queue pair `number` of the process with page `owner`, in its `life`-th life: see `HcaDriver.create_queue_pair`.

    Its elements are signaled, so that each send has an end that its completion queue tells of. Tags of sends count up;
    the caller's own name for a message is `context`.

    They are written into `send_ring`, or into `page` if elements are posted, where there is no such ring.
    """

    def __init__(
        self,
        port: AdapterPort,
        *,
        number: int,
        owner: int,
        life: int = 0,
        send_ring: Buffer | None,
        send_log2: int,
        receive_ring: Buffer,
        receive_log2: int,
        page: ElementPage | None = None,
    ) -> None:
        self.number, self.owner, self.life = number, owner, life
        self.send_ring, self.receive_ring = send_ring, receive_ring
        self.under_way: deque[int] = deque()
        """Tags of the sends that have not ended, the oldest first."""
        self._port = port
        self._send_log2, self._receive_log2 = send_log2, receive_log2
        self._page = page
        self._send_bytes = send_ring.data.data if send_ring else None
        self._receive_bytes = receive_ring.data.data
        self._sent = self._posted = 0
        self.received = 0
        """Receive elements that have ended: whoever reads their completions counts them here."""

    @property
    def send_room(self) -> int:
        """Sends that could be posted now."""
        return (1 << self._send_log2) - len(self.under_way)

    def send(
        self,
        region: Region,
        address: int,
        length: int,
        *,
        vl: int,
        destination: int = 0,
        destination_qp: int = 0,
        destination_life: int = 0,
        service_level: int = 0,
        immediate: int | None = None,
        kind: Kind = Kind.DATA,
        bandwidth: int = 0,
        generation: int = 0,
        not_before: int | None = None,
    ) -> tuple[int, int]:
        """Post a message: `length` bytes at virtual `address` of `region`. Returns its tag, and the doorbell's cycle.

        - `destination`, `destination_qp`, `destination_life`: the receiver's node, queue pair and its life, of a queue
          pair that is not connected.
        - `immediate`: 32 bits for the receiver's completion.
        - `kind`, `bandwidth`: those in the header of its last packet. RELEASE with the units of the reservation of its
          path ends that behind it.
        - `not_before`: a cycle until which the doorbell is kept back; later ones wait behind it.

        Raises QueueFullError if the ring is full.
        """
        if len(self.under_way) >> self._send_log2:
            raise QueueFullError(
                f"node {self._port.node}, queue pair {self.number}: {len(self.under_way)} sends wait already: the "
                "ring is full"
            )
        tag = self._sent % _TAGS
        word = self._word(
            _SEND,
            opcode=Opcode.SEND if immediate is None else Opcode.SEND_IMMEDIATE,
            signaled=1,
            kind=kind,
            bandwidth=bandwidth,
            generation=generation,
            vl=vl,
            service_level=service_level,
            tag=tag,
            destination=destination,
            destination_qp=destination_qp,
            destination_life=destination_life,
            immediate=immediate or 0,
            address=address,
            bytes=length,
            region=region.number,
            key=region.key,
        )
        if self._page:
            self._page.write(word)
        else:
            assert self._send_bytes is not None
            at = (self._sent & (1 << self._send_log2) - 1) * SEND_WQE_BYTES
            self._send_bytes[at : at + SEND_WQE_BYTES] = word.to_bytes(SEND_WQE_BYTES, "little")
        self._sent += 1
        self.under_way.append(tag)
        when = self._port.write_now(
            self.owner,
            WindowWord.SEND_DOORBELL,
            self.number | (self._sent & _INDEX) << _INDEX_OFFSET,
            not_before=not_before,
        )
        return tag, when

    def ended(self, tag: int) -> None:
        """Note that the send with `tag` has ended. Sends on different VLs end in any order."""
        self.under_way.remove(tag)

    def receive(self, region: Region, address: int, length: int, *, tag: int, ring: bool = True) -> None:
        """Post a buffer. With `ring` off the doorbell is left for a later one. Raises QueueFullError."""
        if self._posted - self.received >> self._receive_log2:
            raise QueueFullError(
                f"node {self._port.node}, queue pair {self.number}: {self._posted - self.received} buffers wait "
                "already: the ring is full"
            )
        word = self._word(
            _RECEIVE, address=address, bytes=length, tag=tag, region=region.number, key=region.key
        )
        at = (self._posted & (1 << self._receive_log2) - 1) * RECEIVE_WQE_BYTES
        self._receive_bytes[at : at + RECEIVE_WQE_BYTES] = word.to_bytes(RECEIVE_WQE_BYTES, "little")
        self._posted += 1
        if ring:
            self.ring_receive()

    def ring_receive(self) -> None:
        """Tell the adapter of the buffers posted so far."""
        self._port.write_now(
            self.owner,
            WindowWord.RECEIVE_DOORBELL,
            self.number | (self._posted & _INDEX) << _INDEX_OFFSET,
        )

    @staticmethod
    def _word(places: dict[str, tuple[int, int]], **fields: int) -> int:
        word = 0
        for name, value in fields.items():
            offset, mask = places[name]
            if not 0 <= value <= mask:
                raise ValueError(f"{name} = {value:#x}: 0 to {mask:#x}")
            word |= value << offset
        return word
