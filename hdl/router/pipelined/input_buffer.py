"""First-in first-out buffers of all VLs of an input, in block RAM, read a cycle ahead."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError
from ..vl_buffer import encode

__all__ = ["PipelinedInputBuffer"]


class PipelinedInputBuffer(wiring.Component):
    """`vls` queues of `depth` items each; one item in and one item out a cycle, of any VLs.

    Parameters:

    - `shape`: shape of an item.
    - `port_bits`: width of the note that goes with an item.
    - `vls`: 1 to 16.
    - `depth`: items a VL, at least 2; ConfigError below that.

    Members:

    - `write_valid`, `write_select` (in, `vls`: one-hot), `write_vl` (in, `vl_bits`: its number), `write_data` (in,
      `shape`): an item, taken in this cycle.
    - `write_tail`, `write_port` (in): a flag and a note that go with it.
    - `non_empty` (out, `vls`): VLs that hold an item; a register.
    - `read_select` (in, `vls`): one-hot, the VL that is read. With `stays_popped` and `pop`, or `stays_kept` and no
      `pop` (in), it is the same in the next cycle. Otherwise it is `next_select` (in), which is another one.
    - `read_vl` (out, `vl_bits`): its number; a register.
    - `read_data` (out, `shape`): its oldest item. Block RAM shows it late in the cycle.
    - `tail` (out): the flag of that item; a register. `tail_behind` (out): that of the item behind it, if there is one.
    - `last` (out): it has no other item; meaningless if it is empty.
    - `pop` (in): take that item off.
    - `behind` (out, `port_bits`): the note of the item that was behind the one that was read in the cycle before.

    Nothing is read in the cycle in which it is written: a VL goes on only to items that show in `non_empty`, or in
    `last`. So block RAM of any kind will do.

    Each VL has a ring of a power of two of rows, so that any value of a pointer will do. An empty VL has no tail: its
    next item goes where its front is. So pointers stand in memories that need no reset, and are read without a look at
    what has been written since.

    Latency: 1 cycle from write to `non_empty`, 2 to `read_data`. Throughput: 1 item in and 1 item out a cycle. Reset:
    all VLs are empty.
    """

    def __init__(self, *, shape: ShapeLike, port_bits: int, vls: int, depth: int) -> None:
        if depth < 2:
            raise ConfigError(f"PipelinedInputBuffer: depth = {depth}: at least 2")
        self._shape, self._vls, self._depth, self._port_bits = shape, vls, depth, port_bits
        self._vl_bits = max(1, (vls - 1).bit_length())
        super().__init__(
            {
                "write_valid": In(1),
                "write_select": In(vls),
                "write_vl": In(self._vl_bits),
                "write_data": In(shape),
                "write_tail": In(1),
                "write_port": In(port_bits),
                "non_empty": Out(vls),
                "read_select": In(vls),
                "next_select": In(vls),
                "stays_popped": In(1),
                "stays_kept": In(1),
                "read_vl": Out(self._vl_bits),
                "read_data": Out(shape),
                "tail": Out(1),
                "tail_behind": Out(1),
                "last": Out(1),
                "pop": In(1),
                "behind": Out(port_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, row_bits = self._vls, (self._depth - 1).bit_length()
        write_vl, next_vl = self.write_vl, Signal(self._vl_bits)
        writing, popping = Signal(vls), Signal(vls)
        several, second, leaves = Signal(vls), Signal(vls), Signal(vls)
        row, next_row, to = Signal(row_bits), Signal(row_bits), Signal(row_bits)
        m.d.comb += [
            next_vl.eq(encode(self.next_select, self._vl_bits)),
            writing.eq(Mux(self.write_valid, self.write_select, 0)),
            popping.eq(Mux(self.pop, self.read_select, 0)),
            next_row.eq(row + 1),
        ]
        front, front_written = self._pointers(
            m, "front", self.pop, self.read_vl, [next_vl, write_vl], next_row
        )
        tail_written, tail = self._pointers(
            m, "tail", self.write_valid, write_vl, [write_vl, self.read_vl], (to + 1)[:row_bits]
        )
        m.d.comb += [
            to.eq(Mux((self.write_select & self.non_empty).any(), tail_written, front_written)),
            self.last.eq(~(self.read_select & several).any()),
        ]
        # The item that is written is the second one; the one that is read leaves one behind.
        with m.If((front_written + 1)[:row_bits] == to):
            m.d.comb += second.eq(writing & ~popping)
        with m.If((row + 2)[:row_bits] == tail):
            m.d.comb += leaves.eq(popping & ~writing)
        m.d.sync += [
            several.eq((several | (second & self.non_empty)) & ~leaves),
            self.non_empty.eq((self.non_empty & ~(popping & ~several)) | writing),
            row.eq(self._late(next_row, row, front)),
            self.read_vl.eq(self._late(self.read_vl, self.read_vl, next_vl)),
        ]

        def address(pointer: Value, vl: Value) -> Value:
            return pointer if vls == 1 else Cat(pointer, vl)

        rows = vls << row_bits
        written = Signal(range(rows))
        m.d.comb += written.eq(address(to, write_vl))
        here, following = address(row, self.read_vl), address(next_row, self.read_vl)
        other, before = address(front, next_vl), Signal(range(rows))
        self._items(m, rows, written, [following, here, other])
        tail_behind, tail_other = Signal(), Signal()
        m.d.sync += [
            before.eq(following),
            self.tail.eq(self._late(tail_behind, self.tail, tail_other)),
        ]
        m.d.comb += self.tail_behind.eq(tail_behind)
        for name, data, at, out in (
            ("tails", self.write_tail, following, tail_behind),
            ("tails_of_others", self.write_tail, other, tail_other),
            ("ports", self.write_port, before, self.behind),
        ):
            notes = memory.Memory(
                shape=unsigned(len(data)), depth=rows, init=[], attrs={"ram_style": "distributed"}
            )
            m.submodules[name] = notes
            write, read = notes.write_port(), notes.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(self.write_valid),
                write.addr.eq(written),
                write.data.eq(data),
                read.addr.eq(at),
                out.eq(read.data),
            ]
        return m

    def _late(self, following: Value, here: Value, other: Value) -> Value:
        """One of three: the VL stays and pops, it stays, or another one comes. `pop` passes one gate."""
        return Mux(self.pop, Mux(self.stays_popped, following, other), Mux(self.stays_kept, here, other))

    def _items(self, m: Module, rows: int, written: Signal, places: list[Value]) -> None:
        """The items. `places`: rows of the next cycle, as in `_late`."""
        items = memory.Memory(shape=self._shape, depth=rows, init=[], attrs={"ram_style": "block"})
        m.submodules.items = items
        write, read = items.write_port(), items.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write_valid),
            write.addr.eq(written),
            write.data.eq(self.write_data),
            read.addr.eq(self._late(*places)),
        ]
        # The register becomes that of the block RAM. Its row is never the one that is written, but a synthesis tool
        # must see it: otherwise it would build logic around the memory. Rows are compared before one is chosen.
        meets = [self.write_valid & (place == written) for place in places]
        shown = Signal(len(Value.cast(self.write_data)), reset_less=True)
        with m.If(~self._late(*meets)):
            m.d.sync += shown.eq(Value.cast(read.data))
        m.d.comb += Value.cast(self.read_data).eq(shown)

    def _pointers(
        self, m: Module, name: str, step: Value, vl: Value, reads: list[Value], following: Value
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
