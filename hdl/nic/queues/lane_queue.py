"""A queue of the send engine for each virtual lane: a lane whose packets cannot leave holds up no other."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...router.vl_buffer import VlBuffer, encode
from ...vl_arbiter.round_robin import RoundRobinVlArbiter
from ..dma.send_engine import SEND_COMMAND
from ..link_port.standing_choice import StandingChoice
from ..link_port.vl_counters import VlCounters, one_hot
from ..link_port.vl_rows import VlRows
from .descriptor_queue import push_layout
from .dma_queue import DmaQueue

__all__ = ["LaneDmaQueue", "LaneQueue"]


class LaneQueue(wiring.Component):
    """`entries` descriptors (2 or more) of `shape` for each of `vls` VLs.

    `shape` has a field `command` with a field `vl`, the VL of a descriptor.

    The members are those of `DescriptorQueue` but `protect`, and some more (vectors have a bit a VL):

    - `push` (in, stream of `push_layout`): ready while its VL has room; never for a VL that does not exist. `more` and
      `stamp` are ignored: the order in a VL is that of arrival.
    - `head` (out, `shape`), `head_valid` (out), `pop` (in): the oldest descriptor of the VL whose turn it is. That of
      another VL may take its place until it is popped. `head_more` is 0.
    - `level` (out): entries of all VLs.
    - `full`, `waiting` (out): VLs without room, and with entries.
    - `allowed` (in): VLs that may have a turn.
    - `hungry` (in): VLs that go before others.

    Turns go round among the hungry VLs that are allowed and have entries. If there are none, they go round among all
    that are allowed and have entries. With 16 VLs VL 15 goes first of those (yum-2006 3.3).

    With `registered` the VL whose turn it is, the row of its oldest descriptor, and that descriptor stand in registers.
    The choice stays until it is popped, and follows from `allowed` and `hungry` of 6 cycles before.

    Latency: 1 cycle from a push to `head_valid`, 7 with `registered`. Throughput: a push and a pop a cycle; with
    `registered` a pop in 8 cycles. Reset: empty.
    """

    def __init__(
        self, shape: Any, *, vls: int, entries: int, stamp_bits: int = 1, registered: bool = False
    ) -> None:
        self._shape, self._vls, self._entries, self._registered = shape, vls, entries, registered
        super().__init__(
            {
                "push": In(stream.Signature(push_layout(shape, stamp_bits))),
                "head": Out(shape),
                "head_more": Out(1),
                "head_valid": Out(1),
                "pop": In(1),
                "protect": In(1),
                "level": Out(range(vls * entries + 1)),
                "full": Out(vls),
                "waiting": Out(vls),
                "allowed": In(vls),
                "hungry": In(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        if self._registered:
            return self._with_registers()
        m = Module()
        m.submodules.lanes = lanes = VlBuffer(shape=self._shape, vls=self._vls, depth=self._entries)
        m.submodules.arbiter = arbiter = RoundRobinVlArbiter(vls=self._vls)
        vl = self.push.payload.descriptor.command.vl
        pushed, popped, candidates, first = Signal(), Signal(), Signal(self._vls), Signal(self._vls)
        m.d.comb += [
            self.push.ready.eq((~lanes.full >> vl)[0] & (vl < self._vls)),
            pushed.eq(self.push.valid & self.push.ready),
            lanes.write_valid.eq(pushed),
            lanes.write_vl.eq(vl),
            lanes.write_data.eq(self.push.payload.descriptor),
            candidates.eq(lanes.non_empty & self.allowed),
            first.eq(candidates & self.hungry),
            arbiter.requests.eq(Mux(first.any(), first, candidates)),
            arbiter.advance.eq(popped),
            self.head_valid.eq(candidates.any()),
            popped.eq(self.pop & self.head_valid),
            lanes.read_select.eq(arbiter.grant),
            lanes.pop.eq(popped),
            self.head.eq(lanes.read_data),
            self.full.eq(lanes.full),
            self.waiting.eq(lanes.non_empty),
        ]
        m.d.sync += self.level.eq(self.level + pushed - popped)
        return m

    def _with_registers(self) -> Module:
        m = Module()
        vls = self._vls
        m.submodules.rows = rows = VlRows(shape=self._shape, vls=vls, depth=self._entries)
        m.submodules.counts = counts = VlCounters(vls=vls, most=self._entries)
        m.submodules.choice = choice = StandingChoice(vls=vls)
        vl = self.push.payload.descriptor.command.vl
        pushed, popped, candidates, first, into = (Signal(), Signal(), Signal(vls), Signal(vls), Signal(vls))
        m.d.comb += [
            self.push.ready.eq((~counts.full >> vl)[0] & (vl < vls)),
            pushed.eq(self.push.valid & self.push.ready),
            into.eq(one_hot(pushed, vl, vls)),
            candidates.eq(counts.any & self.allowed),
            first.eq(candidates & self.hungry),
            choice.requests.eq(Mux(first.any(), first, candidates)),
            choice.done.eq(popped),
            popped.eq(self.pop & self.head_valid),
            counts.add.eq(into),
            counts.take.eq(Mux(popped, choice.chosen, 0)),
            self.full.eq(counts.full),
            self.waiting.eq(counts.any),
        ]
        # A descriptor that comes stands in a register first. The choice takes longer than its way into its row.
        writes, write_vl, written = Signal(), Signal.like(vl), Signal(self._shape)
        m.d.sync += [writes.eq(pushed), write_vl.eq(vl), written.eq(self.push.payload.descriptor)]
        m.d.comb += [rows.write.eq(writes), rows.write_vl.eq(write_vl), rows.write_data.eq(written)]

        # The row of the chosen VL's oldest descriptor is looked up, then read, and stands until it is popped.
        fronts = [Signal(rows.row_bits, name=f"front_{n}") for n in range(vls)]
        looks, reads = Signal(), Signal()
        for n, front in enumerate(fronts):
            with m.If(popped & choice.chosen[n]):
                m.d.sync += front.eq(front + 1)
        m.d.sync += [
            rows.read_row.eq(
                reduce(or_, (Mux(choice.chosen[n], front, 0) for n, front in enumerate(fronts)))
            ),
            rows.read_vl.eq(encode(choice.chosen, len(rows.read_vl))),
            looks.eq(choice.chosen.any() & ~popped),
            reads.eq(looks & ~popped),
            self.head_valid.eq(reads & ~popped),
            self.level.eq(self.level + pushed - popped),
        ]
        m.d.comb += [rows.moves.eq(1), self.head.eq(rows.read_data)]
        return m


class LaneDmaQueue(DmaQueue):
    """`DmaQueue` of the send engine with `entries` packets for each VL (`LaneQueue`).

    It differs from `DmaQueue` in these:

    - `submit` is ready while the VL of the packet has room.
    - Packets of several VLs end in any order: their tags tell them apart.
    - `room` is 1 if every VL has room for another packet, else 0.
    - `full`, `waiting` (out), `allowed`, `hungry` (in): those of `LaneQueue`.
    """

    def __init__(self, *, vls: int, entries: int, registered: bool = False) -> None:
        self._vls = vls
        super().__init__(SEND_COMMAND, 0, entries=entries, stamp_bits=1, registered=registered)

    def _most_waiting(self) -> int:
        return self._vls * self.entries

    def _more_members(self) -> dict[str, wiring.Member]:
        return {
            "full": Out(self._vls),
            "waiting": Out(self._vls),
            "allowed": In(self._vls),
            "hungry": In(self._vls),
        }

    def _make_queue(self, m: Module) -> Any:
        m.submodules.queue = queue = LaneQueue(
            self._queued, vls=self._vls, entries=self.entries, registered=self._registered
        )
        m.d.comb += [
            self.full.eq(queue.full),
            self.waiting.eq(queue.waiting),
            queue.allowed.eq(self.allowed),
            queue.hungry.eq(self.hungry),
        ]
        return queue

    def _room(self, queue: Any) -> Value:
        return ~self.full.any()
