"""A queue of DMA descriptors in hardware, in order of arrival or of time stamps.

"The newer interface (LANai 7) offers a hardware queuing mechanism for DMA operations as well" (nagar-thesis-2001
5.2.2). The LANai "can simply insert a DMA request in a queue, and can in its own time come back and check the status
for completion". For QoS a descriptor "is inserted in the hardware HDMA queue in timestamp order" (5.3.3). There
"hardware constraints and the need to avoid race conditions prevent the preemption of a message which is already
receiving service at the HDMA". The same holds for "a few that immediately follow it".
"""

from __future__ import annotations

from typing import Any, Literal

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...config import ConfigError

__all__ = ["DescriptorQueue", "QueueOrder", "push_layout"]

QueueOrder = Literal["arrival", "timestamp"]
"""`arrival`: first come, first served. `timestamp`: the smallest stamp first, equal ones as they came."""


def push_layout(shape: Any, stamp_bits: int) -> data.StructLayout:
    """An item that is put into a queue.

    - `descriptor`: of `shape`.
    - `more`: the next one put in belongs to the same list.
    - `stamp`: a time on a clock of `stamp_bits` bits that wraps. It is ignored in order of arrival, and in a list after
      its first descriptor.
    """
    return data.StructLayout({"descriptor": shape, "more": 1, "stamp": stamp_bits})


