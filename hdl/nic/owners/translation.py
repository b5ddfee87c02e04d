"""Address translation: page tables in host memory, their entries cached on the card."""

from __future__ import annotations

from enum import IntEnum

from amaranth import Module, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...axi import Axi4Signature
from ...config import ConfigError, NicConfig

__all__ = [
    "INVALIDATE_LAYOUT",
    "LOOKUP_LAYOUT",
    "PAGE_BYTES",
    "PAGE_ENTRY_LAYOUT",
    "REGION_BITS",
    "Scope",
    "Translation",
]

PAGE_BYTES = 4096
"""Bytes of a page of host memory, as the host's MMU has them."""
PAGE_BITS = 32 - (PAGE_BYTES - 1).bit_length()
"""Width of a page's number."""
REGION_BITS = 8
"""Width of a memory region's number."""

PAGE_ENTRY_LAYOUT = data.StructLayout({"present": 1, "reserved": 11, "frame": PAGE_BITS})
"""A word of a page table: the `frame` of host memory in which a page of a region is, if it is `present`."""
LOOKUP_LAYOUT = data.StructLayout({"region": REGION_BITS, "page": PAGE_BITS, "table": 32})
"""The `page`-th page of `region`, whose page table is at `table` (a multiple of 4) of host memory."""
INVALIDATE_LAYOUT = data.StructLayout({"scope": 2, "region": REGION_BITS, "page": PAGE_BITS})
"""Cached entries to forget, by `Scope`."""


class Scope(IntEnum):
    """The entries that an invalidation forgets."""

    PAGE = 0  # one page of a region
    REGION = 1  # all pages of a region
    ALL = 2


