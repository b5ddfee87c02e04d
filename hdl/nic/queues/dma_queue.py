"""A DMA engine's queue: descriptors in front of it, and ended transfers behind it.

With it the firmware "can simply insert a DMA request in a queue, and can in its own time come back and check the
status for completion". Source: nagar-thesis-2001 5.2.2; 4.3.7 for all three engines.
"""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ...config import ConfigError
from .descriptor_queue import DescriptorQueue, QueueOrder

__all__ = ["IN_ENGINE", "TAG_BITS", "DmaQueue", "submit_layout"]

TAG_BITS = 8
"""Width of the number that firmware gives a transfer to know it again."""
IN_ENGINE = 2
"""The most transfers that an engine has taken and not ended."""


def submit_layout(command: Any, stamp_bits: int) -> data.StructLayout:
    """A transfer that the firmware asks for.

    - `command`: the engine's.
    - `tag`: a number to know the transfer again.
    - `notify`: put the tag and the result into the list of finished transfers.
    - `more`: the next one belongs to the same list.
    - `stamp`: for order `timestamp`.
    """
    return data.StructLayout(
        {"command": command, "tag": TAG_BITS, "notify": 1, "more": 1, "stamp": stamp_bits}
    )


class DmaQueue(wiring.Component):
    """`entries` descriptors of the layout `command` in front of an engine, and its results of the layout `result`.

    `order` and `registered` are those of `DescriptorQueue`.

    Members:

    - `submit` (in, stream of `submit_layout`): ready while the queue has room.
    - `refused` (out, 8): times that `submit` was valid without room, modulo 256. Registers do not wait, so their
      transfer is then lost and counted.
    - `protect` (in), `level` (out): as in `DescriptorQueue`.
    - `room` (out, `range(entries + 1)`): free entries.
    - `start` (out, stream of `command`): to the engine. In order `timestamp` the offer may change until it is taken.
    - `done` (in), `result` (in, `result`): a transfer ends in the engine, and its result. The engine ends transfers in
      the order in which it took them, at most `IN_ENGINE` at a time.
    - `busy` (out): a transfer waits or is under way.
    - `ended` (out): a transfer, or a whole list, ends in this cycle.
    - `ended_count` (out, 8): transfers and lists that have ended, modulo 256.
    - `finished` (out, `finished_layout`), `finished_valid` (out): the oldest transfer, or list, that asked for notice
      and has not been taken.
    - `take` (in): takes it at the end of the cycle; nothing happens without one.

    A list ends with its last descriptor, whose tag and `notify` count. Its result is the first of its parts' results
    that is not zero. All parts are served, whatever the results of those before them.

    The list of the finished holds `entries` + `IN_ENGINE` results. A transfer that asks for notice is not started
    before there is room for its result. So no result is lost, and firmware that does not take them stops the engine.

    Latency: 1 cycle from `submit` to `start`, 1 from `done` to `finished` and `ended_count`; `ended` comes with
    `done`. Throughput: a submit, a start and an end a cycle. Reset: empty, counts 0.

    Raises ConfigError for less than 1 entry.
    """

    def __init__(
        self,
        command: Any,
        result: Any,
        *,
        entries: int,
        order: QueueOrder = "arrival",
        stamp_bits: int = 32,
        registered: bool = False,
    ) -> None:
        self._queued = data.StructLayout({"command": command, "tag": TAG_BITS, "notify": 1})
        if entries < 1:
            raise ConfigError(f"DmaQueue: entries = {entries}: at least 1")
        self.entries, self.order, self.stamp_bits = entries, order, stamp_bits
        self._registered = registered
        self.finished_layout = data.StructLayout({"tag": TAG_BITS, "result": result})
        """A finished transfer: its tag and its result."""
        super().__init__(
            {
                "submit": In(stream.Signature(submit_layout(command, stamp_bits))),
                "refused": Out(8),
                "protect": In(range(entries + 1)),
                "level": Out(range(self._most_waiting() + 1)),
                "room": Out(range(entries + 1)),
                "start": Out(stream.Signature(command)),
                "done": In(1),
                "result": In(result),
                "busy": Out(1),
                "ended": Out(1),
                "ended_count": Out(8),
                "finished": Out(self.finished_layout),
                "finished_valid": Out(1),
                "take": In(1),
            }
            | self._more_members()
        )

    def _most_waiting(self) -> int:
        """Descriptors that may wait."""
        return self.entries

    def _more_members(self) -> dict[str, wiring.Member]:
        """Members of a queue that has more."""
        return {}

    def _make_queue(self, m: Module) -> Any:
        """The queue in front of the engine: `DescriptorQueue`, or what has its members."""
        m.submodules.queue = queue = DescriptorQueue(
            self._queued,
            entries=self.entries,
            order=self.order,
            stamp_bits=self.stamp_bits,
            registered=self._registered,
        )
        return queue

    def _room(self, queue: Any) -> Value:
        """The value of `room`."""
        return self.entries - queue.level

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = self._make_queue(m)
        submit = self.submit.payload
        head = queue.head
        m.d.comb += [
            queue.push.valid.eq(self.submit.valid),
            self.submit.ready.eq(queue.push.ready),
            queue.push.payload.descriptor.eq(Cat(Value.cast(submit.command), submit.tag, submit.notify)),
            queue.push.payload.more.eq(submit.more),
            queue.push.payload.stamp.eq(submit.stamp),
            queue.protect.eq(self.protect),
            self.level.eq(queue.level),
            self.room.eq(self._room(queue)),
        ]
        with m.If(self.submit.valid & ~self.submit.ready):
            m.d.sync += self.refused.eq(self.refused + 1)

        # The transfers in the engine, oldest first. Then the results that are promised a place: those of transfers in
        # the engine, and those that wait.
        most = self.entries + IN_ENGINE
        m.submodules.inside = inside = SyncFIFO(width=TAG_BITS + 2, depth=IN_ENGINE)
        m.submodules.results = results = SyncFIFO(width=self.finished_layout.size, depth=most)
        promised = Signal(range(most + 1))
        notifies, started, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            notifies.eq(head.notify & ~queue.head_more),
            self.start.payload.eq(head.command),
            self.start.valid.eq(queue.head_valid & inside.w_rdy & (~notifies | (promised != most))),
            started.eq(self.start.valid & self.start.ready),
            queue.pop.eq(started),
            inside.w_en.eq(started),
            inside.w_data.eq(Cat(head.tag, notifies, queue.head_more)),
            inside.r_en.eq(self.done),
            self.busy.eq(queue.head_valid | (queue.level != 0) | inside.r_rdy),
            taken.eq(self.take & results.r_rdy),
        ]
        m.d.sync += promised.eq(promised + (started & notifies) - taken)

        tag, notice, goes_on = inside.r_data[:TAG_BITS], inside.r_data[TAG_BITS], inside.r_data[TAG_BITS + 1]
        so_far = Signal.like(Value.cast(self.result))
        whole = (
            Mux(so_far.any(), so_far, Value.cast(self.result)) if len(so_far) > 1 else so_far | self.result
        )
        m.d.comb += [
            self.ended.eq(self.done & ~goes_on),
            results.w_en.eq(self.ended & notice),
            results.w_data.eq(Cat(tag, whole)),
            results.r_en.eq(taken),
            Value.cast(self.finished).eq(results.r_data),
            self.finished_valid.eq(results.r_rdy),
        ]
        with m.If(self.done):
            m.d.sync += so_far.eq(Mux(goes_on, whole, 0))
        m.d.sync += self.ended_count.eq(self.ended_count + self.ended)
        return m
