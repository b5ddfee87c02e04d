"""The check of an adapter's accesses to host memory: keys, owners and bounds, then pages, on the adapter's wide bus."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..nic.doorbell import assign_layout
from ..nic.owners.protection import ACCESS_LAYOUT, REGION_LAYOUT, SEGMENT_LAYOUT, Protection
from ..nic.owners.translation import INVALIDATE_LAYOUT, Translation

__all__ = ["BUS_BYTES", "MemoryCheck"]

BUS_BYTES = BUS_BITS // 8
"""Bytes of a beat of the adapter's bus: addresses of messages and buffers are multiples of it."""


class MemoryCheck(wiring.Component):
    """`Protection` and `Translation` with one port to the adapter's bus: an instance for each direction.

    The `channel` of an access and of an assignment is the queue pair.

    Members:

    - `assign` (in, `assign_layout`), `assigns` (in): the owner of a queue pair; its `priority` is not used.
    - `region` (in, `REGION_LAYOUT`), `regions` (in): a region is set, from the next access on.
    - `invalidate` (in, stream of `INVALIDATE_LAYOUT`): cached page table entries to forget.
    - `access` (in, stream of `ACCESS_LAYOUT`): an access, one at a time.
    - `segment` (out, stream of `SEGMENT_LAYOUT`): the access in pieces that end at pages, or why it may not be done.
      An address that is no multiple of 16 is MISALIGNED.
    - `violation` (out): in this cycle an access is found forbidden.
    - `violations`, `hits`, `misses` (out, 32): forbidden accesses, and looks at page table entries that were cached or
      not, since reset, modulo 2^32.
    - `axi` (out, `Axi4Signature` of 128 bits): reads of one beat, ID 0, one at a time.
    - `rests` (out): no access is under way and nothing is forgotten.

    Latency: from `access` to the first segment a cycle, and 4 for each page if it is cached. One that is not takes 2
    cycles and the bus's time more. Throughput: one access at a time. Reset: nothing is cached; regions and owners stay.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "assign": In(assign_layout()),
                "assigns": In(1),
                "region": In(REGION_LAYOUT),
                "regions": In(1),
                "invalidate": In(stream.Signature(INVALIDATE_LAYOUT)),
                "access": In(stream.Signature(ACCESS_LAYOUT)),
                "segment": Out(stream.Signature(SEGMENT_LAYOUT)),
                "violation": Out(1),
                "violations": Out(32),
                "hits": Out(32),
                "misses": Out(32),
                "axi": Out(Axi4Signature(data_bits=BUS_BITS)),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.protection = self.protection = protection = Protection(
            self.config.port, alignment_bytes=BUS_BYTES
        )
        m.submodules.translation = translation = Translation(self.config.port)
        connect(m, protection.lookup, translation.lookup)
        connect(m, translation.answer, protection.answer)
        connect(m, flipped(self.access), protection.access)
        connect(m, protection.segment, flipped(self.segment))
        connect(m, flipped(self.invalidate), translation.invalidate)
        narrow, axi = translation.axi, self.axi
        low = (BUS_BYTES - 1).bit_length()
        m.d.comb += [
            protection.assign.eq(self.assign),
            protection.assigns.eq(self.assigns),
            protection.region.eq(self.region),
            protection.regions.eq(self.regions),
            self.violation.eq(protection.violation),
            self.violations.eq(protection.violations),
            self.hits.eq(translation.hits),
            self.misses.eq(translation.misses),
            self.rests.eq(protection.access.ready & ~self.access.valid & translation.rests),
            # A whole beat is read, of which the unit of half the width takes its half: its address stands still until
            # the beat has come.
            axi.araddr.eq(narrow.araddr[low:] << low),
            axi.arsize.eq(low),
            axi.arburst.eq(narrow.arburst),
            axi.arvalid.eq(narrow.arvalid),
            axi.rready.eq(narrow.rready),
            axi.bready.eq(1),
            narrow.arready.eq(axi.arready),
            narrow.rdata.eq(axi.rdata.word_select(narrow.araddr[low - 1 : low], len(narrow.rdata))),
            narrow.rresp.eq(axi.rresp),
            narrow.rlast.eq(axi.rlast),
            narrow.rvalid.eq(axi.rvalid),
        ]
        return m
