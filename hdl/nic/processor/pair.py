"""Blocks between two processors of a card: turns at the registers, locks, and a word for the other one.

"This can be achieved by providing two processors and two hardware doorbell queues, one each devoted to the send and
receive pipelines." (nagar-thesis-2001 4.3.10)
"""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from ...register_bank import BankSignature
from ..queues.descriptor_queue import QueueOrder
from ..queues.dma_queue import IN_ENGINE, DmaQueue, submit_layout

__all__ = ["LOCKS", "BankJoin", "PairedDmaQueue", "PairedLocks"]

LOCKS = 8
"""Locks of a card with two processors, as in `nic.rdl`."""


class BankJoin(wiring.Component):
    """Two processors' accesses to one register bank: one a cycle, and turns when both want one.

    Members:

    - `port_0`, `port_1` (in, `BankSignature`): a processor's port. `read` or `write` is up until the access is taken.
    - `ready` (out, 2): a processor's access is taken in this cycle.
    - `bank` (out, `BankSignature`): the bank.
    - `who` (out): the processor whose access `bank` has.

    Rule: an access goes through in the cycle in which it is asked for, unless the other processor asks too and has not
    been the last one served. So it waits for one access of the other at most, and none is lost or done twice. The data
    of a read are on both ports in the cycle after.

    Latency: none, or the other one's access. Throughput: an access a cycle. Reset: processor 0 would be first.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "port_0": In(BankSignature()),
                "port_1": In(BankSignature()),
                "ready": Out(2),
                "bank": Out(BankSignature()),
                "who": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = [self.port_0, self.port_1]
        wants = [port.read | port.write for port in ports]
        last = Signal(init=1)
        m.d.comb += [
            self.who.eq(wants[1] & (~wants[0] | ~last)),
            self.ready.eq(Cat(wants[0] & ~self.who, self.who)),
        ]
        with m.If(self.ready.any()):
            m.d.sync += last.eq(self.who)
        for name in ("read", "write", "read_offset", "write_offset", "write_data"):
            m.d.comb += getattr(self.bank, name).eq(
                Mux(self.who, getattr(ports[1], name), getattr(ports[0], name))
            )
        for port in ports:
            m.d.comb += [
                port.read_data.eq(self.bank.read_data),
                port.read_mapped.eq(self.bank.read_mapped),
                port.write_mapped.eq(self.bank.write_mapped),
            ]
        return m


class PairedLocks(wiring.Component):
    """`LOCKS` locks, each held by one of two processors or by none, and a word from each to the other.

    Members:

    - `who` (in): the processor that writes or reads.
    - `write` (in): `who` gives back and takes locks, at the end of the cycle.
    - `free` (in, 8): locks of its own that it gives back.
    - `take` (in, 8): locks that it then gets, but for those that the other processor has.
    - `mine`, `others` (out, 8): locks that `who` has, and that the other one has.
    - `tell` (in), `word` (in, 32): `who` writes its word.
    - `told` (out, 32): the word that the other processor wrote last.
    - `signal` (out, 2): processors to which a word is written in this cycle.

    Latency: none to read, 1 cycle from a write to its effect. Throughput: a write a cycle. Reset: nobody has a lock,
    words are 0.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "who": In(1),
                "write": In(1),
                "take": In(LOCKS),
                "free": In(LOCKS),
                "mine": Out(LOCKS),
                "others": Out(LOCKS),
                "tell": In(1),
                "word": In(32),
                "told": Out(32),
                "signal": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Array(Signal(LOCKS, name=f"held_{i}") for i in range(2))
        words = Array(Signal(32, name=f"word_{i}") for i in range(2))
        m.d.comb += [
            self.mine.eq(held[self.who]),
            self.others.eq(held[~self.who]),
            self.told.eq(words[~self.who]),
            self.signal.eq(Mux(self.tell, Mux(self.who, 0b01, 0b10), 0)),
        ]
        with m.If(self.write):
            m.d.sync += held[self.who].eq((self.mine & ~self.free) | (self.take & ~self.others))
        with m.If(self.tell):
            m.d.sync += words[self.who].eq(self.word)
        return m