class DescriptorQueue(wiring.Component):
    """A queue of `entries` (1 or more, any number) descriptors of `shape`, in `order`.

    Members:

    - `push` (in, stream of `push_layout`): ready while there is room. A pop makes room from the next cycle on.
    - `head` (out, `shape`), `head_more` (out), `head_valid` (out): the descriptor whose turn it is. In order
      `timestamp` a smaller stamp may take its place until it is popped.
    - `pop` (in): takes it at the end of the cycle; nothing happens without one. A popped descriptor is being served,
      and nothing goes before it any more.
    - `protect` (in, `range(entries + 1)`), only in order `timestamp`: so many entries from the head on keep their
      place, whatever the stamps of new ones. They are those that follow closely on the one being served.
    - `level` (out, `range(entries + 1)`): entries.

    Stamps compare modulo 2^`stamp_bits`: `a` is before `b` if (b - a) is less than half of that. So a VirtualClock may
    wrap, while all stamps in the queue lie within half its range. Stamps further apart lose their order, and nothing
    else.

    Lists: descriptors joined by `more` leave one after the other with nothing between. The rest of a list goes directly
    behind its predecessor, before protected entries too. If the predecessor has been popped, it goes before everything
    else, and `head_valid` waits for it. So a list once begun is to be ended.

    With `registered`, only in order `arrival`, the head stands in a register instead of being read from the memory in
    the cycle in which it is used. This makes no difference to any cycle.

    Latency: 1 cycle from a push to `head_valid`. Throughput: a push and a pop a cycle. Outputs follow from registers
    alone. Descriptors stand in a memory; in order `timestamp` stamps and places stand in shift registers, compared all
    at once. Reset: empty.

    Raises ConfigError for less than 1 entry or stamp bit.
    """

    def __init__(
        self,
        shape: Any,
        *,
        entries: int,
        order: QueueOrder = "arrival",
        stamp_bits: int = 32,
        registered: bool = False,
    ) -> None:
        for name, value in (("entries", entries), ("stamp_bits", stamp_bits)):
            if value < 1:
                raise ConfigError(f"DescriptorQueue: {name} = {value}: at least 1")
        self.shape, self.entries, self.order, self.stamp_bits = shape, entries, order, stamp_bits
        self._registered = registered and order == "arrival"
        super().__init__(
            {
                "push": In(stream.Signature(push_layout(shape, stamp_bits))),
                "head": Out(shape),
                "head_more": Out(1),
                "head_valid": Out(1),
                "pop": In(1),
                "protect": In(range(entries + 1)),
                "level": Out(range(entries + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pushed, popped = Signal(), Signal()
        m.d.comb += [
            self.push.ready.eq(self.level != self.entries),
            pushed.eq(self.push.valid & self.push.ready),
            popped.eq(self.pop & self.head_valid),
        ]
        m.d.sync += self.level.eq(self.level + pushed - popped)

        bits = Shape.cast(self.shape).width
        m.submodules.memory = memory = Memory(shape=bits + 1, depth=self.entries, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(pushed),
            write.data.eq(Cat(self.push.payload.descriptor, self.push.payload.more)),
        ]
        head = Cat(Value.cast(self.head), self.head_more)
        if self._registered:
            # The descriptor that is pushed now is the next head if nothing else is there.
            alone = (self.level == 0) | ((self.level == 1) & popped)
            with m.If(popped | alone):
                m.d.sync += head.eq(Mux(alone, write.data, read.data))
        else:
            m.d.comb += head.eq(read.data)
        if self.order == "arrival":
            self._arrival(m, pushed, popped, write.addr, read.addr)
        else:
            self._timestamp(m, pushed, popped, write.addr, read.addr)
        return m

    def _arrival(
        self, m: Module, pushed: Signal, popped: Signal, write_row: Signal, read_row: Signal
    ) -> None:
        """Two row numbers that go round.

        The row of the head is read or, if the head stands in a register, the one behind it.
        """
        for moved, row in ((pushed, write_row), (popped, read_row)):
            ahead = self._registered and row is read_row
            at = Signal(range(self.entries), init=min(1, self.entries - 1) if ahead else 0)
            m.d.comb += row.eq(at)
            with m.If(moved):
                m.d.sync += at.eq(Mux(at == self.entries - 1, 0, at + 1))
        m.d.comb += self.head_valid.eq(self.level != 0)

    def _timestamp(
        self, m: Module, pushed: Signal, popped: Signal, write_row: Signal, read_row: Signal
    ) -> None:
        """Places in order, each with its stamp and the row of the memory that its descriptor stands in.

        The rows are always a permutation: those of the free places, from `level` on, are the free rows. A new
        descriptor takes the row of place `level`. A popped one leaves its row where the last place was.
        """
        n, level = self.entries, self.level
        stamps = [Signal(self.stamp_bits, name=f"stamp_{i}") for i in range(n)]
        rows = [Signal(range(n), name=f"row_{i}", init=i) for i in range(n)]
        linked = Signal(n)  # the rest of a list: directly behind its predecessor
        newest = Signal(n)  # one-hot: the last one pushed, if it is still here
        goes_on = Signal()  # what is pushed next is the rest of a list
        is_open = Signal()  # what is popped next is the rest of a list
        stamp = Signal(self.stamp_bits)

        # The entries that stay before a new one: a vector of ones up to its place. A one with a zero below it says
        # nothing: with stamps too far apart to compare, order is lost, but no entry.
        stays, before = Signal(n), Signal(n)
        no_later = [~(stamp - stamps[i])[self.stamp_bits - 1] for i in range(n)]
        occupied = [level > i for i in range(n)]
        m.d.comb += [
            stays.eq(
                Cat(occupied[i] & (no_later[i] | (self.protect > i) | linked[i]) for i in range(n)) | popped
            ),
            before.eq(stays & ((~stays)[:n] - 1)),
            stamp.eq(self.push.payload.stamp),
        ]
        with m.If(goes_on):
            m.d.comb += before.eq(Mux(newest.any(), newest | (newest - 1), 0))
        place = Signal(n)  # one-hot: where it goes, before the head leaves
        m.d.comb += place.eq(((before << 1) | 1)[:n] & ~before)
        m.d.comb += [
            write_row.eq(Array(rows)[level]),
            read_row.eq(rows[0]),
            self.head_valid.eq((level != 0) & (~is_open | linked[0])),
        ]

        with m.If(pushed):
            m.d.sync += [
                goes_on.eq(self.push.payload.more),
                newest.eq(Mux(popped, before & ~(before >> 1), place)),
            ]
        with m.Elif(popped):
            m.d.sync += newest.eq(newest >> 1)
        with m.If(popped):
            m.d.sync += is_open.eq(self.head_more)
        for i in range(n):
            fields = (stamps[i], rows[i], linked[i])
            fresh = (stamp, write_row, goes_on)
            lower = (stamps[i - 1], rows[i - 1], linked[i - 1]) if i else fresh
            upper = (stamps[i + 1], rows[i + 1], linked[i + 1]) if i + 1 < n else fresh
            with m.If(pushed & popped):
                # The new one comes to the place below its own; places above stay.
                last = ~before[i + 1] if i + 1 < n else 1
                with m.If(before[i]):
                    m.d.sync += [a.eq(Mux(last, b, c)) for a, b, c in zip(fields, fresh, upper, strict=True)]
                with m.Elif(level == i):
                    m.d.sync += rows[i].eq(rows[0])
            with m.Elif(pushed), m.If(~before[i] & (level >= i)):
                m.d.sync += [a.eq(Mux(place[i], b, c)) for a, b, c in zip(fields, fresh, lower, strict=True)]
            with m.Elif(popped):
                with m.If(level == i + 1):
                    m.d.sync += [rows[i].eq(rows[0]), linked[i].eq(0)]
                with m.Elif(level > i + 1):
                    m.d.sync += [a.eq(b) for a, b in zip(fields, upper, strict=True)]
