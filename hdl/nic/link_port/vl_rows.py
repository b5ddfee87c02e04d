"""The rows of the VL buffers of a port with registers: block RAM whose words are read two cycles late."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["VlRows"]


class VlRows(wiring.Component):
    """A ring of a power of two of rows, at least `depth`, for each of `vls` VLs, in one memory.

    Members:

    - `write` (in), `write_vl`, `write_data` (in): an item goes behind the last one of its VL.
    - `moves` (in): the way out goes on in this cycle, else it stands.
    - `read_vl`, `read_row` (in): a row of a VL, which was written 2 cycles before this one or earlier.
    - `read_data` (out): the item in it, 2 cycles later in which `moves` was set; a register.

    The user keeps the row of each VL's oldest item: 0 after reset, and one more, modulo the rows, for each item that
    was taken. It must not write more than the rows. So the words have the whole cycle after the block RAM's own late
    one. The rows that are written next stand in flip-flops, which have a reset. An item waits for its row in a
    register.

    Latency: 2 cycles from a row to its item; an item that is written in cycle t can be asked for in t + 2. Throughput:
    an item in and an item out a cycle. Reset: each VL's next item goes into row 0.
    """

    def __init__(self, *, shape: ShapeLike, vls: int, depth: int) -> None:
        self._shape, self._vls = shape, vls
        self.row_bits = max(1, (depth - 1).bit_length())
        """Width of a row's number in its VL."""
        vl_bits = max(1, (vls - 1).bit_length())
        super().__init__(
            {
                "write": In(1),
                "write_vl": In(vl_bits),
                "write_data": In(shape),
                "moves": In(1),
                "read_vl": In(vl_bits),
                "read_row": In(self.row_bits),
                "read_data": Out(shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls = self._vls
        whole = Value.cast(self.write_data)
        m.submodules.items = items = memory.Memory(
            shape=unsigned(len(whole)), depth=vls << self.row_bits, init=[]
        )
        write, read = items.write_port(), items.read_port(domain="comb")

        def address(row: Value, vl: Value) -> Value:
            return row if vls == 1 else Cat(row, vl)

        ends = Array(Signal(self.row_bits, name=f"end_{vl}") for vl in range(vls))
        row = Signal(self.row_bits)
        writes, place, item = Signal(), Signal(len(write.addr)), Signal(len(whole), reset_less=True)
        m.d.sync += [writes.eq(self.write), place.eq(address(row, self.write_vl)), item.eq(whole)]
        m.d.comb += [
            row.eq(ends[self.write_vl]),
            write.en.eq(writes),
            write.addr.eq(place),
            write.data.eq(item),
            read.addr.eq(address(self.read_row, self.read_vl)),
        ]
        with m.If(self.write):
            m.d.sync += ends[self.write_vl].eq(row + 1)
        # The register becomes that of the block RAM. No row is written and read in one cycle, but a synthesis tool must
        # see it: otherwise it would build logic around the memory.
        word = Signal(len(whole), reset_less=True)
        with m.If(self.moves & ~(writes & (place == read.addr))):
            m.d.sync += word.eq(read.data)
        with m.If(self.moves):
            m.d.sync += Value.cast(self.read_data).eq(word)
        return m
