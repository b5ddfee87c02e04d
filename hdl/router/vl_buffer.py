"""First-in first-out buffers of all virtual lanes of a port, in one memory.

Input and output buffers of the router (yum-2006 3.1, stages 1 and 5) and the receive buffers of the NIC.
"""

from __future__ import annotations

from typing import Any, Literal

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError
from .vl_pointers import VlPointers
from .vl_store import VlStore

__all__ = ["BLOCK_RAM_ROWS", "VlBuffer", "encode"]

BLOCK_RAM_ROWS = 33
"""Least rows of a buffer that stands in block RAM (`VlStore`).

An FPGA makes small memories of 16 rows, and takes a multiplexer for each bit to join them. Up to two of them are
smaller than the logic that block RAM needs beside it.
"""


def encode(one_hot: Value, bits: int) -> Value:
    """The number of the set bit of `one_hot`, `bits` wide, 0 if none is: an OR of the bits' numbers."""
    terms = []
    for position in range(bits):
        members = [one_hot[i] for i in range(len(one_hot)) if i >> position & 1]
        terms.append(Cat(*members).any() if members else Value.cast(0)[0:1])
    return Cat(*terms)


class VlBuffer(wiring.Component):
    """`vls` queues of `depth` items each; one item in and one item out a cycle, of any VLs.

    Parameters:

    - `shape`: shape of an item. A flit needs no `vl` in it, as the queue that it stands in says it.
    - `vls`: 1 to 16.
    - `depth`: items a VL, at least 2; ConfigError below that.
    - `peek`: a slice of the item's bits that can be read by a second reader; None for no such port.
    - `memory`: `auto`, or `distributed` for a memory that is read at once at any size. The members behave alike.
    - `rewinds`: items can be read again. Then the memory is `distributed`, and `full` means nothing.

    Members:

    - `write_valid` (in), `write_vl` (in, `vl_bits`), `write_data` (in, `shape`): an item, taken in this cycle. There is
      no ready: the writer must know of room, by credits or by `full`, and must not write a VL beyond `depth`.
    - `non_empty` (out, `vls`): bit v is set if VL v holds an item; a register. An item that is written in cycle t can
      be read and popped from t + 1.
    - `full` (out, `vls`): bit v is set if VL v holds `depth` items; a register. Room made in cycle t shows in t + 1.
    - `read_select` (in, `vls`): one-hot, the VL to be read; VL 0 if no bit is set.
    - `read_vl` (out, `vl_bits`): its number.
    - `read_data` (out, `shape`): its oldest item, in the same cycle; meaningless if the VL is empty.
    - `pop` (in): take that item off; only with one bit of `read_select` set, and that VL not empty.
    - `peek_select` (in, `vls`), only with `peek`: one-hot, a VL.
    - `peek_data` (out), only with `peek`: that slice of the bits of that VL's oldest item, in the same cycle.

    - `mark`, `rewind` (in), only with `rewinds`: the item that is popped is the first, or the last, of those to be read
      again. After `rewind` the VL is as before the pop with its last `mark`. Until the items are read for the last time
      their places are not free: the writer must not write more than `depth` of what has a place.

    Latency: 1 cycle from write to read. Throughput: 1 item a cycle, at any depth, also with write and pop of one VL.
    Reset: all VLs are empty; the contents of the memory stay as they are, and cannot be reached.

    `rests` says that nothing in it changes in a cycle without a write and a pop.

    Cost: one memory of `vls * 2^ceil(log2 depth)` items, two pointer memories of `vls` rows, 2 flags a VL. With `auto`,
    `BLOCK_RAM_ROWS` rows or more, and more than one VL, the memory is a block RAM, and has two rows a VL beside it
    (`VlStore`). The flags are vectors, for arbiters that take requests as a vector and for the simulator's speed.
    """

    def __init__(
        self,
        *,
        shape: ShapeLike,
        vls: int,
        depth: int,
        peek: slice | None = None,
        memory: Literal["auto", "distributed"] = "auto",
        rewinds: bool = False,
    ) -> None:
        if depth < 2:
            raise ConfigError(f"VlBuffer: depth = {depth}: at least 2")
        self._shape, self._vls, self._depth, self._peek = shape, vls, depth, peek
        self._distributed, self._rewinds = memory == "distributed", rewinds
        self._in_block_ram = (
            memory == "auto" and not rewinds and vls > 1 and vls << (depth - 1).bit_length() >= BLOCK_RAM_ROWS
        )
        self.rests = not self._in_block_ram
        self._vl_bits = max(1, (vls - 1).bit_length())
        members: dict[str, Any] = {
            "write_valid": In(1),
            "write_vl": In(self._vl_bits),
            "write_data": In(shape),
            "non_empty": Out(vls),
            "full": Out(vls),
            "read_select": In(vls),
            "read_vl": Out(self._vl_bits),
            "read_data": Out(shape),
            "pop": In(1),
        }
        if peek is not None:
            members |= {"peek_select": In(vls), "peek_data": Out(peek.stop - peek.start)}
        if rewinds:
            members |= {"mark": In(1), "rewind": In(1)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, vl_bits, depth = self._vls, self._vl_bits, self._depth
        row_bits = (depth - 1).bit_length()
        peeks = self._peek is not None

        # `tail` is where the next item of a VL goes, `front` where its oldest one is.
        m.submodules.tail = tail = VlPointers(vls=vls, modulus=depth, reads=1)
        m.submodules.front = front = VlPointers(vls=vls, modulus=depth, reads=1 + peeks, loads=self._rewinds)
        m.d.comb += [
            self.read_vl.eq(encode(self.read_select, vl_bits)),
            tail.step.eq(self.write_valid),
            tail.step_vl.eq(self.write_vl),
            tail.read_vl[0].eq(self.read_vl),
            front.step.eq(self.pop),
            front.step_vl.eq(self.read_vl),
            front.read_vl[0].eq(self.write_vl),
        ]

        def address(pointer: Value, vl: Value) -> Value:
            return pointer if vls == 1 else Cat(pointer[:row_bits], vl)

        # Pointers alone cannot tell an empty ring from a full one, so the flags do. The comparisons hold for
        # a depth of 2 or more: one step behind the other pointer means one item (or one place) is left.
        written, popped, emptied, filled = (Signal(vls) for _ in range(4))
        last = Signal()
        m.d.comb += last.eq(front.following == tail.read[0])
        with m.If(self.write_valid):
            m.d.comb += written.eq(1 << self.write_vl)
        with m.If(self.pop):
            m.d.comb += popped.eq(self.read_select)
        # What is to be read again stays.
        with m.If(last & ~self.rewind if self._rewinds else last):
            m.d.comb += emptied.eq(popped)
        with m.If(tail.following == front.read[0]):
            m.d.comb += filled.eq(written)
        # A write in the cycle of the last pop keeps the VL non-empty; a pop in the cycle of the filling write
        # keeps it from being full.
        m.d.sync += [
            self.non_empty.eq((self.non_empty & ~emptied) | written),
            self.full.eq((self.full | filled) & ~popped),
        ]

        if self._rewinds:
            m.submodules.marks = marks = memory.Memory(shape=unsigned(row_bits), depth=max(2, vls), init=[])
            mark, marked = marks.write_port(), marks.read_port(domain="comb")
            m.d.comb += [
                mark.en.eq(self.pop & self.mark),
                mark.addr.eq(self.read_vl),
                mark.data.eq(front.here),
                marked.addr.eq(self.read_vl),
                front.load.eq(self.rewind),
                front.target.eq(Mux(self.mark, front.here, marked.data)),
            ]

        peek_vl = Signal(vl_bits)
        if self._peek is not None:
            m.d.comb += peek_vl.eq(encode(self.peek_select, vl_bits))
        rows = vls << row_bits
        if self._in_block_ram:
            m.submodules.items = store = VlStore(shape=self._shape, vls=vls, rows=rows, peek=self._peek)
            m.d.comb += [
                store.write.eq(self.write_valid),
                store.write_vl.eq(self.write_vl),
                store.write_row.eq(address(tail.here, self.write_vl)),
                store.write_data.eq(self.write_data),
                store.write_first.eq((written & (~self.non_empty | emptied)).any()),
                store.refill.eq(self.pop & ~last),
                store.refill_vl.eq(self.read_vl),
                store.refill_row.eq(address(front.following, self.read_vl)),
                store.read_vl.eq(self.read_vl),
                self.read_data.eq(store.read_data),
            ]
            if self._peek is not None:
                m.d.comb += [store.peek_vl.eq(peek_vl), self.peek_data.eq(store.peek_data)]
            return m

        m.submodules.items = items = memory.Memory(shape=self._shape, depth=rows, init=[])
        write, read = items.write_port(), items.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write_valid),
            write.addr.eq(address(tail.here, self.write_vl)),
            write.data.eq(self.write_data),
            read.addr.eq(address(front.here, self.read_vl)),
            self.read_data.eq(read.data),
        ]
        if self._peek is not None and self._distributed:
            # No copy to be written with every item: that is what a simulator spends its time on.
            peek_read = items.read_port(domain="comb")
            m.d.comb += [
                front.read_vl[1].eq(peek_vl),
                peek_read.addr.eq(address(front.read[1], peek_vl)),
                self.peek_data.eq(Value.cast(peek_read.data)[self._peek]),
            ]
        elif self._peek is not None:
            # A narrow copy: a second port on the wide memory would double it on an FPGA.
            bits = Value.cast(self.write_data)[self._peek]
            m.submodules.peeks = copy = memory.Memory(shape=unsigned(len(bits)), depth=rows, init=[])
            peek_write, peek_read = copy.write_port(), copy.read_port(domain="comb")
            m.d.comb += [
                front.read_vl[1].eq(peek_vl),
                peek_write.en.eq(self.write_valid),
                peek_write.addr.eq(write.addr),
                peek_write.data.eq(bits),
                peek_read.addr.eq(address(front.read[1], peek_vl)),
                self.peek_data.eq(peek_read.data),
            ]
        return m
