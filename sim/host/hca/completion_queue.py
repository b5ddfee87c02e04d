"""A completion queue, as the process that owns it sees it."""

from __future__ import annotations

from typing import NamedTuple

from lanikai.firmware.ports import Flag
from lanikai.hdl.hca.layout import CQE_BYTES, CQE_LAYOUT, INDEX_BITS, TIME_BITS, CqeStatus, WindowWord

from ..memory import Buffer
from .errors import HcaError
from .port import AdapterPort
from .queue_pair import QueuePair

__all__ = ["Completion", "CompletionQueue"]

_PLACES = [(field.offset, (1 << field.width) - 1) for name, field in CQE_LAYOUT if "reserved" not in name]
_NAMES = [name for name, _ in CQE_LAYOUT if "reserved" not in name]
assert _NAMES == [
    "bytes",
    "tag",
    "qp",
    "status",
    "receive",
    "with_immediate",
    "source",
    "source_qp",
    "immediate",
    "vl",
    "kind",
    "life",
    "phase",
]
_PHASE_BYTE, _PHASE_BIT = divmod(CQE_LAYOUT["phase"].offset, 8)
_FIELDS = tuple(_PLACES[:-1])
_INDEX = (1 << INDEX_BITS) - 1
_INDEX_OFFSET = 16
"""Place of the running index in a word of the window (`WindowWord`)."""


class Completion(NamedTuple):
    """The end of a work queue element: `CQE_LAYOUT` has the fields."""

    bytes: int
    tag: int
    qp: int
    status: int
    receive: int
    with_immediate: int
    source: int
    source_qp: int
    immediate: int
    vl: int
    kind: int
    life: int

    @property
    def ok(self) -> bool:
        """Whether it has ended well."""
        return self.status == CqeStatus.OK

    @property
    def buffered_cycles(self) -> int:
        """Cycles that the last header of a good send was in the buffer of its VL, at most `MOST_BUFFERED_CYCLES`."""
        return self.source | self.source_qp << CQE_LAYOUT["source"].width

    def departed(self, now: int) -> int:
        """The cycle in which the last header of a good send was on the link, less than 2^32 cycles before `now`."""
        return now - (now - self.immediate) % (1 << TIME_BITS)


class CompletionQueue:
    """Completion queue `number` of the process with page `owner`: a ring of 2^`entries_log2` entries.

    Its queue pairs are told of their elements' ends as these are read; an end of an earlier life of the number is given
    to the reader alone. Room in the ring is given back a quarter of it at a time.
    """

    def __init__(
        self, port: AdapterPort, *, number: int, owner: int, ring: Buffer, entries_log2: int
    ) -> None:
        self.number, self.owner = number, owner
        self.ring = ring
        self.queue_pairs: dict[int, QueuePair] = {}
        self._port, self._entries_log2 = port, entries_log2
        self._bytes = ring.data.data
        self._index, self._told = 0, 0

    @property
    def entries(self) -> int:
        """Entries of the ring."""
        return 1 << self._entries_log2

    def poll(self, most: int = 1 << 30) -> list[Completion]:
        """The entries that have come since, the oldest first, `most` of them at most. Takes no time.

        Raises HcaError if the ring was full, as entries are lost then; entries before that are given first. It does so
        until `HcaDriver.renew` has made the queue anew.
        """
        found: list[Completion] = []
        index, entries, log2, ring = self._index, 1 << self._entries_log2, self._entries_log2, self._bytes
        while len(found) < most:
            at = (index & entries - 1) * CQE_BYTES
            if ring[at + _PHASE_BYTE] >> _PHASE_BIT & 1 == (index >> log2) & 1:
                break
            word = int.from_bytes(ring[at : at + CQE_BYTES], "little")
            one = Completion._make([word >> offset & mask for offset, mask in _FIELDS])
            if one.status == CqeStatus.OVERRUN:
                if found:
                    break
                raise HcaError(
                    f"node {self._port.node}, completion queue {self.number}: overrun: its ring of {entries} entries "
                    "was full; read it sooner, or make it larger"
                )
            index += 1
            if not one.receive and (pair := self.queue_pairs.get(one.qp)) and pair.life == one.life:
                pair.ended(one.tag)
            found.append(one)
        self._index = index
        if index - self._told >= max(1, entries >> 2):
            self._told = index
            self._port.write_now(
                self.owner, WindowWord.CONSUME, self.number | (index & _INDEX) << _INDEX_OFFSET
            )
        return found

    async def wait(self, *, within_cycles: int | None = None) -> list[Completion]:
        """As `poll`, but wait until there is an entry. The list is empty if none has come `within_cycles`."""
        flag = self._port.completed[self.number]
        deadline = None if within_cycles is None else self._port.now + within_cycles
        alarm = False
        while True:
            flag.clear()
            if (found := self.poll()) or (deadline is not None and self._port.now >= deadline):
                return found
            if deadline is not None and not alarm:
                alarm = True
                self._port.spawn(self._alarm(flag, deadline), f"bound of completion queue {self.number}")
            await flag.wait()

    async def _alarm(self, flag: Flag, deadline: int) -> None:
        await self._port.sleep(deadline - self._port.now)
        flag.set()

    def begin_anew(self) -> None:
        """The driver has set the ring up again (`HcaDriver.renew`): it is empty, and read from its start."""
        self._index = self._told = 0
