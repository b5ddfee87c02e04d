# amaranth: UnusedElaboratable=no
"""The descriptor queue against a plain list, in both orders, with lists and protected places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.queues.descriptor_queue import DescriptorQueue

STAMP_BITS = 6
HALF = 1 << (STAMP_BITS - 1)


@dataclass
class Entry:
    """A descriptor that waits, by its number; `linked`: it is the rest of a list."""

    number: int
    stamp: int
    more: bool
    linked: bool


@dataclass
class Model:
    """The rules of the docstring, said again on a plain list."""

    entries: int
    order: str
    waiting: list[Entry] = field(default_factory=list)
    newest: Entry | None = None
    open: bool = False

    def head(self) -> Entry | None:
        if not self.waiting or (self.order == "timestamp" and self.open and not self.waiting[0].linked):
            return None
        return self.waiting[0]

    def step(self, push: Entry | None, protect: int, pop: bool) -> None:
        """Play a cycle in which `push` (room is there) and the head come and go."""
        before = self.waiting
        goes = self.head() if pop else None
        if push:
            push.linked = bool(self.newest and self.newest.more)
            before.insert(self.place(push, protect, goes), push)
            self.newest = push
        if goes:
            before.remove(goes)
            self.open = goes.more

    def place(self, new: Entry, protect: int, goes: Entry | None) -> int:
        if self.order == "arrival":
            return len(self.waiting)
        if new.linked:
            return self.waiting.index(self.newest) + 1 if self.newest in self.waiting else 0
        for i, entry in enumerate(self.waiting):
            later = (new.stamp - entry.stamp) % (2 * HALF) >= HALF
            if later and i >= protect and not entry.linked and entry is not goes:
                return i
        return len(self.waiting)


def drive(
    dut: DescriptorQueue, steps: list[tuple[tuple[int, bool] | None, bool, int]], *, order: str
) -> list[int]:
    """Play the steps: (stamp, more) of a push or None, pop, protect. Returns the numbers in the order in which they
    left.

    Pushes that find no room are tried until there is; at the end all is taken out.
    """
    model = Model(dut.entries, order)
    left: list[int] = []
    todo = list(steps)
    ends_list = False

    async def bench(ctx: Any) -> None:
        nonlocal ends_list
        number = 0
        while todo or model.waiting or ends_list:
            wanted, pop, protect = todo[0] if todo else (None, True, 0)
            if ends_list and not todo:
                wanted = (0, False)
            head = model.head()
            ctx.set(dut.pop, pop)
            ctx.set(dut.protect, min(protect, dut.entries))
            ctx.set(dut.push.valid, wanted is not None)
            if wanted:
                payload = {"descriptor": number, "more": wanted[1], "stamp": wanted[0]}
                ctx.set(dut.push.payload, payload)
            room = len(model.waiting) < dut.entries
            assert ctx.get(dut.level) == len(model.waiting)
            assert ctx.get(dut.push.ready) == room
            assert ctx.get(dut.head_valid) == (head is not None)
            if head:
                assert (ctx.get(dut.head), ctx.get(dut.head_more)) == (head.number, head.more)
                if pop:
                    left.append(head.number)
            pushed = Entry(number, wanted[0], wanted[1], False) if wanted and room else None
            model.step(pushed, min(protect, dut.entries), pop)
            await ctx.tick()
            if pushed:
                number, ends_list = number + 1, pushed.more
            if todo and (pushed or not wanted):
                todo.pop(0)
            elif todo and not pop and not room:
                todo[0] = (wanted, True, protect)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return left


steps = st.lists(
    st.tuples(
        # Stamps within half the range of each other, across the wrap.
        st.none() | st.tuples(st.integers(-HALF // 2 + 1, HALF // 2), st.sampled_from([False, False, True])),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=60,
)


def wrapped(found: Any, *, lists: bool) -> list[Any]:
    return [
        (push and (push[0] % (2 * HALF), push[1] and lists), pop, protect) for push, pop, protect in found
    ]


@pytest.mark.parametrize("order", ["arrival", "timestamp", "registered"])
@pytest.mark.parametrize("entries", [1, 2, 3, 4, 7])
@settings(max_examples=25, deadline=None)
@given(steps=steps, lists=st.booleans())
def test_the_queue_follows_the_rules(order: Any, entries: int, steps: Any, lists: bool) -> None:
    # A list that is longer than the queue can only go through while its head is served: pops do that.
    registered, order = order == "registered", order.replace("registered", "arrival")
    dut = DescriptorQueue(8, entries=entries, order=order, stamp_bits=STAMP_BITS, registered=registered)
    left = drive(dut, wrapped(steps, lists=lists), order=order)
    assert sorted(left) == list(range(len(left)))
    if order == "arrival":
        assert left == sorted(left)


@settings(max_examples=25, deadline=None)
@given(stamps=st.lists(st.integers(0, 2 * HALF - 1), max_size=30), pops=st.integers(0, 2**30))
def test_stamps_too_far_apart_lose_order_and_no_entry(stamps: list[int], pops: int) -> None:
    dut = DescriptorQueue(8, entries=4, order="timestamp", stamp_bits=STAMP_BITS)
    left = drive(
        dut, [((stamp, False), bool(pops >> i & 1), 1) for i, stamp in enumerate(stamps)], order="timestamp"
    )
    assert sorted(left) == list(range(len(stamps)))


def test_the_smallest_stamp_leaves_first_across_the_wrap_and_equal_ones_as_they_came() -> None:
    dut = DescriptorQueue(8, entries=6, order="timestamp", stamp_bits=STAMP_BITS)
    stamps = [3, 62, 3, 60, 62, 2]
    pushes = [((stamp, False), False, 0) for stamp in stamps]
    assert drive(dut, pushes, order="timestamp") == [3, 1, 4, 5, 0, 2]


def test_protected_entries_are_not_gone_before() -> None:
    stamps = [9, 8, 7, 1]
    for protect, expected in [(0, [3, 2, 1, 0]), (1, [0, 3, 2, 1]), (2, [0, 1, 3, 2]), (4, [0, 1, 2, 3])]:
        dut = DescriptorQueue(8, entries=4, order="timestamp", stamp_bits=STAMP_BITS)
        pushes = [((stamp, False), False, protect) for stamp in stamps]
        assert drive(dut, pushes, order="timestamp") == expected


def test_a_list_stays_together() -> None:
    """A list's rest goes behind its predecessor, whatever stamps come between, and the queue waits for it."""
    dut = DescriptorQueue(8, entries=4, order="timestamp", stamp_bits=STAMP_BITS)
    steps = [
        ((5, False), False, 0),
        ((9, True), False, 0),
        ((0, True), True, 0),  # 0 leaves
        (None, True, 0),  # 1 leaves
        (None, True, 0),  # 2 leaves; its rest has not come
        (None, True, 0),
        ((7, False), False, 3),  # the rest
        ((6, False), False, 3),  # too late to go before it
    ]
    assert drive(dut, steps, order="timestamp") == [0, 1, 2, 3, 4]


def test_sizes_are_checked() -> None:
    with pytest.raises(ConfigError) as error:
        DescriptorQueue(8, entries=0)
    assert str(error.value) == "DescriptorQueue: entries = 0: at least 1"
    with pytest.raises(ConfigError) as error:
        DescriptorQueue(8, entries=2, stamp_bits=0)
    assert str(error.value) == "DescriptorQueue: stamp_bits = 0: at least 1"
