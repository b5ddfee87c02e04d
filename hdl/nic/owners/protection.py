"""Protection of memory: tags, owners and bounds are checked before anything is touched."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError, NicConfig
from ..doorbell import CHANNEL_BITS, assign_layout
from .completion_layout import OWNER_BITS, CompletionStatus
from .translation import LOOKUP_LAYOUT, PAGE_BYTES, PAGE_ENTRY_LAYOUT, REGION_BITS

__all__ = ["ACCESS_LAYOUT", "KEY_BITS", "REGION_LAYOUT", "SEGMENT_LAYOUT", "Protection"]

KEY_BITS = 8
"""Width of a region's key: a tag is `key << 8 | region`, and one whose region was made anew has another key."""
OFFSET_BITS = (PAGE_BYTES - 1).bit_length()
MOST_PAGES = 32
"""Pages that an access may touch: 65535 bytes touch 17 at most. It is a power of two for the memory of the pages."""

REGION_LAYOUT = data.StructLayout(
    {
        "region": REGION_BITS,
        "valid": 1,
        "writable": 1,
        "key": KEY_BITS,
        "owner": OWNER_BITS,
        "start": 32,
        "bytes": 32,
        "table": 32,
    }
)
"""A memory region: `bytes` from virtual address `start`, whose page table is at `table`.

Entry 0 of the table is the page of `start`.
"""
ACCESS_LAYOUT = data.StructLayout(
    {"channel": CHANNEL_BITS, "region": REGION_BITS, "key": KEY_BITS, "address": 32, "bytes": 16, "write": 1}
)
"""An access of the process behind `channel`: `bytes` from virtual `address` on, read or written, in a tag's region."""
SEGMENT_LAYOUT = data.StructLayout({"status": 5, "address": 32, "bytes": 16, "last": 1})
"""Bytes that lie together in host memory.

With another `status` (`CompletionStatus`) than OK the access may not be done. Then there is one segment, of no bytes.
"""


