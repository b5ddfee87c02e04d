"""The two tables of a VL arbiter: written entry by entry, read as each VL's entries in their order."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.hdl import Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .base import NO_LIMIT, WEIGHT_BITS, TableSignature

__all__ = ["VlTables", "place_bits", "share_bits"]


def share_bits(entries: int) -> int:
    """Width of a VL's share of a table, in weight units: all `entries` may name one VL, 255 each."""
    return (255 * entries).bit_length()


def place_bits(vls: int, entries: int) -> int:
    """Width of an entry's place in its table. After reset each VL has an entry at the place of its own number."""
    return max(1, (vls - 1).bit_length(), (entries - 1).bit_length())


class VlTables(wiring.Component):
    """Links the entries of each VL, in the order of the table, and changes from old tables to new ones at once.

    Entries lie in a memory: both tables, 12 bits an entry with 16 VLs, a block RAM. `commit` starts a walk through
    them, from the last to the first. The walk writes for each entry the next one of its VL, which the arbiter looks
    at, into rows that are not in use. At the next `swap` these rows come into use. So traffic never sees a table half
    written, and the arbiter looks up one row a flit. Entries of weight 0, and of VLs that do not exist, are left out.

    Parameters beside `vls` and `entries`:

    - `sums`: `share` is the sum of a VL's weights, and `single` speaks of that sum. Without `sums`, `single` speaks of
      the VL's first entry, and there is no `share`.
    - `patience_cycles`: the cycles after which `overdue` rises.
    - `registered`: what is read from a block RAM passes a register. So `following`, `last`, `weight` and
      `following_single` come a cycle later, and so does `pending`.

    Members (vectors have a bit a VL; arrays of 2: low table, high table):

    - `table` (in, `TableSignature`): the port where tables are written.
    - `place`, `place_high` (in): an entry of the tables in use.
    - `following` (out): the next entry of the same VL, in the cycle after.
    - `last` (out): there is no next entry, in the cycle after.
    - `weight` (out, 8): the weight of the entry, in the cycle after.
    - `following_single` (out): the weight of the next entry is 1, in the cycle after.
    - `first` (out, arrays of 2, `vls` places): each VL's first entry; registers.
    - `select_vl`, `select_high` (in): a VL of a table.
    - `share` (out, `share_bits(entries)`): that VL's sum, in the same cycle.
    - `listed` (out, array of 2): VLs with an entry; registers.
    - `single` (out, array of 2): VLs with exactly 1; registers.
    - `limit` (out, 8): the limit of high priority in use.
    - `pending` (out): new tables wait.
    - `overdue` (out): they have waited for `patience_cycles` cycles.
    - `swap` (in): they come into use in the next cycle.

    Latency: a commit is `pending` after `2 * entries + 2 * rows + 2` cycles at most, with `registered` one more. There
    `entries` and `rows`, the VLs, are rounded up to powers of two: 162 for 64 entries and 16 VLs. Throughput: a place
    looked up a cycle, one commit at a time. Reset: every VL has one entry of weight 1 in the low table, in the order of
    their numbers. The high table has none, and there is no limit. `2 * entries` cycles wipe the entries, since a memory
    has no reset.
    """

    def __init__(
        self,
        *,
        vls: int,
        entries: int,
        sums: bool = True,
        patience_cycles: int = 0,
        registered: bool = False,
    ) -> None:
        self._vls, self._entries, self._sums, self._registered = vls, entries, sums, registered
        self._patience = patience_cycles or TableSignature.patience_cycles(entries)
        self._vl_bits = max(1, (vls - 1).bit_length())
        self._place_bits = place_bits(vls, entries)
        everyone = (1 << vls) - 1
        places = data.ArrayLayout(data.ArrayLayout(self._place_bits, vls), 2)
        shares = {
            "select_vl": In(self._vl_bits),
            "select_high": In(1),
            "share": Out(share_bits(entries)),
        }
        super().__init__(
            {
                "table": Out(TableSignature(vls=vls, entries=entries)),
                "place": In(self._place_bits),
                "place_high": In(1),
                "following": Out(self._place_bits),
                "last": Out(1),
                "weight": Out(WEIGHT_BITS),
                "following_single": Out(1),
                "first": Out(places, init=[list(range(vls)), list(range(vls))]),
                "listed": Out(data.ArrayLayout(vls, 2), init=[everyone, 0]),
                "single": Out(data.ArrayLayout(vls, 2), init=[everyone, 0]),
                "limit": Out(8, init=NO_LIMIT),
                "pending": Out(1),
                "overdue": Out(1),
                "swap": In(1),
            }
            | (shares if sums else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = 2 << self._vl_bits
        entry_bits = (self._entries - 1).bit_length()
        m.submodules.entries = entries = memory.Memory(
            shape=unsigned(self._vl_bits + WEIGHT_BITS), depth=2 << entry_bits, init=[]
        )
        entry_write, entry_read = entries.write_port(), entries.read_port()
        in_use, initial = Signal(), Signal(init=1)
        count = Signal(range(max(rows, 2 << entry_bits, self._patience)))
        limit = Signal.like(self.limit)

        # The entry under the walk: it was read in the cycle before, or with `registered` in the one before that.
        reading, read_number = Signal(), Signal(entry_bits + 1)
        walking, walked, entry = reading, read_number, entry_read.data
        if self._registered:
            walking, walked, entry = Signal(), Signal(entry_bits + 1), Signal(len(entry_read.data))
            m.d.sync += [walking.eq(reading), walked.eq(read_number), entry.eq(entry_read.data)]
        walked_vl, walked_weight = entry[: self._vl_bits], entry[self._vl_bits :]
        one = walked_weight == 1
        row, used = Signal(range(rows)), Signal()
        seen, single = Signal(rows), Signal(rows)
        m.d.comb += [
            entry_read.en.eq(1),
            entry_read.addr.eq(~count[: entry_bits + 1]),
            entry_write.addr.eq(Cat(self.table.entry[:entry_bits], self.table.high)),
            entry_write.data.eq(Cat(self.table.vl, self.table.weight)),
            row.eq(Cat(walked_vl, walked[entry_bits])),
            used.eq(walking & walked_weight.any() & (walked_vl < self._vls)),
        ]
        m.d.sync += [count.eq(count + 1), reading.eq(0), read_number.eq(entry_read.addr)]

        # The earliest entry of each VL so far, and whether its weight is 1.
        m.submodules.heads = heads = memory.Memory(shape=unsigned(self._place_bits + 1), depth=rows, init=[])
        head, set_head = heads.read_port(domain="comb"), heads.write_port()
        m.d.comb += [
            head.addr.eq(row),
            set_head.addr.eq(row),
            set_head.en.eq(used),
            set_head.data.eq(Cat(walked[:entry_bits], Const(0, self._place_bits - entry_bits), one)),
        ]

        # The rows of both tables: two banks, one in use, the other written.
        m.submodules.order = order = memory.Memory(
            shape=unsigned(self._place_bits + 1 + 1 + WEIGHT_BITS), depth=4 << entry_bits, init=[]
        )
        look, set_order = order.read_port(), order.write_port()
        m.d.comb += [
            look.en.eq(1),
            look.addr.eq(Cat(self.place[:entry_bits], self.place_high, in_use)),
            set_order.addr.eq(Cat(walked, ~in_use)),
            set_order.en.eq(used),
            set_order.data.eq(Cat(head.data, ~seen.bit_select(row, 1), walked_weight)),
        ]
        last, looked = Signal(), look.data
        if self._registered:
            looked = Signal(len(look.data))
            m.d.sync += looked.eq(look.data)
        m.d.comb += [
            Cat(self.following, self.following_single, last, self.weight).eq(looked),
            self.last.eq(last | initial),
        ]
        fresh_single = one
        if self._sums:
            fresh_single = self._add_up(m, row, used, seen, walked_weight, in_use)
        with m.If(used):
            m.d.sync += [seen.eq(seen | 1 << row), single.bit_select(row, 1).eq(fresh_single)]

        # First places of the tables not in use, shifted in row by row: low table first.
        chain = Signal(rows * self._place_bits)
        with m.FSM():
            with m.State("WIPE"):
                m.d.comb += [entry_write.en.eq(1), entry_write.addr.eq(count), entry_write.data.eq(0)]
                with m.If(count == (2 << entry_bits) - 1):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.comb += [self.table.ready.eq(1), entry_write.en.eq(self.table.write)]
                m.d.sync += count.eq(0)
                with m.If(self.table.commit):
                    m.d.sync += [limit.eq(self.table.limit), seen.eq(0), single.eq(0)]
                    m.next = "WALK"
            with m.State("WALK"):
                m.d.sync += reading.eq(1)
                with m.If(count == (2 << entry_bits) - 1):
                    m.next = "LAST"
            with m.State("LAST"):
                m.d.sync += count.eq(0)
                m.next = "LATE" if self._registered else "CHAIN"
            if self._registered:
                with m.State("LATE"):
                    m.d.sync += count.eq(0)
                    m.next = "CHAIN"
            with m.State("CHAIN"):
                m.d.comb += head.addr.eq(count)
                m.d.sync += chain.eq(Cat(chain[self._place_bits :], head.data[: self._place_bits]))
                with m.If(count == rows - 1):
                    m.d.sync += count.eq(0)
                    m.next = "PENDING"
            with m.State("PENDING"):
                m.d.comb += [self.pending.eq(1), self.overdue.eq(count == self._patience - 1)]
                with m.If(self.overdue):
                    m.d.sync += count.eq(count)
                with m.If(self.swap):
                    m.d.sync += [in_use.eq(~in_use), initial.eq(0), self.limit.eq(limit)]
                    for i in range(2):
                        m.d.sync += [
                            self.listed[i].eq(self._half(seen, i)),
                            self.single[i].eq(self._half(single, i)),
                            self.first[i].eq(self._half(chain, i, self._place_bits)),
                        ]
                    m.next = "WRITTEN"
        return m

    def _add_up(self, m: Module, row: Value, used: Value, seen: Value, weight: Value, in_use: Value) -> Value:
        """Adds up the VLs' weights, in two banks as the rows.

        Returns whether the sum of the walked entry's VL, with that entry, is 1. With `registered` a bank has a port for
        the walk and one for `share`, as an address for either would lengthen the path through the sum.
        """
        banks = [
            memory.Memory(shape=unsigned(len(self.share)), depth=2 << self._vl_bits, init=[])
            for _ in range(2)
        ]
        m.submodules.bank_0, m.submodules.bank_1 = banks
        reads = [bank.read_port(domain="comb") for bank in banks]
        looks = [bank.read_port(domain="comb") for bank in banks] if self._registered else reads
        writes = [bank.write_port() for bank in banks]
        selected = Cat(self.select_vl, self.select_high)
        before, summed = Signal.like(self.share), Signal.like(self.share)
        for i, (look, read, write) in enumerate(zip(looks, reads, writes, strict=True)):
            if self._registered:
                m.d.comb += [look.addr.eq(selected), read.addr.eq(row)]
            else:
                m.d.comb += read.addr.eq(Mux(in_use == i, selected, row))
            m.d.comb += [
                write.addr.eq(row),
                write.data.eq(summed),
                write.en.eq(used & (in_use != i)),
            ]
        m.d.comb += [
            self.share.eq(Mux(in_use, looks[1].data, looks[0].data)),
            before.eq(Mux(in_use, reads[0].data, reads[1].data)),
            summed.eq(Mux(seen.bit_select(row, 1), before, 0) + weight),
        ]
        if self._registered:
            # The same, as no weight is 0 here, without waiting for the sum.
            return (weight == 1) & ~seen.bit_select(row, 1)
        return summed == 1

    def _half(self, fields: Signal, high: int, bits: int = 1) -> Value:
        """The part of `fields`, so many `bits` a row, that belongs to one table's VLs."""
        start = high << self._vl_bits
        return fields[start * bits : (start + self._vls) * bits]
