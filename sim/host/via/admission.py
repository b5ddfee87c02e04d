"""Admission control for VIs with a rate: a card promises no more than its firmware was measured to carry.

The thesis leaves it out (nagar-thesis-2001 5.3.3): its driver would have to ask both ends' cards whether they can
handle the load. Here each card has a `CardAdmission`, which its kernel agent asks. A connection with a rate is made if
both ends' cards have room.

A card's capacity is a curve: the bytes a second that it carries are a function of the messages' bytes. A message takes
the card a fixed time and a time for each byte, for each design of firmware and each direction. They stand in
`capacity.toml` beside this module, which says where they are from.

A promise is the part of each second that its messages take the card, in nanoseconds. Promises add up exactly. Sending
and receiving share a card's processor, so their parts add up, too. A part of the card is never promised: it is best
effort's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lanikai.hdl.config import ConfigError

__all__ = [
    "BEST_EFFORT_PART",
    "CAPACITY_FILE",
    "UNLIMITED",
    "CardAdmission",
    "Demand",
    "Grant",
    "MessageTime",
    "Refusal",
    "ViaCapacity",
    "via_capacity",
    "vtick",
]

CAPACITY_FILE = Path(__file__).with_name("capacity.toml")
BEST_EFFORT_PART = 0.1
"""Part of a card's time that is best effort's, and never promised."""
SECOND_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class MessageTime:
    """The time that a message takes a card: `fixed_ns`, and `byte_ps` picoseconds a byte."""

    fixed_ns: int
    byte_ps: int

    def __post_init__(self) -> None:
        """Check that a message takes time."""
        if self.fixed_ns < 0 or self.byte_ps < 0 or self.fixed_ns + self.byte_ps == 0:
            raise ValueError(f"{self}: not negative, and not both 0")

    def message_ns(self, count: int) -> int:
        """That of a message of `count` bytes, rounded up."""
        return self.fixed_ns - (-count * self.byte_ps // 1000)

    def part_ns(self, bytes_per_s: int, message_bytes: int) -> int:
        """Nanoseconds of each second that a rate takes, rounded up."""
        return -(-bytes_per_s * self.message_ns(message_bytes) // message_bytes)

    def most_bytes_per_s(self, part_ns: int, message_bytes: int) -> int:
        """The most bytes a second for which `part_ns` of each second suffice; 0 if there are none."""
        return max(0, part_ns * message_bytes // self.message_ns(message_bytes))


@dataclass(frozen=True, kw_only=True)
class ViaCapacity:
    """The capacity of a card with a design of firmware: the time of a message that it sends, and that it receives."""

    send: MessageTime
    receive: MessageTime


UNLIMITED = ViaCapacity(send=MessageTime(fixed_ns=0, byte_ps=1), receive=MessageTime(fixed_ns=0, byte_ps=1))
"""A card that promises whatever it is asked, up to 10^12 bytes a second: for experiments on overloaded cards."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """A VI's request to one card: bytes a second that it sends and receives, in messages of `message_bytes`.

    Raises ValueError for negative rates, for both 0, and for messages without bytes.
    """

    send_bytes_per_s: int = 0
    receive_bytes_per_s: int = 0
    message_bytes: int

    def __post_init__(self) -> None:
        """Check the fields."""
        rates = (self.send_bytes_per_s, self.receive_bytes_per_s)
        if min(rates) < 0 or max(rates) == 0:
            raise ValueError(f"Demand: {rates[0]} and {rates[1]} bytes/s: not negative, and one above 0")
        if self.message_bytes < 1:
            raise ValueError(f"Demand: message_bytes = {self.message_bytes}: at least 1")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A VI's demand has been promised: `part_ns` of each second of the card."""

    part_ns: int


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A VI's demand does not fit.

    - `reason`: one line.
    - `acceptable_bytes_per_s`: the most that would be accepted of the larger of its two rates, at equal proportions; 0
      for none.
    """

    reason: str
    acceptable_bytes_per_s: int


@dataclass(kw_only=True)
class _Entry:
    owner: int
    part_ns: int
    demand: Demand


@dataclass(kw_only=True)
class CardAdmission:
    """The promises of one card.

    - `capacity`: the card's.
    - `best_effort_part`: see `BEST_EFFORT_PART`.

    Raises ValueError for a part that is not from 0 to below 1.
    """

    capacity: ViaCapacity
    best_effort_part: float = BEST_EFFORT_PART
    _entries: dict[int, _Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the part."""
        if not 0 <= self.best_effort_part < 1:
            raise ValueError(f"best_effort_part = {self.best_effort_part:g}: at least 0 and below 1")

    @property
    def whole_ns(self) -> int:
        """Nanoseconds of each second that may be promised."""
        return int(SECOND_NS * (1 - self.best_effort_part))

    @property
    def used_ns(self) -> int:
        """Nanoseconds of each second that are promised."""
        return sum(entry.part_ns for entry in self._entries.values())

    def __len__(self) -> int:
        """The number of promises."""
        return len(self._entries)

    def __iter__(self) -> Iterator[int]:
        """The VIs that have one."""
        return iter(self._entries)

    def reserve(self, *, owner: int, vi: int, demand: Demand) -> Grant | Refusal:
        """Promise `demand` to a VI of the process `owner`, in place of what it has been promised before.

        A refusal changes nothing: an older promise stays.
        """
        old = self._entries.get(vi)
        free_ns = self.whole_ns - self.used_ns + (old.part_ns if old else 0)
        part_ns = self._part_ns(demand)
        if part_ns > free_ns:
            most = self._most(demand, free_ns)
            rate = max(demand.send_bytes_per_s, demand.receive_bytes_per_s)
            return Refusal(
                reason=f"VI {vi}: {rate / 1e6:g} MB/s in messages of {demand.message_bytes} bytes take "
                f"{part_ns / 1e7:.2f}% of the card, of which {free_ns / 1e7:.2f}% are free: "
                + (f"at most {most / 1e6:.3f} MB/s" if most else "no rate fits"),
                acceptable_bytes_per_s=most,
            )
        self._entries[vi] = _Entry(owner=owner, part_ns=part_ns, demand=demand)
        return Grant(part_ns=part_ns)

    def release(self, vi: int) -> None:
        """Take a VI's promise back. A VI without one is no error: best effort has none."""
        self._entries.pop(vi, None)

    def release_owner(self, owner: int) -> None:
        """Take back the promises of all VIs of a process that has died."""
        for vi in [vi for vi, entry in self._entries.items() if entry.owner == owner]:
            del self._entries[vi]

    def promised(self, vi: int) -> Demand | None:
        """The promise that a VI has; None if it has none."""
        entry = self._entries.get(vi)
        return entry.demand if entry else None

    def _part_ns(self, demand: Demand) -> int:
        ways = (
            (self.capacity.send, demand.send_bytes_per_s),
            (self.capacity.receive, demand.receive_bytes_per_s),
        )
        return sum(time.part_ns(rate, demand.message_bytes) for time, rate in ways)

    def _most(self, demand: Demand, free_ns: int) -> int:
        """The most of the larger rate that fits, the other one in proportion."""
        send, receive = demand.send_bytes_per_s, demand.receive_bytes_per_s
        low, high = 0, max(send, receive)

        def fits(most: int) -> bool:
            # Rounded up, as the smaller rate of a demand in bytes may be.
            scaled = [-(-rate * most // high_rate) for rate in (send, receive)]
            demanded = Demand(
                send_bytes_per_s=scaled[0], receive_bytes_per_s=scaled[1], message_bytes=demand.message_bytes
            )
            return self._part_ns(demanded) <= free_ns

        high_rate = high
        while low < high:
            middle = (low + high + 1) // 2
            if fits(middle):
                low = middle
            else:
                high = middle - 1
        return low


@cache
def _table() -> Mapping[str, ViaCapacity]:
    with CAPACITY_FILE.open("rb") as file:
        found = tomllib.load(file)
    return {
        design: ViaCapacity(send=MessageTime(**ways["send"]), receive=MessageTime(**ways["receive"]))
        for design, ways in found.items()
    }


def via_capacity(design: str) -> ViaCapacity:
    """The measured capacity of a card with the design `design`. Raises ConfigError for one that was not measured."""
    if design not in _table():
        raise ConfigError(
            f"no capacity measured of the VIA design {design!r}; measured: {', '.join(_table())}"
        )
    return _table()[design]


def vtick(bytes_per_s: int, message_bytes: int, *, tick_ns: float) -> int:
    """RTC ticks between two messages at a rate, rounded down, at least 1: a VI is never promised too little."""
    return max(1, int(message_bytes * SECOND_NS / (bytes_per_s * tick_ns)))