class PairedDmaQueue(wiring.Component):
    """A queue of each of two processors in front of one engine: `DmaQueue` twice, with turns at the engine.

    The members are those of `DmaQueue`, each being that of the queue of processor `who` (in), but for these:

    - `start` (out), `done`, `result` (in): the engine's.
    - `protect` (in, an array of 2): one for each processor.
    - `ended` (out, 2): one for each processor.

    There is no `stamp` order between the two queues.

    Rule: when both queues have a transfer for the engine they take turns, a transfer each. So a transfer waits for one
    of the other's at most, beside those that are in the engine (`IN_ENGINE` in all). Room, lists, tags and ended
    transfers are each processor's own: neither can fill the other's queue, or take its results.

    Latency: that of `DmaQueue`, and a transfer of the other queue's at most. Throughput: that of `DmaQueue`.
    """

    def __init__(
        self,
        command: object,
        result: object,
        *,
        entries: int,
        order: QueueOrder = "arrival",
        stamp_bits: int = 32,
        registered: bool = False,
    ) -> None:
        self._queues = [
            DmaQueue(
                command,
                result,
                entries=entries,
                order=order,
                stamp_bits=stamp_bits,
                registered=registered,
            )
            for _ in range(2)
        ]
        self.entries = entries
        self.finished_layout = self._queues[0].finished_layout
        count = range(entries + 1)
        super().__init__(
            {
                "who": In(1),
                "submit": In(stream.Signature(submit_layout(command, stamp_bits))),
                "refused": Out(8),
                "protect": In(count).array(2),
                "level": Out(count),
                "room": Out(count),
                "start": Out(stream.Signature(command)),  # type: ignore[arg-type]
                "done": In(1),
                "result": In(result),  # type: ignore[arg-type]
                "busy": Out(1),
                "ended": Out(2),
                "ended_count": Out(8),
                "finished": Out(self.finished_layout),
                "finished_valid": Out(1),
                "take": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue_0, m.submodules.queue_1 = queues = self._queues
        m.submodules.inside = inside = fifo.SyncFIFO(width=1, depth=IN_ENGINE)
        next_one, last = Signal(), Signal(init=1)
        started = Signal()
        starts = [queue.start for queue in queues]
        m.d.comb += [
            next_one.eq(starts[1].valid & (~starts[0].valid | ~last)),
            self.start.valid.eq((starts[0].valid | starts[1].valid) & inside.w_rdy),
            _bits(self.start.payload).eq(Mux(next_one, _bits(starts[1].payload), _bits(starts[0].payload))),
            started.eq(self.start.valid & self.start.ready),
            inside.w_en.eq(started),
            inside.w_data.eq(next_one),
            inside.r_en.eq(self.done),
        ]
        with m.If(started):
            m.d.sync += last.eq(next_one)
        for i, queue in enumerate(queues):
            mine = self.who == i
            m.d.comb += [
                queue.submit.valid.eq(self.submit.valid & mine),
                _bits(queue.submit.payload).eq(_bits(self.submit.payload)),
                queue.protect.eq(self.protect[i]),
                queue.start.ready.eq(started & (next_one == i)),
                queue.done.eq(self.done & (inside.r_data == i)),
                _bits(queue.result).eq(_bits(self.result)),
                queue.take.eq(self.take & mine),
                self.ended[i].eq(queue.ended),
            ]
        shown = ("refused", "level", "room", "busy", "ended_count", "finished_valid")
        for name in shown:
            m.d.comb += getattr(self, name).eq(
                Mux(self.who, getattr(queues[1], name), getattr(queues[0], name))
            )
        m.d.comb += [
            _bits(self.finished).eq(Mux(self.who, _bits(queues[1].finished), _bits(queues[0].finished))),
            self.submit.ready.eq(Mux(self.who, queues[1].submit.ready, queues[0].submit.ready)),
        ]
        return m


def _bits(value: object) -> Value:
    return Value.cast(value)  # type: ignore[arg-type]
