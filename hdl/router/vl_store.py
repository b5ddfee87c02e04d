"""Items of many queues in block RAM, with the oldest of each where it can be read at once."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["VlStore"]


class VlStore(wiring.Component):
    """The memory of a `VlBuffer` with many rows, in block RAM.

    Block RAM answers a cycle late, but the reader must have the oldest item of any VL in the same cycle.

    Parameters:

    - `shape`: shape of an item.
    - `vls`: number of VLs.
    - `rows`: rows of the block RAM.
    - `peek`: a slice of the item's bits for a second reader, or None.

    Members:

    - `write` (in), `write_vl`, `write_row`, `write_data` (in): an item for that row.
    - `write_first` (in): it is the oldest of its VL from the next cycle on, as the VL is empty or its last item leaves
      in this cycle.
    - `refill` (in), `refill_vl`, `refill_row` (in): from the next cycle on the item in that row, written before this
      cycle, is the oldest of its VL.
    - `read_vl` (in), `read_data` (out): the oldest item of that VL, in the same cycle.
    - `peek_vl` (in), `peek_data` (out), only with `peek`: that slice of the oldest item of another VL.

    An item that comes as the first stands in `arrived`, one that moves up in `moved`. They are two small memories of a
    row a VL, as both can happen in one cycle; `from_arrived` tells which one holds a VL's oldest item. The item that
    moves up comes out of the block RAM in the cycle after. If it is read in that very cycle it is read there; for later
    cycles it is kept in `moved`.

    Latency: none to read, 1 cycle from `write` or `refill` to the read data. Throughput: a write and a refill each
    cycle. Reset: nothing is remembered that could be read.
    """

    def __init__(self, *, shape: ShapeLike, vls: int, rows: int, peek: slice | None) -> None:
        self._shape, self._vls, self._rows, self._peek = shape, vls, rows, peek
        vl_bits, row_bits = max(1, (vls - 1).bit_length()), (rows - 1).bit_length()
        members: dict[str, Any] = {
            "write": In(1),
            "write_vl": In(vl_bits),
            "write_row": In(row_bits),
            "write_data": In(shape),
            "write_first": In(1),
            "refill": In(1),
            "refill_vl": In(vl_bits),
            "refill_row": In(row_bits),
            "read_vl": In(vl_bits),
            "read_data": Out(shape),
        }
        if peek is not None:
            members |= {"peek_vl": In(vl_bits), "peek_data": Out(peek.stop - peek.start)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bulk = bulk = memory.Memory(shape=self._shape, depth=self._rows, init=[])
        write, read = bulk.write_port(), bulk.read_port(domain="comb")
        moving = Signal(len(Value.cast(self.write_data)), reset_less=True)
        coming, coming_vl = Signal(), Signal.like(self.refill_vl)
        from_arrived = Signal(self._vls)
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_row),
            write.data.eq(self.write_data),
            read.addr.eq(self.refill_row),
        ]
        # The register becomes that of the block RAM. The two rows are never the same one, but a synthesis tool must
        # see it: otherwise it would build logic around the memory for a read that meets a write of its row.
        with m.If(self.refill & ~(self.write & (self.write_row == self.refill_row))):
            m.d.sync += moving.eq(Value.cast(read.data))
        m.d.sync += [coming.eq(self.refill), coming_vl.eq(self.refill_vl)]
        with m.If(self.refill):
            m.d.sync += from_arrived.bit_select(self.refill_vl, 1).eq(0)
        with m.If(self.write & self.write_first):
            m.d.sync += from_arrived.bit_select(self.write_vl, 1).eq(1)

        def front(name: str, vl: Value, bits: slice) -> Value:
            """Those bits of the oldest item of `vl`, from memories of their own."""
            source, found = Value.cast(self.write_data)[bits], moving[bits]
            arrived = memory.Memory(shape=unsigned(len(source)), depth=self._vls, init=[])
            moved = memory.Memory(shape=unsigned(len(source)), depth=self._vls, init=[])
            m.submodules[f"{name}_arrived"], m.submodules[f"{name}_moved"] = arrived, moved
            arrived_write, arrived_read = arrived.write_port(), arrived.read_port(domain="comb")
            moved_write, moved_read = moved.write_port(), moved.read_port(domain="comb")
            m.d.comb += [
                arrived_write.en.eq(self.write & self.write_first),
                arrived_write.addr.eq(self.write_vl),
                arrived_write.data.eq(source),
                moved_write.en.eq(coming),
                moved_write.addr.eq(coming_vl),
                moved_write.data.eq(found),
                arrived_read.addr.eq(vl),
                moved_read.addr.eq(vl),
            ]
            return Mux(
                from_arrived.bit_select(vl, 1),
                arrived_read.data,
                Mux(coming & (coming_vl == vl), found, moved_read.data),
            )

        whole = slice(0, len(Value.cast(self.write_data)))
        m.d.comb += Value.cast(self.read_data).eq(front("read", self.read_vl, whole))
        if self._peek is not None:
            m.d.comb += self.peek_data.eq(front("peek", self.peek_vl, self._peek))
        return m
