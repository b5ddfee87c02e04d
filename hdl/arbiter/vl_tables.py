"""The two tables of a VL arbiter: written entry by entry, read as one share a VL."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.hdl import Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .vl import NO_LIMIT, WEIGHT_BITS, TableSignature

__all__ = ["VlTables", "share_bits"]


def share_bits(entries: int) -> int:
    """Width of a VL's share of a table, in weight units: all `entries` may name one VL, 255 each."""
    return (255 * entries).bit_length()


class VlTables(wiring.Component):
    """Sums up what the entries of a table give to each VL, and changes from old sums to new ones at once.

    Entries lie in a memory (both tables, 12 bits an entry with 16 VLs: a block RAM). `commit` starts a walk
    that adds them up into the sums that are not in use: a row a VL and table, in a small memory. At the next
    `swap` they come into use. So traffic never sees a table half written, and the arbiter looks up one row a
    flit.

    Members (vectors have a bit a VL; arrays of 2: low table, high table):

    - `table` (in, `TableSignature`).
    - `select_vl`, `select_high` (in), `share` (out, `share_bits(entries)`): the sum in use, in the same
      cycle.
    - `listed`, `single` (out, arrays of 2): VLs with a share, and VLs with a share of exactly 1. Registers.
    - `limit` (out, 8): the limit of high priority in use.
    - `pending` (out): new sums wait. `swap` (in): they come into use in the next cycle.

    Latency: a commit is `pending` after `2 * entries + 4 * rows + 2` cycles at most, with `rows` the VLs
    rounded up to a power of two (194 for 64 entries and 16 VLs). Reset: every VL has a share of 1 in the low
    table and none in the high one, without limit, and `2 * entries` cycles wipe the entries, since a memory
    has no reset.
    """

    def __init__(self, *, vls: int, entries: int) -> None:
        self._vls, self._entries = vls, entries
        self._vl_bits = max(1, (vls - 1).bit_length())
        everyone = (1 << vls) - 1
        super().__init__(
            {
                "table": Out(TableSignature(vls=vls, entries=entries)),
                "select_vl": In(self._vl_bits),
                "select_high": In(1),
                "share": Out(share_bits(entries)),
                "listed": Out(data.ArrayLayout(vls, 2), init=[everyone, 0]),
                "single": Out(data.ArrayLayout(vls, 2), init=[everyone, 0]),
                "limit": Out(8, init=NO_LIMIT),
                "pending": Out(1),
                "swap": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = 2 << self._vl_bits
        entry_bits = (self._entries - 1).bit_length()
        m.submodules.entries = entries = memory.Memory(
            shape=unsigned(self._vl_bits + WEIGHT_BITS), depth=2 << entry_bits, init=[]
        )
        entry_write, entry_read = entries.write_port(), entries.read_port()
        # Two banks of sums: one is in use, the other is added up.
        banks = [memory.Memory(shape=unsigned(len(self.share)), depth=rows, init=[]) for _ in range(2)]
        m.submodules.bank_0, m.submodules.bank_1 = banks
        reads, writes = (
            [bank.read_port(domain="comb") for bank in banks],
            [bank.write_port() for bank in banks],
        )
        in_use = Signal()
        selected = Cat(self.select_vl, self.select_high)
        row, summed, wanted = Signal(range(rows)), Signal.like(self.share), Signal.like(self.share)
        store = Signal()
        for i, (read, write) in enumerate(zip(reads, writes, strict=True)):
            m.d.comb += [
                read.addr.eq(Mux(in_use == i, selected, row)),
                write.addr.eq(row),
                write.data.eq(wanted),
                write.en.eq(store & (in_use != i)),
            ]
        m.d.comb += [
            self.share.eq(Mux(in_use, reads[1].data, reads[0].data)),
            summed.eq(Mux(in_use, reads[0].data, reads[1].data)),
        ]

        count = Signal(range(max(rows, 2 << entry_bits)))
        limit = Signal.like(self.limit)
        # Flags of the sums not in use, shifted in row by row: low table first.
        listed, single = Signal(rows), Signal(rows)
        walked_vl, walked_weight = entry_read.data[: self._vl_bits], entry_read.data[self._vl_bits :]
        m.d.comb += [
            entry_read.en.eq(1),
            entry_read.addr.eq(count),
            entry_write.addr.eq(Cat(self.table.entry[:entry_bits], self.table.high)),
            entry_write.data.eq(Cat(self.table.vl, self.table.weight)),
        ]
        m.d.sync += count.eq(count + 1)
        walked_high, walking = Signal(), Signal()
        m.d.sync += [walked_high.eq(count[entry_bits]), walking.eq(0)]

        with m.FSM():
            with m.State("WIPE"):
                m.d.comb += [entry_write.en.eq(1), entry_write.addr.eq(count), entry_write.data.eq(0)]
                with m.If(count == (2 << entry_bits) - 1):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.comb += [self.table.ready.eq(1), entry_write.en.eq(self.table.write)]
                m.d.sync += count.eq(0)
                with m.If(self.table.commit):
                    m.d.sync += limit.eq(self.table.limit)
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += [row.eq(count), store.eq(1)]
                with m.If(count == rows - 1):
                    m.d.sync += count.eq(0)
                    m.next = "WALK"
            with m.State("WALK"):
                # The entry read in a cycle is added in the next one.
                m.d.sync += walking.eq(1)
                m.d.comb += [
                    row.eq(Cat(walked_vl, walked_high)),
                    wanted.eq(summed + walked_weight),
                    store.eq(walking),
                ]
                with m.If(count == (2 << entry_bits) - 1):
                    m.next = "LAST"
            with m.State("LAST"):
                m.d.comb += [
                    row.eq(Cat(walked_vl, walked_high)),
                    wanted.eq(summed + walked_weight),
                    store.eq(1),
                ]
                m.d.sync += count.eq(0)
                m.next = "FLAGS"
            with m.State("FLAGS"):
                m.d.comb += row.eq(count)
                m.d.sync += [
                    listed.eq(Cat(listed[1:], summed.any())),
                    single.eq(Cat(single[1:], summed == 1)),
                ]
                with m.If(count == rows - 1):
                    m.next = "PENDING"
            with m.State("PENDING"):
                m.d.comb += self.pending.eq(1)
                with m.If(self.swap):
                    m.d.sync += [in_use.eq(~in_use), self.limit.eq(limit)]
                    for new, used in ((listed, self.listed), (single, self.single)):
                        for i in range(2):
                            m.d.sync += used[i].eq(self._half(new, i))
                    m.next = "WRITTEN"
        return m

    def _half(self, flags: Signal, high: int) -> Value:
        """Flags of one table's VLs."""
        start = high << self._vl_bits
        return flags[start : start + self._vls]