class Protection(wiring.Component):
    """Checks an access and translates it (nagar-thesis-2001 4.1.2: memory tags, 4.2.1: translation).

    Members:

    - `assign` (in, `assign_layout`), `assigns` (in): the owner of a channel's work queues, as `Doorbell` has it.
    - `region` (in, `REGION_LAYOUT`), `regions` (in): a region is set, from the next access on.
    - `access` (in, stream of `ACCESS_LAYOUT`): an access, one at a time.
    - `segment` (out, stream of `SEGMENT_LAYOUT`): the access, in pieces that end at pages; the piece with `last` ends
      it. An access of 0 bytes is one piece of 0 bytes.
    - `lookup` (out, stream of `LOOKUP_LAYOUT`), `answer` (in, stream of `PAGE_ENTRY_LAYOUT`): to `Translation`.
    - `violation` (out): in this cycle an access is found forbidden.
    - `violations` (out, 32): accesses found forbidden since reset, modulo 2^32.

    An access is checked in this order, and ends with the status of the first check that fails:

    1. NO_REGION: the channel is open, and the region's key is the tag's.
    2. NOT_OWNER: channel and region are the same owner's.
    3. OUTSIDE: all bytes are in the region.
    4. READ_ONLY: the region may be written, if the access is a write.
    5. MISALIGNED: the address is a multiple of `alignment_bytes`, by default the card's `dma_alignment_bytes`.
    6. NO_PAGE: all pages have a translation.

    No segment is given before every check has been passed. So an access is done as a whole or nothing of it is.

    Latency: from `access` to the first segment: 3 cycles, and 4 for each page if it is cached; then a segment a
    cycle. Throughput: one access at a time. Reset: no access is under way; channels and regions stay as they are,
    after power-up none is open or valid.

    Raises ConfigError for a configuration without regions.
    """

    def __init__(self, config: NicConfig, *, alignment_bytes: int | None = None) -> None:
        if not config.regions:
            raise ConfigError("Protection: regions = 0: at least 1")
        self.config = config
        self._alignment_bytes = alignment_bytes or config.dma_alignment_bytes
        super().__init__(
            {
                "assign": In(assign_layout()),
                "assigns": In(1),
                "region": In(REGION_LAYOUT),
                "regions": In(1),
                "access": In(stream.Signature(ACCESS_LAYOUT)),
                "segment": Out(stream.Signature(SEGMENT_LAYOUT)),
                "lookup": Out(stream.Signature(LOOKUP_LAYOUT)),
                "answer": In(stream.Signature(PAGE_ENTRY_LAYOUT)),
                "violation": Out(1),
                "violations": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wanted = Signal(ACCESS_LAYOUT)
        asked = self.access.payload
        asks = self.access.ready
        channel = _table(
            m, "channels", self.assign, self.assigns, "channel", self.config.channels, asked.channel, asks
        )
        region = _table(
            m, "known", self.region, self.regions, "region", self.config.regions, asked.region, asks
        )

        # Offsets in the region: of the first byte, and of the first one after the access. For an address before the
        # region's start the borrow stays, in bit 32: that is beyond any region's end.
        first, after = Signal(33), Signal(34)
        status = Signal(CompletionStatus)
        m.d.comb += [first.eq(wanted.address - region.start), after.eq(first + wanted.bytes)]
        known = (
            (wanted.channel < self.config.channels)
            & (wanted.region < self.config.regions)
            & region.valid
            & channel.open
        )
        with m.If(~known | (region.key != wanted.key)):
            m.d.comb += status.eq(CompletionStatus.NO_REGION)
        with m.Elif(region.owner != channel.owner):
            m.d.comb += status.eq(CompletionStatus.NOT_OWNER)
        with m.Elif(after > region.bytes):
            m.d.comb += status.eq(CompletionStatus.OUTSIDE)
        with m.Elif(wanted.write & ~region.writable):
            m.d.comb += status.eq(CompletionStatus.READ_ONLY)
        if self._alignment_bytes > 1:
            # The engine ignores these bits: it would move bytes that were not asked for, before the region's first too.
            low = wanted.address[: (self._alignment_bytes - 1).bit_length()]
            with m.Elif(low != 0):
                m.d.comb += status.eq(CompletionStatus.MISALIGNED)

        # Pages, counted from the access's first; their frames are kept until all are known.
        page, last = Signal(range(MOST_PAGES)), Signal(range(MOST_PAGES))
        start_offset = wanted.address[:OFFSET_BITS]
        m.submodules.frames = frames = memory.Memory(
            shape=PAGE_ENTRY_LAYOUT["frame"].width, depth=MOST_PAGES, init=[]
        )
        put, get = frames.write_port(), frames.read_port(domain="comb")
        found = Signal(CompletionStatus)
        left = Signal(16)
        offset = Signal(OFFSET_BITS)
        size = Signal(range(PAGE_BYTES + 1))
        here = Signal(range(PAGE_BYTES + 1))
        segment, lookup = self.segment, self.lookup
        m.d.comb += [
            put.addr.eq(page),
            put.data.eq(self.answer.payload.frame),
            get.addr.eq(page),
            here.eq(PAGE_BYTES - offset),
            size.eq(Mux(left < here, left, here)),
            lookup.payload.region.eq(wanted.region),
            lookup.payload.page.eq(wanted.address[OFFSET_BITS:] - region.start[OFFSET_BITS:] + page),
            lookup.payload.table.eq(region.table),
            segment.payload.status.eq(found),
            segment.payload.last.eq((found != CompletionStatus.OK) | (page == last)),
        ]
        with m.If(found == CompletionStatus.OK):
            m.d.comb += [
                segment.payload.address.eq(Cat(offset, get.data)),
                segment.payload.bytes.eq(size),
            ]
        with m.If(self.violation):
            m.d.sync += self.violations.eq(self.violations + 1)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.access.ready.eq(1)
                m.d.sync += wanted.eq(asked)
                with m.If(self.access.valid):
                    m.next = "check"
            with m.State("check"):
                m.d.sync += [
                    found.eq(status),
                    page.eq(0),
                    last.eq((start_offset + Mux(wanted.bytes == 0, 0, wanted.bytes - 1)) >> OFFSET_BITS),
                    offset.eq(start_offset),
                    left.eq(wanted.bytes),
                ]
                m.next = "look up"
                with m.If(status != CompletionStatus.OK):
                    m.d.comb += self.violation.eq(1)
                    m.next = "give"
                with m.Elif(wanted.bytes == 0):
                    m.next = "give"
            with m.State("look up"):
                m.d.comb += lookup.valid.eq(1)
                with m.If(lookup.ready):
                    m.next = "answer"
            with m.State("answer"):
                m.d.comb += [self.answer.ready.eq(1), put.en.eq(self.answer.valid)]
                with m.If(self.answer.valid):
                    m.d.sync += page.eq(page + 1)
                    m.next = "look up"
                    with m.If(~self.answer.payload.present):
                        m.d.comb += self.violation.eq(1)
                        m.d.sync += [found.eq(CompletionStatus.NO_PAGE), page.eq(0)]
                        m.next = "give"
                    with m.Elif(page == last):
                        m.d.sync += page.eq(0)
                        m.next = "give"
            with m.State("give"):
                m.d.comb += segment.valid.eq(1)
                with m.If(segment.ready):
                    m.d.sync += [page.eq(page + 1), offset.eq(0), left.eq(left - size)]
                    with m.If(segment.payload.last):
                        m.next = "idle"
        return m


def _table(
    m: Module, name: str, row: data.View, writes: Value, key: str, depth: int, asked: Value, asks: Value
) -> data.View:
    """A table with a row for each `key`, written by `row`.

    Returns the row of the number that was `asked` when `asks` was last up.
    """
    fields = {field: shape.width for field, shape in row.shape() if field != key}
    m.submodules[name] = table = memory.Memory(shape=data.StructLayout(fields), depth=depth, init=[])
    write, read = table.write_port(), table.read_port()
    m.d.comb += [
        write.addr.eq(row[key]),
        write.en.eq(writes & (row[key] < depth)),
        read.addr.eq(asked),
        read.en.eq(asks),
    ]
    m.d.comb += [write.data[field].eq(row[field]) for field in fields]
    return read.data
