"""The two-level table arbiter of virtual lanes (yum-2006 3.3, after the InfiniBand specification)."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Literal

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.hdl import Value
from amaranth.lib import memory

from ..config import ConfigError
from .vl import NO_LIMIT, VlArbiter, rotating_pick
from .vl_tables import VlTables

__all__ = ["TwoLevelArbiter"]

LIMIT_BYTES = 4096
"""Unit of the limit of high priority in the InfiniBand specification."""
WEIGHT_BYTES = 64
"""Unit of a weight there."""


class TwoLevelArbiter(VlArbiter):
    """A high and a low table of (VL, weight), the limit of high priority between them.

    Parameters beside those of `VlArbiter`:

    - `pointer`: "fast": one flit, then the next VL; "slow": a VL goes on until its share is used or it does
      not ask.
    - `units`: "flit": a weight is in flits and the limit too (yum-2006). "iba": weights in 64 bytes, charged
      by the packet (rounded up to whole units; a packet that was begun is finished and what it takes beyond
      the weight is forgiven), the limit in 4096 bytes; turns end at tails only.

    Algorithm. A VL's share of a table is the sum of the weights of its entries there: 0 to 255 * `entries`.
    Each table has frames: in a frame a VL sends at most its share. Among the VLs of a table that ask and have
    share left the turn goes round by VL number, after the last one served. If none of those that ask has
    share left, the frame is over and the next one begins in that very cycle, with whole shares for all. So no
    cycle is lost, what an idle VL does not use goes to the others in proportion, and a VL that comes back
    finds what it has not used of the frame: at most its share, neither more nor less for having been away.

    The high table goes first. Once it has sent `limit` units since the last of the low table, the low table
    goes next if it asks: one flit, with "iba" one packet. 255 is no limit; 0 lets high priority send one flit
    or packet. A VL in neither table goes if nobody else asks. A VL may be in both and has both shares. The
    control VL is ahead of all.

    What is exact, and what not, against a pointer that walks the entries one by one: shares over a frame are
    exact for any set of VLs that keep asking. The order within a frame is that of VL numbers and not of
    entries, and the entries of a VL act as one with their sum: with "slow", one turn. To spread a VL's flits
    use "fast".

    New tables (see `TableSignature`) take effect at the end of the first frame, of whichever table is served,
    that comes after they are ready, or at once if nobody asks; both tables then start a frame. The flit of
    that cycle is the last under the old tables. Requests are never withheld, so nothing can be lost or sent
    twice.

    Longest wait of a VL that keeps asking: `wait_bound`. Cost: a memory row (what is left) and five flags for
    each VL and table, one rotating search, and `VlTables`. Combinational from `requests` and registers to
    `grant`. The charge of a flit is worked out in the cycle after it, out of the way of the grant. Reset:
    `VlTables`, so round robin until tables are written.
    """

    has_tables = True

    def __init__(
        self,
        *,
        vls: int,
        control_vl: int | None = None,
        flit_bytes: int = 16,
        entries: int = 64,
        pointer: Literal["fast", "slow"] = "fast",
        units: Literal["flit", "iba"] = "flit",
    ) -> None:
        for name, value, valid in (("pointer", pointer, ("fast", "slow")), ("units", units, ("flit", "iba"))):
            if value not in valid:
                raise ConfigError(f"TwoLevelArbiter: {name} = {value!r}: one of {', '.join(valid)}")
        self.pointer, self.units = pointer, units
        super().__init__(vls=vls, control_vl=control_vl, flit_bytes=flit_bytes, entries=entries)

    @property
    def by_packet(self) -> bool:
        """Whether weights are charged, and turns end, by the packet."""
        return self.units == "iba"

    @property
    def weight_flits(self) -> int:
        """Flits of a unit of weight."""
        return WEIGHT_BYTES // self.flit_bytes if self.by_packet else 1

    @property
    def limit_flits(self) -> int:
        """Flits of a unit of the limit."""
        return LIMIT_BYTES // self.flit_bytes if self.by_packet else 1

    @staticmethod
    def wait_bound(
        vl: int,
        *,
        high: Sequence[int],
        low: Sequence[int],
        limit: int = NO_LIMIT,
        unit: int = 1,
        limit_unit: int = 1,
        packet_flits: int = 1,
    ) -> int | None:
        """Most flits of others between two flits of `vl`, which keeps asking; None if there is no bound.

        `high`, `low`: share of each VL (sums of weights) in the tables. With unit = `weight_flits`,
        limit_unit = `limit_flits` and packet_flits = the longest packet for "iba"; 1 for "flit".

        Let S be the largest number of flits that the other VLs of its table send in a frame: the sum of their
        shares, each with what a packet takes beyond it. A VL that has used its share waits at most S for the
        frame's end, and then at most S for its turn in the new frame: 2 S. For every `limit` units of high
        (at least 1, with the rest of the packet) that are sent while low asks there is one flit (packet) of
        low: M high flits for one turn of low. So a VL of the high table waits at most 2 S + (2 S // M + 1)
        turns of low (without a limit 2 S), and one of the low table (2 S + 1) M + 2 S; without a limit it has
        no bound if the high table has any share. A VL in both waits at most what the better one says.
        Rewriting the tables starts a frame: at most once more, and by the larger of old and new.
        """
        over = packet_flits - 1
        most = max(1, limit * limit_unit) + over
        bounds = []

        def others(shares: Sequence[int]) -> int:
            return sum(share * unit + over for v, share in enumerate(shares) if share and v != vl)

        if high[vl]:
            frames = 2 * others(high)
            lows = 0 if limit == NO_LIMIT or not any(low) else (frames // most + 1) * packet_flits
            bounds.append(frames + lows)
        if low[vl]:
            frames = 2 * others(low)
            if not any(high[:vl]) and not any(high[vl + 1 :]):
                bounds.append(frames)
            elif limit != NO_LIMIT:
                bounds.append(frames + (frames + 1) * most)
        return min(bounds, default=None)

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        vls, unit = self.vls, self.weight_flits
        everyone = (1 << vls) - 1
        m.submodules.tables = tables = VlTables(vls=vls, entries=self.entries)
        table = self.table
        m.d.comb += [
            *(
                getattr(tables.table, name).eq(getattr(table, name))
                for name in ("write", "high", "entry", "vl")
            ),
            *(getattr(tables.table, name).eq(getattr(table, name)) for name in ("weight", "limit", "commit")),
            table.ready.eq(tables.table.ready),
        ]

        # Who may go, by level: 0 low, 1 high.
        wants, has_share, last_unit, whole, mask = (
            [Signal(vls, name=f"{name}_{level}") for level in ("low", "high")]
            for name in (
                "wants",
                "has_share",  # share left in this frame; of nobody: the next flit begins one
                "last_unit",  # at most a unit of it
                "whole",  # nothing charged in this frame: what is left is the share
                "mask",  # the rotation: VLs that come first
            )
        )
        for i in range(2):
            m.d.comb += wants[i].eq(requests & tables.listed[i])

        # The flit of the last cycle, to be charged now.
        served, served_high, served_tail, charge = Signal(vls), Signal(), Signal(), Signal()
        underway = Signal()  # the last flit was no tail, and its packet is to be finished
        low_due, high, listed, fresh_frame = Signal(), Signal(), Signal(), Signal()
        any_high, any_low = Signal(), Signal()
        m.d.comb += [
            any_high.eq(wants[1].any()),
            any_low.eq(wants[0].any()),
            high.eq(any_high & ~(low_due & any_low)),
            listed.eq(any_high | any_low),
        ]
        if self.by_packet:
            with m.If(underway & (served & Mux(served_high, wants[1], wants[0])).any()):
                m.d.comb += high.eq(served_high)

        wanted, chosen, candidates = Signal(vls), Signal(vls), Signal(vls)
        m.d.comb += [
            wanted.eq(Mux(high, wants[1], Mux(any_low, wants[0], requests))),
            # Only a VL in the table has share, so nobody here who is in none.
            chosen.eq(wanted & Mux(high, has_share[1], has_share[0])),
            fresh_frame.eq(~chosen.any()),
            candidates.eq(Mux(fresh_frame, wanted, chosen)),
        ]
        m.d.comb += grant.eq(rotating_pick(m, candidates, Mux(high, mask[1], mask[0])))

        # Charging, one cycle late. `near` is known in time to act on a flit of the same VL that goes in this
        # cycle.
        m.submodules.left = left = memory.Memory(
            shape=unsigned(len(tables.share) + unit.bit_length() - 1),
            depth=2 << len(tables.select_vl),
            init=[],
        )
        left_read, left_write = left.read_port(domain="comb"), left.write_port()
        before, after = Signal(len(left_read.data)), Signal(len(left_read.data))
        near = Signal()
        served_vl = Cat(
            Cat(*(served[i] for i in range(vls) if i >> bit & 1)).any()
            for bit in range(len(tables.select_vl))
        )
        served_whole = (served & Mux(served_high, whole[1], whole[0])).any()
        m.d.comb += [
            tables.select_vl.eq(served_vl),
            tables.select_high.eq(served_high),
            left_read.addr.eq(Cat(served_vl, served_high)),
            left_write.addr.eq(left_read.addr),
            before.eq(Mux(served_whole, tables.share << (unit.bit_length() - 1), left_read.data)),
            after.eq(self._charged(before, served_tail)),
            left_write.data.eq(after),
            left_write.en.eq(charge),
            near.eq(charge & (after <= unit)),
        ]

        # Bookkeeping of the grant.
        tail = (grant & tails).any() if self.by_packet else Value.cast(1)
        used_up, stays = Signal(), Signal()
        swap = tables.pending & fresh_frame
        m.d.comb += tables.swap.eq(swap)
        for i in range(2):
            level = (high if i else ~high & any_low) & advance
            begins = level & fresh_frame
            closes = Signal(vls, name=f"closes_{i}")
            nearing = Signal(vls, name=f"nearing_{i}")
            with m.If(near & (served_high == i)):
                m.d.comb += nearing.eq(served)
            base = Mux(fresh_frame, tables.single[i], last_unit[i] | nearing)
            m.d.comb += closes.eq(Mux(level & tail, grant & base, 0))
            m.d.sync += [
                has_share[i].eq(Mux(begins, tables.listed[i], has_share[i]) & ~closes),
                last_unit[i].eq(Mux(begins, tables.single[i], last_unit[i] | nearing)),
                whole[i].eq(Mux(begins, everyone, whole[i] & ~Mux(charge & (served_high == i), served, 0))),
            ]
            with m.If((high if i else ~high) & advance & requests.any()):
                # -x has the bits from the granted one up; -(2 * x) those above it.
                m.d.sync += mask[i].eq(~Mux(stays, grant, grant << 1) + 1)
            with m.If(closes.any()):
                m.d.comb += used_up.eq(1)
        keeps = ~used_up & listed
        m.d.comb += stays.eq(keeps if self.pointer == "slow" else ~tail)
        goes = advance & requests.any()
        m.d.sync += charge.eq(goes & listed)
        with m.If(goes):
            m.d.sync += [
                served.eq(grant),
                served_high.eq(high),
                served_tail.eq(tail),
                underway.eq(~tail & listed),
            ]
        with m.If(swap):
            # Nobody has share left: each table begins a frame with its next flit.
            m.d.sync += [share.eq(0) for share in has_share]
        sent = self._limit(m, tables, goes, high, low_due)
        # What a proof has to look at: the promises above follow from it by induction.
        self.internals = SimpleNamespace(
            has_share=has_share,
            last_unit=last_unit,
            whole=whole,
            mask=mask,
            near=near,
            charge=charge,
            served=served,
            served_high=served_high,
            served_tail=served_tail,
            underway=underway,
            high=high,
            left=left,
            sent=sent,
        )

    def _charged(self, before: Value, tail: Value) -> Value:
        """What is left of a share after a flit, in flits."""
        if not self.by_packet:
            return before - 1
        less = Mux(before.any(), before - 1, 0)
        # A packet is charged in whole units.
        rounding = self.weight_flits.bit_length() - 1
        return Cat(less[:rounding] & ~tail.replicate(rounding), less[rounding : len(before)])

    def _limit(self, m: Module, tables: VlTables, goes: Value, high: Signal, due: Signal) -> Signal:
        """Counts what the high table has sent since the low one; `due`: as much as the limit allows.

        Returns the count, in flits.
        """
        fraction = self.limit_flits.bit_length() - 1
        sent = Signal(8 + fraction)
        m.d.comb += due.eq((tables.limit != NO_LIMIT) & sent.any() & (sent[fraction:] >= tables.limit))
        with m.If(goes):
            with m.If(~high):
                m.d.sync += sent.eq(0)
            with m.Elif(~sent.all()):
                m.d.sync += sent.eq(sent + 1)
        return sent
