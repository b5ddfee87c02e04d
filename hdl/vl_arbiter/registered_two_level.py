"""The two-level table arbiter with registers in its decision, for links that give it the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from types import SimpleNamespace
from typing import Any, Literal

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError
from .base import NO_LIMIT, TableSignature, lowest_bit
from .tables import VlTables

__all__ = ["DECISION_CYCLES", "RegisteredTwoLevelArbiter"]

DECISION_CYCLES = 5
"""Cycles from a flit that goes to the next one at the earliest."""
_SETTLED = DECISION_CYCLES - 2
"""Cycles after the one with the first registers in which the last ones hold the decision."""


class RegisteredTwoLevelArbiter(wiring.Component):
    """The decisions of `TwoLevelArbiter` with weights in flits, each in `DECISION_CYCLES` cycles.

    Parameters: those of `TwoLevelArbiter` but `units` and `flit_bytes`. `control_vl`: -1 for none. Raises ConfigError
    for a value out of range.

    Members (vectors have a bit a VL):

    - `requests` (in): VLs whose next flit may go. They are looked at until there are any; then the decision is about
      those of that cycle. A request stays until its flit goes, or `drop`.
    - `drop` (in): requests have fallen. The decision that stands or is under way is given up.
    - `grant` (out): one-hot, the VL that goes; a register. It means nothing without `decided`.
    - `decided` (out): the decision stands; a register.
    - `advance` (in): its flit goes in this cycle; only with `decided`, and not with `drop`.
    - `table` (in, `TableSignature`): the tables.

    A decision is that of `TwoLevelArbiter` for the requests that were looked at. Tables take effect at the end of a
    frame, as there, and only while a decision stands or nobody asks. So `ready` may be low for `DECISION_CYCLES` more.

    Latency: `DECISION_CYCLES` - 1 cycles from a request to `decided`, and `DECISION_CYCLES` from a flit to `decided`
    for the next one. Throughput: a flit in `DECISION_CYCLES` cycles. The registers stand behind:

    1. who asks, by level, and the level that is served;
    2. the candidates, each VL's next place, and the first comparisons of places;
    3. half of the contest of places;
    4. the other half. The winner's row is looked up meanwhile, so that it is there when the flit goes.

    A flit is charged in the two cycles after it, in which nothing is decided from what it changes. Reset: that of
    `VlTables`.
    """

    def __init__(
        self, *, vls: int, control_vl: int = -1, entries: int = 64, pointer: Literal["fast", "slow"] = "fast"
    ) -> None:
        name = type(self).__name__
        if not 1 <= vls <= 16:
            raise ConfigError(f"{name}: vls = {vls}: 1 to 16")
        if not -1 <= control_vl < vls:
            raise ConfigError(f"{name}: control_vl = {control_vl}: a VL from 0 to {vls - 1}, or -1 for none")
        if not 1 <= entries <= 64:
            raise ConfigError(f"{name}: entries = {entries}: 1 to 64")
        if pointer not in ("fast", "slow"):
            raise ConfigError(f"{name}: pointer = {pointer!r}: one of fast, slow")
        self.vls, self.control_vl, self.entries, self.pointer = vls, control_vl, entries, pointer
        super().__init__(
            {
                "requests": In(vls),
                "drop": In(1),
                "grant": Out(vls),
                "decided": Out(1),
                "advance": In(1),
                "table": Out(TableSignature(vls=vls, entries=entries)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slow = self.pointer == "slow"
        m.submodules.tables = self._tables = VlTables(
            vls=self.vls, entries=self.entries, sums=not slow, registered=True
        )
        wiring.connect(m, wiring.flipped(self.table), self._tables.table)
        state = self._state()
        limit_reached = Signal()
        asked = self._ask(m, limit_reached)
        choice = self._choose(m, state, asked)
        self._commit(m, state, asked, choice, limit_reached)
        return m

    def _by_level(self, name: str, *, init: int = 0) -> list[Signal]:
        """A bit a VL for the low table, and for the high one."""
        return [Signal(self.vls, name=f"{name}_{level}", init=init) for level in ("low", "high")]

    def _state(self) -> SimpleNamespace:
        """The registers of `TwoLevelArbiter`, under the same names."""
        everyone = (1 << self.vls) - 1
        return SimpleNamespace(
            has_share=self._by_level("has_share"),
            last_unit=self._by_level("last_unit"),
            whole=self._by_level("whole"),
            fresh=self._by_level("fresh", init=everyone),
            turn=self._by_level("turn"),
            opened=self._by_level("open"),
            places=[
                [Signal(len(self._tables.place), name=f"place_{level}_{v}") for v in range(self.vls)]
                for level in ("low", "high")
            ],
            above=Signal(self.vls, name="above"),
        )

    def _ask(self, m: Module, limit_reached: Signal) -> SimpleNamespace:
        """The first registers: who asks. They are filled while `opens`; `age` counts the cycles since."""
        tables = self._tables
        opens, age, control = Signal(init=1), Signal(range(_SETTLED + 1)), Signal()
        data, high, any_low, listed = Signal(self.vls), Signal(), Signal(), Signal()
        wants, now = self._by_level("wants"), self._by_level("now_wants")
        requests: Value = self.requests
        if self.control_vl >= 0:
            requests = requests & ~(1 << self.control_vl)
        m.d.comb += [now[i].eq(requests & tables.listed[i]) for i in range(2)]
        with m.If(opens):
            m.d.sync += [
                data.eq(requests),
                wants[0].eq(now[0]),
                wants[1].eq(now[1]),
                high.eq(now[1].any() & ~(limit_reached & now[0].any())),
                any_low.eq(now[0].any()),
                listed.eq(now[0].any() | now[1].any()),
            ]
            if self.control_vl >= 0:
                m.d.sync += control.eq(self.requests[self.control_vl])
        settled, restarts = Signal(), Signal()
        m.d.comb += settled.eq(age == _SETTLED)
        with m.If(self.advance | self.drop | restarts):
            m.d.sync += [opens.eq(1), age.eq(0), self.decided.eq(0)]
        with m.Elif(opens & self.requests.any()):
            m.d.sync += [opens.eq(0), age.eq(0)]
        with m.Elif(~settled):
            m.d.sync += [age.eq(age + 1), self.decided.eq(~opens & (age == _SETTLED - 1))]
        return SimpleNamespace(
            data=data,
            wants=wants,
            high=high,
            any_low=any_low,
            listed=listed,
            control=control,
            settled=settled,
            restarts=restarts,
        )

    def _choose(self, m: Module, state: SimpleNamespace, asked: SimpleNamespace) -> SimpleNamespace:
        """The other registers up to `grant`. Returns those that the bookkeeping looks at."""
        vls, tables, high = self.vls, self._tables, asked.high
        # The second ones: candidates and places. Both levels are worked out; the one that is served comes last.
        first_now = Signal(vls)
        candidates, holder, pool = (Signal(vls, name=name) for name in ("candidates", "holder", "pool"))
        fresh_frame, fresh_pass = Signal(), Signal()
        levels = []
        for i in range(2):
            wanted = asked.wants[i]
            chosen = wanted & state.has_share[i]
            turn = wanted & state.turn[i]
            if self.pointer == "slow":
                levels.append((~chosen.any(), ~chosen.any(), Mux(chosen.any(), chosen, wanted), turn))
                continue
            in_pass = chosen & state.opened[i]
            ends_pass = ~chosen.any() | (~in_pass.any() & ~turn.any())
            first = Mux(in_pass.any(), in_pass, Mux(chosen.any(), chosen, wanted))
            levels.append((~chosen.any(), ends_pass, first, turn))
        for register, low, served in zip((fresh_frame, fresh_pass, candidates, holder), *levels, strict=True):
            m.d.sync += register.eq(Mux(high, served, low))
        m.d.comb += first_now.eq(Mux(high, state.fresh[1], state.fresh[0]))
        later = asked.data & state.above
        m.d.sync += pool.eq(Mux(later.any(), later, asked.data))
        places, nows = [], []
        for v in range(vls):
            now = Signal(len(tables.place), name=f"now_place_{v}")
            place = Signal(len(tables.place), name=f"next_{v}")
            first = Mux(high, tables.first[1][v], tables.first[0][v])
            kept = Mux(high, state.places[1][v], state.places[0][v])
            m.d.comb += now.eq(Mux(first_now[v], first, kept))
            m.d.sync += place.eq(now)
            nows.append(now)
            places.append(place)

        # The third and the fourth ones: the contest, from round to round.
        contest: list[_Entrant] = [(candidates[v], place, candidates[v]) for v, place in enumerate(places)]
        sooner = self._compared(m, nows, "first", register=True)
        rounds = max(1, (vls - 1).bit_length())
        half = (rounds + 1) // 2
        for number in range(1, rounds + 1):
            contest = _round(m, contest, sooner, f"{number}")
            if number == half:
                sooner = self._compared(m, [place for _, place, _ in contest], f"{number}", register=True)
                contest = [_kept(m, one, f"{number}_{i}") for i, one in enumerate(contest)]
            elif number < rounds:
                sooner = self._compared(m, [place for _, place, _ in contest], f"{number}", register=False)
        _, place, earliest = contest[0]
        has_holder, holds, others = Signal(), Signal(vls), Signal(vls)
        holder_place = Signal(len(tables.place))
        m.d.sync += [
            has_holder.eq(holder.any()),
            holds.eq(holder),
            holder_place.eq(reduce(or_, (Mux(holder[v], places[v], 0) for v in range(vls)))),
            others.eq(lowest_bit(pool)),
        ]
        data_grant = Mux(asked.listed, Mux(has_holder, holds, earliest), others)
        if self.control_vl >= 0:
            data_grant = Mux(asked.control, 1 << self.control_vl, data_grant)
        m.d.sync += self.grant.eq(data_grant)
        # Looked up on the way into the last registers, the row is there when they are.
        m.d.comb += [tables.place.eq(Mux(has_holder, holder_place, place)), tables.place_high.eq(high)]
        return SimpleNamespace(fresh_frame=fresh_frame, fresh_pass=fresh_pass)

    def _compared(self, m: Module, places: Sequence[Value], name: str, *, register: bool) -> list[Signal]:
        """For each pair of places whether the second one comes first; a register if `register`."""
        found = []
        for i in range(len(places) // 2):
            sooner = Signal(name=f"sooner_{name}_{i}")
            comparison = sooner.eq(places[2 * i + 1] < places[2 * i])
            if register:
                m.d.sync += comparison
            else:
                m.d.comb += comparison
            found.append(sooner)
        return found

    def _commit(
        self,
        m: Module,
        state: SimpleNamespace,
        asked: SimpleNamespace,
        choice: SimpleNamespace,
        limit_reached: Signal,
    ) -> None:
        """The bookkeeping of a flit that goes, and its charge in the two cycles after."""
        vls, slow, tables, grant = self.vls, self.pointer == "slow", self._tables, self.grant
        everyone = (1 << vls) - 1
        goes, swap, used_up = Signal(), Signal(), Signal()
        m.d.comb += [
            goes.eq(self.advance & ~asked.control),
            swap.eq(tables.pending & asked.settled & (choice.fresh_frame | tables.overdue)),
            tables.swap.eq(swap),
            asked.restarts.eq(swap),
        ]
        served, served_high, charge, moved = Signal(vls), Signal(), Signal(), Signal()
        vl_bits = max(1, (vls - 1).bit_length())
        served_vl = Signal(vl_bits)
        near = self._charge(m, state, served, served_high, served_vl, charge, moved)
        for i in range(2):
            mine = Mux(served_high == i, served, 0)
            wraps, steps = Signal(vls, name=f"wraps_{i}"), Signal(vls, name=f"steps_{i}")
            closes, begun = Signal(vls, name=f"closes_{i}"), Mux(tables.following_single, steps, 0)
            level = (asked.high if i else ~asked.high & asked.any_low) & goes
            begins, passes = level & choice.fresh_frame, level & choice.fresh_pass
            late = Mux(charge & (served_high == i) & (~moved if slow else 1), served, 0)
            m.d.comb += [
                wraps.eq(Mux(moved & tables.last, mine, 0)),
                steps.eq(Mux(moved & ~tables.last, mine, 0)),
                closes.eq(
                    Mux(level, grant & Mux(choice.fresh_frame, tables.single[i], state.last_unit[i]), 0)
                ),
            ]
            with m.If(closes.any()):
                m.d.comb += used_up.eq(1)
            last_unit = state.last_unit[i] | Mux(near, mine, 0)
            if slow:
                last_unit = (state.last_unit[i] & ~steps) | begun | Mux(near, mine, 0)
            now_fresh = (state.fresh[i] & ~steps) | wraps
            has_share = state.has_share[i] & ~wraps if slow else state.has_share[i]
            m.d.sync += [
                state.last_unit[i].eq(Mux(begins, tables.single[i], last_unit)),
                state.whole[i].eq(Mux(begins, everyone, (state.whole[i] & ~late) | (closes if slow else 0))),
                state.has_share[i].eq(Mux(begins, tables.listed[i], has_share) & ~(0 if slow else closes)),
                state.fresh[i].eq(Mux(passes, everyone, now_fresh | (0 if slow else closes))),
            ]
            for v in range(vls):
                with m.If(steps[v]):
                    m.d.sync += state.places[i][v].eq(tables.following)
            if slow:
                with m.If(level):
                    m.d.sync += state.turn[i].eq(Mux(closes.any(), 0, grant))
            else:
                m.d.sync += state.opened[i].eq(Mux(passes, everyone, state.opened[i] & ~wraps))
            with m.If(swap):
                m.d.sync += [state.has_share[i].eq(0), state.fresh[i].eq(everyone), state.turn[i].eq(0)]
        m.d.sync += [
            charge.eq(goes & asked.listed),
            moved.eq(goes & asked.listed & ~swap & (used_up if slow else ~used_up)),
        ]
        sent = Signal(8)
        m.d.comb += limit_reached.eq((tables.limit != NO_LIMIT) & sent.any() & (sent >= tables.limit))
        with m.If(goes):
            number = Cat(Cat(*(grant[v] for v in range(vls) if v >> bit & 1)).any() for bit in range(vl_bits))
            m.d.sync += [served.eq(grant), served_vl.eq(number), served_high.eq(asked.high)]
            with m.If(~asked.listed):
                # -(2 * x) has the bits above the granted one.
                m.d.sync += state.above.eq(~(grant << 1) + 1)
            with m.If(~asked.high):
                m.d.sync += sent.eq(0)
            with m.Elif(~sent.all()):
                m.d.sync += sent.eq(sent + 1)

    def _charge(
        self,
        m: Module,
        state: SimpleNamespace,
        served: Signal,
        served_high: Signal,
        served_vl: Signal,
        charge: Signal,
        moved: Signal,
    ) -> Value:
        """Takes a flit off the account of its VL: read in the cycle after it, written in the one after that.

        Returns, in the latter, whether at most a flit is left of the account that was charged.
        """
        slow, tables = self.pointer == "slow", self._tables
        share = tables.weight if slow else tables.share
        m.submodules.left = left = memory.Memory(
            shape=unsigned(len(share)), depth=2 << len(served_vl), init=[]
        )
        read, write = left.read_port(domain="comb"), left.write_port()
        served_whole = (served & Mux(served_high, state.whole[1], state.whole[0])).any()
        if not slow:
            m.d.comb += [tables.select_vl.eq(served_vl), tables.select_high.eq(served_high)]
        before, charges, goes_on = Signal(len(share)), Signal(), Signal()
        m.d.sync += [
            before.eq(Mux(served_whole, share, read.data)),
            charges.eq(charge),
            goes_on.eq(moved if slow else 0),
        ]
        m.d.comb += [
            read.addr.eq(Cat(served_vl, served_high)),
            write.addr.eq(read.addr),
            write.data.eq(before - 1),
            write.en.eq(charges),
        ]
        return charges & ~goes_on & ((before == 1) | (before == 2))


_Entrant = tuple[Value, Value, Value]
"""One in the contest: whether it takes part, its place, and who it is, one-hot."""


def _round(m: Module, contest: list[_Entrant], sooner: list[Signal], name: str) -> list[_Entrant]:
    """The winners of the pairs, whose places have been compared, and the one that has no rival."""
    winners: list[_Entrant] = []
    for i, ((any_a, place_a, hot_a), (any_b, place_b, hot_b)) in enumerate(
        zip(contest[::2], contest[1::2], strict=False)
    ):
        later = Signal(name=f"later_{name}_{i}")
        m.d.comb += later.eq(any_b & (~any_a | sooner[i]))
        hot = Cat(Mux(later, 0, hot_a)[: len(hot_a)], Mux(later, hot_b, 0)[: len(hot_b)])
        winners.append((any_a | any_b, Mux(later, place_b, place_a), hot))
    return winners + contest[len(winners) * 2 :]


def _kept(m: Module, one: _Entrant, name: str) -> Any:
    """An entrant in registers."""
    kept = []
    for value, part in zip(one, ("asks", "place", "hot"), strict=True):
        register = Signal(len(value), name=f"{part}_{name}")
        m.d.sync += register.eq(value)
        kept.append(register)
    return tuple(kept)