class Translation(wiring.Component):
    """A cache of `translation_entries` page table entries, direct-mapped (nagar-thesis-2001 4.2.1, 5.2.2).

    Members:

    - `lookup` (in, stream of `LOOKUP_LAYOUT`): a page whose entry is asked for.
    - `answer` (out, stream of `PAGE_ENTRY_LAYOUT`): that entry, answered in order, one at a time. An entry that is not
      present, or that the bus could not read, is answered as not present, and is not kept.
    - `invalidate` (in, stream of `INVALIDATE_LAYOUT`): entries to forget, taken when no lookup is under way. A lookup
      that is taken after it reads host memory anew.
    - `hits`, `misses` (out, 32): lookups answered from the cache, and from host memory, since reset, modulo 2^32.
    - `axi` (out, `Axi4Signature`): reads of one bus word at a time, ID 0.
    - `rests` (out): nothing is looked up or forgotten.

    Latency: from `lookup` to `answer`: 2 cycles for a hit; for a miss 4 and the bus's. Throughput: a lookup every 3
    cycles. An invalidation of a page, or of all, takes one cycle. One of a region takes `translation_entries` more.
    Reset: nothing is cached.

    Raises ConfigError for a configuration without regions.
    """

    def __init__(self, config: NicConfig) -> None:
        if not config.regions:
            raise ConfigError("Translation: regions = 0: at least 1")
        self.config = config
        super().__init__(
            {
                "lookup": In(stream.Signature(LOOKUP_LAYOUT)),
                "answer": Out(stream.Signature(PAGE_ENTRY_LAYOUT)),
                "invalidate": In(stream.Signature(INVALIDATE_LAYOUT)),
                "hits": Out(32),
                "misses": Out(32),
                "axi": Out(Axi4Signature(data_bits=config.bus_bits)),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, answer, entries = self.axi, self.answer, self.config.translation_entries
        index_bits = (entries - 1).bit_length()
        line = data.StructLayout({"region": REGION_BITS, "page": PAGE_BITS, "frame": PAGE_BITS})
        m.submodules.lines = lines = memory.Memory(shape=line, depth=entries, init=[])
        read, write = lines.read_port(), lines.write_port()
        valid = Signal(entries)
        # The page that is looked up or forgotten, and the line it would be in.
        wanted, at = Signal(LOOKUP_LAYOUT), Signal(index_bits)
        forget = self.invalidate.payload
        keeps, hit = Signal(), Signal()
        m.d.comb += [
            read.en.eq(1),
            write.addr.eq(at),
            write.data.region.eq(wanted.region),
            write.data.page.eq(wanted.page),
            keeps.eq(valid.bit_select(at, 1) & (read.data.region == wanted.region)),
            hit.eq(keeps & (read.data.page == wanted.page)),
        ]
        bus_bytes = self.config.bus_bits // 8
        lanes = bus_bytes // 4
        lane_bits = (lanes - 1).bit_length()
        word = Signal(30)  # of host memory: where the entry is
        entry = Signal(PAGE_ENTRY_LAYOUT)
        m.d.comb += [
            word.eq(wanted.table[2:] + wanted.page),
            axi.araddr.eq(word[lane_bits:] << (2 + lane_bits)),
            axi.arsize.eq(bus_bytes.bit_length() - 1),
            axi.arburst.eq(1),  # INCR
            axi.rready.eq(1),
            axi.bready.eq(1),
            write.data.frame.eq(entry.frame),
        ]
        got = Signal(PAGE_ENTRY_LAYOUT)
        m.d.comb += got.eq(axi.rdata.word_select(word[:lane_bits], 32))
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)

        with m.FSM() as machine:
            with m.State("idle"):
                with m.If(self.invalidate.valid):
                    m.d.comb += [self.invalidate.ready.eq(1), read.addr.eq(_place(forget, index_bits))]
                    m.d.sync += [wanted.region.eq(forget.region), wanted.page.eq(forget.page)]
                    m.d.sync += at.eq(read.addr)
                    with m.If(forget.scope == Scope.PAGE):
                        m.next = "forget"
                    with m.Elif(forget.scope == Scope.REGION):
                        m.d.comb += read.addr.eq(0)
                        m.next = "sweep"
                    with m.Else():
                        m.d.sync += valid.eq(0)
                with m.Else():
                    m.d.comb += [
                        self.lookup.ready.eq(1),
                        read.addr.eq(_place(self.lookup.payload, index_bits)),
                    ]
                    m.d.sync += [wanted.eq(self.lookup.payload), at.eq(read.addr)]
                    with m.If(self.lookup.valid):
                        m.next = "compare"
            with m.State("forget"):
                with m.If(hit):
                    m.d.sync += valid.bit_select(at, 1).eq(0)
                m.next = "idle"
            with m.State("sweep"):
                # The line after this one is read while this one is looked at.
                m.d.comb += read.addr.eq(at + 1)
                m.d.sync += at.eq(at + 1)
                with m.If(keeps):
                    m.d.sync += valid.bit_select(at, 1).eq(0)
                with m.If(at == entries - 1):
                    m.next = "idle"
            with m.State("compare"):
                m.d.sync += [entry.frame.eq(read.data.frame), entry.present.eq(1)]
                m.next = "answer"
                with m.If(hit):
                    m.d.sync += self.hits.eq(self.hits + 1)
                with m.Else():
                    m.d.sync += [self.misses.eq(self.misses + 1), axi.arvalid.eq(1)]
                    m.next = "walk"
            with m.State("walk"):
                m.d.sync += [entry.eq(got), entry.present.eq(got.present & ~axi.rresp[1])]
                with m.If(axi.rvalid):
                    m.next = "keep"
            with m.State("keep"):
                m.d.comb += write.en.eq(entry.present)
                # The line is the wanted page's, or nobody's: the entry that was there is written over.
                with m.If(entry.present):
                    m.d.sync += valid.bit_select(at, 1).eq(1)
                m.next = "answer"
            with m.State("answer"):
                m.d.comb += [answer.valid.eq(1), answer.payload.eq(entry)]
                with m.If(answer.ready):
                    m.next = "idle"
        m.d.comb += self.rests.eq(machine.ongoing("idle") & ~self.invalidate.valid & ~self.lookup.valid)
        return m


def _place(asked: data.View, index_bits: int) -> Value:
    """The line of a page: pages of a region are neighbours, and regions start in different places."""
    return (asked.page ^ (asked.region << 2))[:index_bits]
