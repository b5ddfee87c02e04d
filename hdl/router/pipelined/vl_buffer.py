"""First-in first-out buffers of all VLs of a port, for short paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError
from ..vl_buffer import encode
from ..vl_store import VlStore

__all__ = ["DISTRIBUTED_ROWS", "PipelinedVlBuffer"]

DISTRIBUTED_ROWS = 64
"""Most rows of a buffer that stands in small memories that are read at once. Larger ones are a block RAM (`VlStore`).

Block RAM of an ECP5 shows its word 5.7 ns after the clock's edge. At 125 MHz that leaves no time for the crossbar.
"""


class PipelinedVlBuffer(wiring.Component):
    """`vls` queues of `depth` items each; one item in and one item out a cycle, of any VLs.

    Parameters:

    - `shape`: shape of an item.
    - `vls`: 1 to 16.
    - `depth`: items a VL, at least 2; ConfigError below that.
    - `peek`: bits of an item, from the lowest one on, for a second reader; 0 for no such port.
    - `foretold`: the VL to be read is known a cycle ahead. Then its row stands in a register.
    - `margins`: numbers of places, each 1 to `depth - 2` (ConfigError), for `near_full`.

    Members, as those of `VlBuffer`:

    - `write_valid`, `write_select` (in, `vls`: one-hot), `write_data` (in, `shape`): an item, taken in this cycle.
    - `non_empty` (out, `vls`): VLs that hold an item; a register.
    - `near_full` (out, an array), only with `margins`: VLs with at most that many places left; registers.
    - `read_select` (in, `vls`): one-hot, the VL to be read.
    - `next_select` (in, `vls`), `next_stays` (in), only with `foretold`: `read_select` of the next cycle is that of
      this cycle with `next_stays`, and `next_select` otherwise, which is another VL.
    - `read_vl` (out, `vl_bits`), `read_data` (out, `shape`): its number and its oldest item, in the same cycle.
    - `last` (out): it has no other item; meaningless if it is empty.
    - `pop` (in): take that item off.
    - `peek_select` (in, `vls`), `peek_data` (out), only with `peek`: the lowest bits of the oldest item of another VL.

    Each VL has a ring of a power of two of rows, so that any value of a pointer will do. An empty VL has no tail: its
    next item goes where its front is. So pointers stand in memories that need no reset, and are read without a look at
    what has been written since. The VL to be written comes one-hot from a register.

    Latency: 1 cycle from write to read. Throughput: 1 item in and 1 item out a cycle. Reset: all VLs are empty.
    """

    def __init__(
        self,
        *,
        shape: ShapeLike,
        vls: int,
        depth: int,
        peek: int = 0,
        margins: Sequence[int] = (),
        foretold: bool = False,
    ) -> None:
        if depth < 2:
            raise ConfigError(f"PipelinedVlBuffer: depth = {depth}: at least 2")
        for margin in margins:
            if not 1 <= margin <= depth - 2:
                raise ConfigError(f"PipelinedVlBuffer: margin = {margin}: from 1 to {depth - 2}")
        self._shape, self._vls, self._depth, self._peek = shape, vls, depth, peek
        self._margins, self._foretold = tuple(margins), foretold
        self._vl_bits = max(1, (vls - 1).bit_length())
        members: dict[str, Any] = {
            "write_valid": In(1),
            "write_select": In(vls),
            "write_data": In(shape),
            "non_empty": Out(vls),
            "read_select": In(vls),
            "read_vl": Out(self._vl_bits),
            "read_data": Out(shape),
            "last": Out(1),
            "pop": In(1),
        }
        if foretold:
            members |= {"next_select": In(vls), "next_stays": In(1)}
        if margins:
            members["near_full"] = Out(vls).array(len(margins))
        if peek:
            members |= {"peek_select": In(vls), "peek_data": Out(peek)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, row_bits = self._vls, (self._depth - 1).bit_length()
        write_vl, popping, writing = Signal(self._vl_bits), Signal(vls), Signal(vls)
        m.d.comb += [
            write_vl.eq(encode(self.write_select, self._vl_bits)),
            self.read_vl.eq(encode(self.read_select, self._vl_bits)),
            writing.eq(Mux(self.write_valid, self.write_select, 0)),
            popping.eq(Mux(self.pop, self.read_select, 0)),
        ]
        peek_vl = Signal(self._vl_bits)
        if self._peek:
            m.d.comb += peek_vl.eq(encode(self.peek_select, self._vl_bits))

        # For the VL that is read, that is written, and that is looked at: the row of its oldest item, and of its next.
        fronts = [self.read_vl, write_vl, *([peek_vl] if self._peek else [])]
        next_row = Signal(row_bits)
        if self._foretold:
            fronts[0] = encode(self.next_select, self._vl_bits)
        front, front_written, *front_peeked = self._pointers(
            m, "front", self.pop, self.read_vl, fronts, next_row
        )
        if self._foretold:
            row = Signal(row_bits, name="read_row")
            m.d.sync += row.eq(Mux(self.next_stays, Mux(self.pop, next_row, row), front))
            front = row
        m.d.comb += next_row.eq(front + 1)
        tail_moves = Signal(row_bits)
        tail_written, tail = self._pointers(
            m, "tail", self.write_valid, write_vl, [write_vl, self.read_vl], tail_moves
        )
        to = Signal(row_bits)
        m.d.comb += [
            to.eq(Mux((self.write_select & self.non_empty).any(), tail_written, front_written)),
            tail_moves.eq(to + 1),
            self.last.eq(next_row == tail),
        ]
        emptied = Mux(self.last, popping, 0)
        m.d.sync += self.non_empty.eq((self.non_empty & ~emptied) | writing)
        rows = 1 << row_bits
        for margin, flags in zip(self._margins, self.near_full if self._margins else (), strict=True):
            size = self._depth - margin
            nears, leaves = Signal(vls, name=f"nears_{margin}"), Signal(vls, name=f"leaves_{margin}")
            # The item that is written is the last one before the flag, the one that is read the first behind it.
            with m.If((front_written + size - 1)[:row_bits] == to):
                m.d.comb += nears.eq(writing & ~popping)
            with m.If((front + size)[:row_bits] == tail):
                m.d.comb += leaves.eq(popping & ~writing)
            m.d.sync += flags.eq((flags | nears) & ~leaves)

        def address(pointer: Value, vl: Value) -> Value:
            return pointer if vls == 1 else Cat(pointer, vl)

        if vls * rows > DISTRIBUTED_ROWS:
            m.submodules.items = store = VlStore(
                shape=self._shape, vls=vls, rows=vls * rows, peek=slice(0, self._peek) if self._peek else None
            )
            m.d.comb += [
                store.write.eq(self.write_valid),
                store.write_vl.eq(write_vl),
                store.write_row.eq(address(to, write_vl)),
                store.write_data.eq(self.write_data),
                store.write_first.eq((writing & (~self.non_empty | emptied)).any()),
                store.refill.eq(self.pop & ~self.last),
                store.refill_vl.eq(self.read_vl),
                store.refill_row.eq(address(next_row, self.read_vl)),
                store.read_vl.eq(self.read_vl),
                self.read_data.eq(store.read_data),
            ]
            if self._peek:
                m.d.comb += [store.peek_vl.eq(peek_vl), self.peek_data.eq(store.peek_data)]
            return m
        whole = Value.cast(self.write_data)
        readers: list[tuple[str, Value, Value, Value]] = [
            ("items", whole, address(front, self.read_vl), Value.cast(self.read_data))
        ]
        if self._peek:
            readers.append(("peeks", whole[: self._peek], address(front_peeked[0], peek_vl), self.peek_data))
        for name, data, place, out in readers:
            copy = memory.Memory(shape=unsigned(len(data)), depth=vls * rows, init=[])
            m.submodules[name] = copy
            write, read = copy.write_port(), copy.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(self.write_valid),
                write.addr.eq(address(to, write_vl)),
                write.data.eq(data),
                read.addr.eq(place),
                out.eq(read.data),
            ]
        return m

    def _pointers(
        self,
        m: Module,
        name: str,
        step: Value,
        vl: Value,
        reads: list[Value],
        following: Value,
    ) -> list[Signal]:
        """A pointer for each VL. That of `vl` becomes `following` with `step`.

        Returns the pointers of the VLs `reads`, in the same cycle.
        """
        bits = (self._depth - 1).bit_length()
        values = [Signal(bits, name=f"{name}_{n}") for n in range(len(reads))]
        if self._vls == 1:
            pointer = Signal(bits, name=name)
            m.d.comb += [value.eq(pointer) for value in values]
            with m.If(step):
                m.d.sync += pointer.eq(following)
            return values
        m.submodules[name] = rows = memory.Memory(shape=unsigned(bits), depth=self._vls, init=[])
        for number, value in zip(reads, values, strict=True):
            port = rows.read_port(domain="comb")
            m.d.comb += [port.addr.eq(number), value.eq(port.data)]
        write = rows.write_port()
        m.d.comb += [
            write.en.eq(step),
            write.addr.eq(vl),
            write.data.eq(following),
        ]
        return values
