"""The two-level table arbiter of virtual lanes (yum-2006 3.3, after the InfiniBand specification)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from types import SimpleNamespace
from typing import Any, Literal

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.hdl import Value
from amaranth.lib import memory

from ..config import ConfigError
from .base import NO_LIMIT, VlArbiter, rotating_pick
from .tables import VlTables

__all__ = ["FastTableArbiter", "IbaTableArbiter", "SlowTableArbiter", "TwoLevelArbiter"]

LIMIT_BYTES = 4096
"""Unit of the limit of high priority in the InfiniBand specification."""
WEIGHT_BYTES = 64
"""Unit of a weight there."""


class TwoLevelArbiter(VlArbiter):
    """A high and a low table of (VL, weight), the limit of high priority between them.

    Parameters beside those of `VlArbiter`:

    - `pointer`: with "fast" an entry's turn is one flit; with "slow" it is the entry's weight.
    - `units`: with "flit" a weight is in flits and the limit too (yum-2006). With "iba" a weight is in 64 bytes, the
      limit in 4096 bytes. Weights are then charged by the packet, rounded up to whole units. A packet that was begun
      is finished; the units that it takes beyond the weight are forgiven. Turns end at tails only, and with "fast" are
      one packet.

    Order. A pointer circulates the table: entries have their turns in the order of the table, those of one VL among
    them. So a weight in one entry makes a burst; the same weight spread over many entries makes an even flow. With
    "slow", (0,4) (1,4) (0,4) (1,4) gives 0000 1111 0000 1111. With "fast" entries are gone round again while there is
    something left: (0,2) (1,1) (0,2) (2,1) gives 010200.

    Frames. A VL has a share of each frame, and the share is kept to. With "slow" it is the weight of each entry. With
    "fast" it is the sum of the VL's weights, whichever of its entries the flits come from. If none of the VLs that ask
    has anything left, the frame is over. The next one begins in that very cycle, at the table's first entry, with
    everything for all. With "fast" a frame has passes: in a pass each entry has one turn. The next pass begins at the
    first entry when no VL that asks and has share left has an entry to come.

    Absence. A VL that does not ask is not waited for: the first entry further on goes whose VL asks. So no cycle is
    lost, and the share that an idle VL leaves goes to the others in proportion. The entry with which the VL was passed
    over is kept. It has its turn when the VL asks again and the turn under way is over, before all entries further on.
    The rest of an interrupted turn ("slow") is kept likewise. So a VL that comes back finds what it has not used of the
    frame, neither more nor less for having been away. With "fast" it finds at most a pass of it at once.

    Departure: InfiniBand gives up what a VL does not use of its turn; here it lasts until the frame ends. If it were
    given up, and with grants that are not followed, shares would not be exact.

    Tables. The high table goes first. Once it has sent `limit` units since the last of the low table, the low table
    goes next if it asks: one flit, with "iba" one packet. A limit of 255 is none; 0 lets high priority send one flit
    or packet. Each table has its own frames and its own turn under way. A VL in neither table goes if nobody else asks,
    in turn by number. A VL may be in both and has what both give. The control VL is ahead of all.

    New tables (see `TableSignature`) take effect at the end of the first frame, of whichever table is served, that
    comes after they are ready. If nobody asks they take effect at once. A frame may not end for
    `TableSignature.patience_cycles`, because grants are not used or because it is longer (in "iba" units). The new
    tables then take effect all the same, and the frame is cut short. Both tables then start a frame. The flit of that
    cycle is the last under the old tables. Requests are never withheld, so nothing can be lost or sent twice.

    Longest wait: `wait_bound`, for a VL that keeps asking. Cost: it grows with the VLs, and entries only take memory:

    - for each VL and table the place of its next entry and of its first one, a memory row (what is left) and six flags
    - a contest of places, by pairs
    - `VlTables`

    Timing: `grant` is combinational from `requests` and registers. The charge of a flit, and the entry that its VL
    comes to, are worked out in the cycle after it, out of the way of the grant. Reset: that of `VlTables`, so round
    robin until tables are written.
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
        high: Sequence[tuple[int, int]],
        low: Sequence[tuple[int, int]],
        limit: int = NO_LIMIT,
        unit: int = 1,
        limit_unit: int = 1,
        packet_flits: int = 1,
    ) -> int | None:
        """The most flits of others between two flits of `vl`, which keeps asking; None if there is no bound.

        - `high`, `low`: the tables, rows (VL, weight).
        - `unit`: `weight_flits` for "iba", 1 for "flit".
        - `limit_unit`: `limit_flits` for "iba", 1 for "flit".
        - `packet_flits`: the longest packet for "iba", 1 for "flit".

        Let S be the largest number of flits that the other VLs of its table send in a frame. It is the sum of their
        weights, each entry with what a packet takes beyond it. A VL that has nothing left waits at most S for the
        frame's end, and then at most S for its turn in the new frame: 2 S.

        Let M be the flits of `limit` units, at least 1, and of the rest of the packet. For every M flits of high that
        are sent while low asks there is one turn of low: a flit or a packet. So the bounds are:

        - a VL of the high table: 2 S + (2 S // M + 1) turns of low; without a limit 2 S.
        - a VL of the low table: (2 S + 1) M + 2 S. Without a limit it has no bound if the high table has any other VL.
        - a VL in both: the smaller of the two.

        Rewriting the tables starts a frame: at most once more, and by the larger of old and new.
        """
        over = packet_flits - 1
        most = max(1, limit * limit_unit) + over
        bounds = []

        def others(table: Sequence[tuple[int, int]]) -> int:
            return sum(weight * unit + over for v, weight in table if weight and v != vl)

        def lists(table: Sequence[tuple[int, int]]) -> bool:
            return any(weight and v == vl for v, weight in table)

        if lists(high):
            frames = 2 * others(high)
            lows = 0
            if limit != NO_LIMIT and any(weight for _, weight in low):
                lows = (frames // most + 1) * packet_flits
            bounds.append(frames + lows)
        if lists(low):
            frames = 2 * others(low)
            if not others(high):
                bounds.append(frames)
            elif limit != NO_LIMIT:
                bounds.append(frames + (frames + 1) * most)
        return min(bounds, default=None)

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        vls, unit, slow = self.vls, self.weight_flits, self.pointer == "slow"
        everyone = (1 << vls) - 1
        m.submodules.tables = tables = VlTables(vls=vls, entries=self.entries, sums=not slow)
        table = self.table
        m.d.comb += [
            *(
                getattr(tables.table, name).eq(getattr(table, name))
                for name in ("write", "high", "entry", "vl", "weight", "limit", "commit")
            ),
            table.ready.eq(tables.table.ready),
        ]

        # The VLs that may go, by level: 0 low, 1 high.
        wants, has_share, last_unit, whole, fresh, turn = (
            [
                Signal(vls, name=f"{name}_{level}", init=everyone if name == "fresh" else 0)
                for level in ("low", "high")
            ]
            for name in (
                "wants",
                "has_share",  # something left in this frame; of nobody: the next flit begins one
                "last_unit",  # at most a unit left of the account: slow, of its next entry; fast, of its share
                "whole",  # nothing charged to that account: what is left is the weight, or the share
                "fresh",  # its next entry is its first one, and not that in `place`
                "turn",  # the VL whose turn is not over
            )
        )
        places = [
            [Signal(len(tables.place), name=f"place_{level}_{v}") for v in range(vls)]
            for level in ("low", "high")
        ]
        for i in range(2):
            m.d.comb += wants[i].eq(requests & tables.listed[i])

        # The flit of the last cycle, to be charged now. With `moved` its VL goes on to its next entry, known now.
        served, served_high, served_tail = Signal(vls), Signal(), Signal()
        charge, moved = Signal(), Signal()
        underway = Signal()  # the last flit was no tail, and its packet is to be finished
        now_has, now_fresh, now_last, wraps, steps = (
            [Signal(vls, name=f"{name}_{level}") for level in ("low", "high")]
            for name in ("now_has", "now_fresh", "now_last", "wraps", "steps")
        )
        near = Signal()
        for i in range(2):
            mine = Mux(served_high == i, served, 0)
            m.d.comb += [
                wraps[i].eq(Mux(moved & tables.last, mine, 0)),
                steps[i].eq(Mux(moved & ~tables.last, mine, 0)),
                now_fresh[i].eq((fresh[i] & ~steps[i]) | wraps[i]),
            ]
            if slow:
                begun = Mux(tables.following_single, steps[i], 0)
                m.d.comb += [
                    now_has[i].eq(has_share[i] & ~wraps[i]),
                    now_last[i].eq((last_unit[i] & ~steps[i]) | begun | Mux(near & ~moved, mine, 0)),
                ]
            else:
                m.d.comb += [
                    now_has[i].eq(has_share[i]),
                    now_last[i].eq(last_unit[i] | Mux(near, mine, 0)),
                ]

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

        wanted, chosen, candidates, holder = (
            Signal(vls, name=name) for name in ("wanted", "chosen", "candidates", "holder")
        )
        fresh_pass = Signal()
        m.d.comb += [
            wanted.eq(Mux(high, wants[1], wants[0])),
            chosen.eq(wanted & Mux(high, now_has[1], now_has[0])),
            fresh_frame.eq(~chosen.any()),
            holder.eq(wanted & Mux(high, turn[1], turn[0])),
        ]
        if slow:
            # A pass is a frame.
            m.d.comb += [fresh_pass.eq(fresh_frame), candidates.eq(Mux(fresh_frame, wanted, chosen))]
        else:
            opened = [
                Signal(vls, name=f"open_{level}") for level in ("low", "high")
            ]  # has not ended this pass
            in_pass = Signal(vls)
            m.d.comb += [
                in_pass.eq(
                    chosen & Mux(high, opened[1] & ~wraps[1], opened[0] & ~wraps[0]),
                ),
                fresh_pass.eq(fresh_frame | (~in_pass.any() & ~holder.any())),
                candidates.eq(Mux(fresh_frame, wanted, Mux(in_pass.any(), in_pass, chosen))),
            ]

        # The next entry of each VL, in the table that is served. The first one of a candidate goes.
        nexts = []
        for v in range(vls):
            place = Signal(len(tables.place), name=f"next_{v}")
            stepped = Mux(high, steps[1][v], steps[0][v])
            first = Mux(high, tables.first[1][v], tables.first[0][v])
            kept = Mux(high, places[1][v], places[0][v])
            m.d.comb += place.eq(
                Mux(Mux(high, now_fresh[1][v], now_fresh[0][v]), first, Mux(stepped, tables.following, kept))
            )
            nexts.append(place)
        earliest = _earliest(m, candidates, nexts)
        above = Signal(vls)  # the rotation of those in no table: VLs that come first
        others = rotating_pick(m, requests, above, "others")
        m.d.comb += [
            grant.eq(Mux(listed, Mux(holder.any(), holder, earliest), others)),
            tables.place.eq(reduce(or_, (Mux(grant[v], nexts[v], 0) for v in range(vls)))),
            tables.place_high.eq(high),
        ]

        # Charging, one cycle late. `near` is known in time to act on a flit of the same VL that goes in this
        # cycle.
        share = tables.weight if slow else tables.share
        vl_bits = max(1, (vls - 1).bit_length())
        m.submodules.left = left = memory.Memory(
            shape=unsigned(len(share) + unit.bit_length() - 1), depth=2 << vl_bits, init=[]
        )
        left_read, left_write = left.read_port(domain="comb"), left.write_port()
        before, after = Signal(len(left_read.data)), Signal(len(left_read.data))
        served_vl = Cat(Cat(*(served[v] for v in range(vls) if v >> bit & 1)).any() for bit in range(vl_bits))
        served_whole = (served & Mux(served_high, whole[1], whole[0])).any()
        if not slow:
            m.d.comb += [tables.select_vl.eq(served_vl), tables.select_high.eq(served_high)]
        m.d.comb += [
            left_read.addr.eq(Cat(served_vl, served_high)),
            left_write.addr.eq(left_read.addr),
            before.eq(Mux(served_whole, share << (unit.bit_length() - 1), left_read.data)),
            after.eq(self._charged(before, served_tail)),
            left_write.data.eq(after),
            left_write.en.eq(charge),
            near.eq(charge & (after <= unit)),
        ]

        # Bookkeeping of the grant.
        tail = (grant & tails).any() if self.by_packet else Value.cast(1)
        goes, swap = advance & requests.any(), Signal()
        m.d.comb += [swap.eq(tables.pending & (fresh_frame | tables.overdue)), tables.swap.eq(swap)]
        used_up = Signal()
        for i in range(2):
            level = (high if i else ~high & any_low) & advance
            begins = level & fresh_frame
            closes, next_turn = Signal(vls, name=f"closes_{i}"), Signal(vls, name=f"next_turn_{i}")
            base = Mux(fresh_frame, tables.single[i], now_last[i])
            late = Mux(charge & (served_high == i) & (~moved if slow else 1), served, 0)
            m.d.comb += [
                closes.eq(Mux(level & tail, grant & base, 0)),
                next_turn.eq(Mux(level, Mux(closes.any() if slow else tail, 0, grant), turn[i])),
            ]
            with m.If(closes.any()):
                m.d.comb += used_up.eq(1)
            m.d.sync += [
                last_unit[i].eq(Mux(begins, tables.single[i], now_last[i])),
                # Slow: an entry that is used up leaves its VL a whole one, or nothing in this frame.
                whole[i].eq(Mux(begins, everyone, (whole[i] & ~late) | (closes if slow else 0))),
                has_share[i].eq(Mux(begins, tables.listed[i], now_has[i]) & ~(0 if slow else closes)),
                fresh[i].eq(Mux(level & fresh_pass, everyone, now_fresh[i] | (0 if slow else closes))),
                turn[i].eq(next_turn),
            ]
            for v in range(vls):
                with m.If(steps[i][v]):
                    m.d.sync += places[i][v].eq(tables.following)
            if not slow:
                m.d.sync += opened[i].eq(Mux(level & fresh_pass, everyone, opened[i] & ~wraps[i]))
            with m.If(swap):
                # Nobody has anything left: each table begins a frame with its next flit, at its first entry. A packet
                # that was begun goes on.
                begun = Value.cast(0)
                if self.by_packet:
                    begun = Mux(goes, level & ~tail, underway & (served_high == i))
                m.d.sync += [
                    has_share[i].eq(0),
                    fresh[i].eq(everyone),
                    turn[i].eq(Mux(begun, next_turn, 0)),
                ]
        m.d.sync += [
            charge.eq(goes & listed),
            moved.eq(goes & listed & ~swap & (used_up if slow else tail & ~used_up)),
        ]
        with m.If(goes):
            m.d.sync += [
                served.eq(grant),
                served_high.eq(high),
                served_tail.eq(tail),
                underway.eq(~tail & listed),
            ]
            with m.If(~listed):
                # -(2 * x) has the bits above the granted one.
                m.d.sync += above.eq(~(grant << 1) + 1)
        sent = self._limit(m, tables, goes, high, low_due)
        # Signals for proofs: the promises above follow from them by induction.
        self.internals = SimpleNamespace(
            now_has=now_has,
            now_last=now_last,
            now_fresh=now_fresh,
            opened=None if slow else opened,
            wraps=wraps,
            steps=steps,
            places=places,
            turn=turn,
            whole=whole,
            charge=charge,
            moved=moved,
            served=served,
            served_high=served_high,
            served_tail=served_tail,
            underway=underway,
            high=high,
            left=left,
            sent=sent,
        )

    def _charged(self, before: Value, tail: Value) -> Value:
        """The rest of a share after a flit, in flits."""
        if not self.by_packet:
            return before - 1
        less = Mux(before.any(), before - 1, 0)
        # A packet is charged in whole units.
        rounding = self.weight_flits.bit_length() - 1
        return Cat(less[:rounding] & ~tail.replicate(rounding), less[rounding : len(before)])

    def _limit(self, m: Module, tables: VlTables, goes: Value, high: Signal, due: Signal) -> Signal:
        """Counts the flits that the high table has sent since the low one; `due`: as many as the limit allows.

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


def _earliest(m: Module, candidates: Signal, places: Sequence[Signal]) -> Value:
    """One-hot, the candidate with the lowest place, by pairs; 0 if there are none. No two have the same place."""
    contest: list[tuple[Value, Value, Value]] = [
        (candidates[v], place, candidates[v]) for v, place in enumerate(places)
    ]
    while len(contest) > 1:
        winners: list[tuple[Value, Value, Value]] = []
        for (any_a, place_a, hot_a), (any_b, place_b, hot_b) in zip(
            contest[::2], contest[1::2], strict=False
        ):
            n = f"{len(contest)}_{len(winners)}"
            later = Signal(name=f"later_{n}")
            asks, place = Signal(name=f"asks_{n}"), Signal(len(place_a), name=f"place_{n}")
            hot = Signal(len(hot_a) + len(hot_b), name=f"hot_{n}")
            m.d.comb += [
                later.eq(any_b & (~any_a | (place_b < place_a))),
                asks.eq(any_a | any_b),
                place.eq(Mux(later, place_b, place_a)),
                hot.eq(Mux(later, Cat(Const(0, len(hot_a)), hot_b), hot_a)),
            ]
            winners.append((asks, place, hot))
        contest = winners + contest[len(winners) * 2 :]
    return contest[0][2]


class FastTableArbiter(TwoLevelArbiter):
    """Two tables of (VL, weight): an entry's turn is one flit, and comes again until its VL's weights are used up."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(pointer="fast", **parameters)


class SlowTableArbiter(TwoLevelArbiter):
    """Two tables of (VL, weight): an entry's turn is as many flits as its weight."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(pointer="slow", **parameters)


class IbaTableArbiter(TwoLevelArbiter):
    """Two tables of (VL, weight): an entry's turn is whole packets, charged to its weight in units of 64 bytes."""

    whole_packets = True
    weight_bytes = WEIGHT_BYTES

    def __init__(self, **parameters: Any) -> None:
        super().__init__(pointer="slow", units="iba", **parameters)
