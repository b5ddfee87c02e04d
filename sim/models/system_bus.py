"""The host's system bus behind an adapter: memory that answers bursts after a fixed time, reads and writes at once."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.axi import Axi4Signature
from lanikai.hdl.config import Config, ConfigError
from pydantic import Field

__all__ = ["NOW_BITS", "SystemBus", "SystemBusTiming", "SystemMemorySignature"]

NOW_BITS = 32
"""Width of the time that all nodes share, cycles modulo 2^32."""
BURSTS = 16
"""Bursts of each direction that may wait: what an adapter has under way at most fits in."""
OKAY, SLVERR, DECERR = 0, 2, 3
"""AXI responses (ARM IHI 0022, A3.4.4)."""
INCR = 1
"""AXI burst type (A3.4.1)."""


class SystemBusTiming(Config):
    """Times of the bus, cycles. The document says nothing of them: they are assumptions, of a memory that is 20 link
    cycles away at most."""

    read_cycles: int = Field(20, ge=2, le=4096, description="from a read's address to its first beat")
    write_cycles: int = Field(10, ge=1, le=4096, description="from a write's last beat to its answer")


class SystemMemorySignature(wiring.Signature):
    """A memory of `data_bits` with a port each way, seen by its user. Members:

    - `read` (out), `read_address` (out, 32): `read_data` (in) holds the word from the next cycle on.
    - `write` (out), `write_address` (out, 32), `strobe` (out, a bit a byte), `write_data` (out): a word is written at
      the end of the cycle.
    """

    def __init__(self, *, data_bits: int) -> None:
        super().__init__(
            {
                "read": Out(1),
                "read_address": Out(32),
                "read_data": In(data_bits),
                "write": Out(1),
                "write_address": Out(32),
                "strobe": Out(data_bits // 8),
                "write_data": Out(data_bits),
            }
        )


class SystemBus(wiring.Component):
    """A bus with one adapter on it, and host memory behind it.

    Parameters: `timing`; `data_bits`; `id_bits`, those of the adapter's port; `memory_bytes` (a multiple of 4096).
    Raises ConfigError.

    Members:

    - `adapter` (in, `Axi4Signature`): INCR bursts of whole or narrow words. Another kind of burst is answered with
      SLVERR, a beat beyond `memory_bytes` with DECERR and ones. Answers come in the order of the addresses.
    - `memory` (out, `SystemMemorySignature`).
    - `now` (in, 32): the time, one more in each cycle.
    - `activity` (out): a beat moves.
    - `rests` (out): no burst is under way.

    Latency: `read_cycles` from the cycle of a read's address to that of its first beat, `write_cycles` from a write's
    last beat to its answer. Throughput: a beat a cycle each way at once, without a gap from burst to burst.
    Reset: idle.
    """

    def __init__(self, timing: SystemBusTiming, *, data_bits: int, id_bits: int, memory_bytes: int) -> None:
        if memory_bytes <= 0 or memory_bytes % 4096:
            raise ConfigError(f"SystemBus: memory_bytes = {memory_bytes}: a positive multiple of 4096")
        self._timing, self._memory_bytes = timing, memory_bytes
        self._data_bits, self._id_bits = data_bits, id_bits
        super().__init__(
            {
                "adapter": In(Axi4Signature(data_bits=data_bits, id_bits=id_bits)),
                "memory": Out(SystemMemorySignature(data_bits=data_bits)),
                "now": In(NOW_BITS),
                "activity": Out(1),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reads = self._queue(m, "ar", self._timing.read_cycles)
        writes = self._queue(m, "aw", 0)
        answers = self._answers(m, writes)
        self._read(m, reads)
        axi = self.adapter
        m.d.comb += [
            self.activity.eq((axi.rvalid & axi.rready) | (axi.wvalid & axi.wready)),
            self.rests.eq(~(reads.any | writes.any | answers)),
        ]
        return m

    def _queue(self, m: Module, channel: str, cycles: int) -> Any:
        """Bursts of `channel` in their order, each with the time at which it may begin."""
        axi = self.adapter
        shape = data.StructLayout(
            {"id": self._id_bits, "address": 32, "beats": 8, "size": 3, "wrong": 1, "due": NOW_BITS}
        )
        m.submodules[f"{channel}_bursts"] = bursts = memory.Memory(shape=shape, depth=BURSTS, init=[])
        put, get = bursts.write_port(), bursts.read_port(domain="comb")
        first, level = (
            Signal(range(BURSTS), name=f"{channel}_first"),
            Signal(range(BURSTS + 1), name=f"{channel}_level"),
        )
        valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
        taken, done = Signal(name=f"{channel}_taken"), Signal(name=f"{channel}_done")
        m.d.comb += [
            ready.eq(level != BURSTS),
            taken.eq(valid & ready),
            put.en.eq(taken),
            put.addr.eq(first + level),
            put.data.id.eq(getattr(axi, f"{channel}id")),
            put.data.address.eq(getattr(axi, f"{channel}addr")),
            put.data.beats.eq(getattr(axi, f"{channel}len")),
            put.data.size.eq(getattr(axi, f"{channel}size")),
            put.data.wrong.eq(getattr(axi, f"{channel}burst") != INCR),
            put.data.due.eq(self.now + cycles),
            get.addr.eq(first),
        ]
        with m.If(taken != done):
            m.d.sync += level.eq(Mux(taken, level + 1, level - 1))
        with m.If(done):
            m.d.sync += first.eq(first + 1)
        return _Bursts(get.data, level.any(), done)

    def _place(self, m: Module, name: str, burst: Any, begin: Any, beat: Any) -> tuple[Any, Any]:
        """Address of the present beat, and whether the burst's last beat is this one."""
        inside, address, left = (
            Signal(name=f"{name}_inside"),
            Signal(32, name=f"{name}_next"),
            Signal(8, name=f"{name}_left"),
        )
        here, last = Signal(32, name=f"{name}_address"), Signal(name=f"{name}_last")
        # The bytes of a beat less one.
        mask = Signal(7, name=f"{name}_mask")
        m.d.comb += [
            here.eq(Mux(inside, address, burst.address)),
            last.eq(Mux(inside, left == 0, burst.beats == 0)),
            mask.eq((1 << burst.size) - 1),
        ]
        with m.If(begin & beat):
            # Beats after the first begin at a multiple of their size (ARM IHI 0022, A3.4.1).
            m.d.sync += [
                inside.eq(~last),
                address.eq((here | mask) + 1),
                left.eq(Mux(inside, left, burst.beats) - 1),
            ]
        return here, last

    def _read(self, m: Module, bursts: Any) -> None:
        axi, port = self.adapter, self.memory
        full = Signal(name="read_full")
        begin, advance = Signal(name="read_begin"), Signal(name="read_advance")
        burst = bursts.front
        fetch = Signal(name="fetch")
        # A beat is fetched a cycle before it is on the bus.
        m.d.comb += [
            begin.eq(bursts.any & ~(self.now - (burst.due - 1))[NOW_BITS - 1]),
            advance.eq(~full | axi.rready),
            fetch.eq(begin & advance),
        ]
        address, last = self._place(m, "read", burst, begin, advance)
        exists = Signal(name="read_exists")
        word = self._data_bits // 8
        m.d.comb += [
            exists.eq(address < self._memory_bytes),
            port.read.eq(fetch & exists & ~burst.wrong),
            port.read_address.eq(address & (0x1_0000_0000 - word)),
            bursts.done.eq(fetch & last),
        ]
        bad = Signal(name="read_bad")
        m.d.comb += [
            axi.rvalid.eq(full),
            axi.rdata.eq(Mux(bad, (1 << self._data_bits) - 1, port.read_data)),
        ]
        with m.If(advance):
            m.d.sync += full.eq(begin)
        with m.If(fetch):
            m.d.sync += [
                axi.rid.eq(burst.id),
                axi.rlast.eq(last),
                bad.eq(~exists | burst.wrong),
                axi.rresp.eq(Mux(burst.wrong, SLVERR, Mux(exists, OKAY, DECERR))),
            ]

    def _answers(self, m: Module, bursts: Any) -> Any:
        """Take write data, and answer later. Returns whether answers are under way."""
        axi, port = self.adapter, self.memory
        shape = data.StructLayout({"id": self._id_bits, "response": 2, "due": NOW_BITS})
        m.submodules.answers = answers = memory.Memory(shape=shape, depth=BURSTS, init=[])
        put, get = answers.write_port(), answers.read_port(domain="comb")
        first, level = (
            Signal(range(BURSTS), name="answer_first"),
            Signal(range(BURSTS + 1), name="answer_level"),
        )
        burst = bursts.front
        beat = Signal(name="write_beat")
        address, last = self._place(m, "write", burst, bursts.any, beat)
        exists, worst, response = Signal(name="write_exists"), Signal(2), Signal(2)
        word = self._data_bits // 8
        taken, done = Signal(name="answer_taken"), Signal(name="answer_done")
        m.d.comb += [
            axi.wready.eq(bursts.any & (level != BURSTS)),
            beat.eq(axi.wvalid & axi.wready),
            exists.eq(address < self._memory_bytes),
            port.write.eq(beat & exists & ~burst.wrong),
            port.write_address.eq(address & (0x1_0000_0000 - word)),
            port.strobe.eq(axi.wstrb),
            port.write_data.eq(axi.wdata),
            response.eq(worst | Mux(burst.wrong, SLVERR, Mux(exists, OKAY, DECERR))),
            taken.eq(beat & last),
            bursts.done.eq(taken),
            put.en.eq(taken),
            put.addr.eq(first + level),
            put.data.id.eq(burst.id),
            put.data.response.eq(response),
            put.data.due.eq(self.now + self._timing.write_cycles),
            get.addr.eq(first),
            axi.bvalid.eq(level.any() & ~(self.now - get.data.due)[NOW_BITS - 1]),
            axi.bid.eq(get.data.id),
            axi.bresp.eq(get.data.response),
            done.eq(axi.bvalid & axi.bready),
        ]
        with m.If(beat):
            m.d.sync += worst.eq(Mux(last, OKAY, response))
        with m.If(taken != done):
            m.d.sync += level.eq(Mux(taken, level + 1, level - 1))
        with m.If(done):
            m.d.sync += first.eq(first + 1)
        return level.any()


class _Bursts:
    """Bursts of a direction: `front`, the oldest; `any`, whether there is one; `done`, to be driven: it ends."""

    def __init__(self, front: Any, any_: Any, done: Any) -> None:
        self.front, self.any, self.done = front, any_, done
