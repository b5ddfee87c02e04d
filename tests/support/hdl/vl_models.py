"""Plain Python models of the VL arbiters, and the bench that plays them beside the RTL.

A model has `grant(requests, tails)`, the VL or None, and `go(requests, tails, advance)`, the end of the cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from lanikai.hdl.vl_arbiter.base import NO_LIMIT, VlArbiter


def asking(requests: int) -> list[int]:
    return [vl for vl in range(16) if requests >> vl & 1]


def after(candidates: Iterable[int], last: int) -> int:
    """The first candidate above `last`, or else the lowest."""
    return min(candidates, key=lambda vl: (vl <= last, vl))


class RoundRobinModel:
    def __init__(self, vls: int) -> None:
        self.last = vls - 1

    def grant(self, requests: int, tails: int) -> int | None:
        return after(asking(requests), self.last) if requests else None

    def go(self, requests: int, tails: int, advance: int) -> None:
        if advance and requests:
            self.last = self.grant(requests, tails)


class FixedPriorityModel:
    def __init__(self, vls: int) -> None:
        pass

    def grant(self, requests: int, tails: int) -> int | None:
        return min(asking(requests), default=None)

    def go(self, requests: int, tails: int, advance: int) -> None:
        pass


class FcfsModel:
    """The line itself, as a list of VLs."""

    def __init__(self, vls: int, *, by_packet: bool = False) -> None:
        self.line: list[int] = []
        self.by_packet = by_packet

    def join(self, requests: int) -> None:
        self.line = [vl for vl in self.line if requests >> vl & 1]
        self.line += [vl for vl in asking(requests) if vl not in self.line]

    def grant(self, requests: int, tails: int) -> int | None:
        self.join(requests)
        return self.line[0] if self.line else None

    def go(self, requests: int, tails: int, advance: int) -> None:
        self.join(requests)
        if advance and self.line and (not self.by_packet or tails >> self.line[0] & 1):
            self.line.pop(0)


class DeficitModel:
    """Turns with a balance that may go below zero."""

    def __init__(self, vls: int, quanta: list[int] | None = None) -> None:
        self.quanta = quanta or [1] * vls
        self.debt = [0] * vls
        self.last, self.holder, self.balance = vls - 1, None, 0

    def grant(self, requests: int, tails: int) -> int | None:
        if self.holder is not None and requests >> self.holder & 1:
            return self.holder
        return after(asking(requests), self.last) if requests else None

    def go(self, requests: int, tails: int, advance: int) -> None:
        vl = self.grant(requests, tails)
        if vl != self.holder:
            self.holder = None
        if vl is None or not advance:
            return
        if self.holder is None:
            quantum = max(1, self.quanta[vl])
            self.holder, self.balance = vl, quantum - min(self.debt[vl], quantum - 1)
        self.balance = max(self.balance - 1, -255)
        self.debt[vl] = max(0, -self.balance)
        self.last = vl
        if tails >> vl & 1 and self.balance <= 0:
            self.holder = None


class TwoLevelModel:
    """Model of the two-level arbiter. Tables are lists of (VL, weight), looked at entry by entry. `weight_flits` and
    `limit_flits` are as in `TwoLevelArbiter`."""

    def __init__(self, vls, *, pointer="fast", by_packet=False, weight_flits=1, limit_flits=1) -> None:
        self.vls, self.slow, self.by_packet = vls, pointer == "slow", by_packet
        self.weight_flits, self.limit_flits = weight_flits, limit_flits
        self.last_other = vls - 1
        self.sent_high = 0
        self.pending, self.overdue = None, False
        self.underway = None
        self.turn = [None, None]
        self.load([], [(vl, 1) for vl in range(vls)], NO_LIMIT)

    def load(self, high, low, limit) -> None:
        self.tables = [[(vl, w * self.weight_flits) for vl, w in table if w] for table in (low, high)]
        self.limit = limit
        self.left = [[0] * len(table) for table in self.tables]  # slow: of entries
        self.share = [[0] * self.vls, [0] * self.vls]  # fast: of VLs
        self.taken = [set(), set()]  # fast: entries that had their flit in this pass
        self.turn = [None, None]
        if self.underway:
            self.turn[self.underway[0]] = self.underway[1]

    def look(self, requests: int):
        """(level, entry that goes, what it begins: "frame", "pass" or None), or None if nobody in a table asks."""
        wants = [
            [e for e, (vl, _) in enumerate(table) if requests >> vl & 1 and vl < self.vls]
            for table in self.tables
        ]
        due = self.limit != NO_LIMIT and self.sent_high >= max(1, self.limit * self.limit_flits)
        level = 1 if wants[1] and not (due and wants[0]) else 0 if wants[0] else None
        if level is None:
            return None
        if self.by_packet and self.underway:
            begun, vl = self.underway
            if any(self.tables[begun][e][0] == vl for e in wants[begun]):
                level = begun
        table = self.tables[level]
        if self.slow:
            chosen = [e for e in wants[level] if self.left[level][e]]
            in_pass = chosen
        else:
            chosen = [e for e in wants[level] if self.share[level][table[e][0]]]
            in_pass = [e for e in chosen if e not in self.taken[level]]
        holder = [e for e in wants[level] if table[e][0] == self.turn[level]]
        if holder:
            mine = [e for e in in_pass if e in holder]
            return level, (mine or holder)[0], None if set(chosen) & set(holder) else "frame"
        if in_pass:
            return level, in_pass[0], None
        return (level, chosen[0], "pass") if chosen else (level, wants[level][0], "frame")

    def grant(self, requests: int, tails: int) -> int | None:
        found = self.look(requests)
        if found:
            return self.tables[found[0]][found[1]][0]
        return after(asking(requests), self.last_other) if requests else None

    def go(self, requests: int, tails: int, advance: int) -> None:
        found, vl = self.look(requests), self.grant(requests, tails)
        if advance and vl is not None:
            tail = not self.by_packet or bool(tails >> vl & 1)
            if found:
                self.send(*found, tail)
            else:
                self.last_other = vl
            self.sent_high = self.sent_high + 1 if found and found[0] else 0
            self.underway = (found[0], vl) if found and not tail else None
        if self.pending and (self.overdue or not found or found[2] == "frame"):
            self.load(*self.pending)
            self.pending = None

    def send(self, level, e, begins, tail) -> None:
        vl = self.tables[level][e][0]
        account = self.left[level] if self.slow else self.share[level]
        which = e if self.slow else vl
        if begins == "frame":
            account[:] = [0] * len(account)
            for entry, (lane, weight) in enumerate(self.tables[level]):
                account[entry if self.slow else lane] += weight
        if begins:
            self.taken[level].clear()
        left = max(account[which] - 1, 0)
        if tail:
            left -= left % self.weight_flits
        elif left == 0:
            left = 0.5  # finishes its packet
        account[which] = left
        over = left == 0 if self.slow else tail
        self.turn[level] = None if over else vl
        if tail:
            self.taken[level].add(e)


class ControlFirst:
    """The control VL ahead of any model."""

    def __init__(self, model, control_vl: int) -> None:
        self.model, self.control_vl = model, control_vl

    def grant(self, requests: int, tails: int) -> int | None:
        if self.control_vl >= 0 and requests >> self.control_vl & 1:
            return self.control_vl
        return self.model.grant(requests, tails)

    def go(self, requests: int, tails: int, advance: int) -> None:
        control = 1 << self.control_vl if self.control_vl >= 0 else 0
        self.model.go(requests & ~control, tails, advance and not requests & control)


def ready_cycles(vls: int, entries: int) -> int:
    """Cycles from a commit until the new tables wait for a frame's start."""
    row_bits, entry_bits = max(1, (vls - 1).bit_length()), (entries - 1).bit_length()
    return 2 * (1 << row_bits) + 2 * (1 << entry_bits) + 2


def play(dut: VlArbiter, stimulus, check, *, high=(), low=(), limit=NO_LIMIT, reset_at=None) -> None:
    """Write the tables, wait until they are in use, and then play (requests, tails, advance) a cycle.

    `check(requests, tails, advance, grant)` is called in every cycle. A stimulus may also be (requests, tails, advance,
    writes), `writes` a dictionary of values for the table port in that cycle. In cycle `reset_at` the arbiter is in
    reset.
    """

    domain = ClockDomain("sync")

    async def bench(ctx):
        if high or low:
            await write_tables(ctx, dut, high, low, limit)
        for cycle, (requests, tails, advance, *writes) in enumerate(stimulus):
            ctx.set(domain.rst, cycle == reset_at)
            ctx.set(dut.requests, requests)
            ctx.set(dut.tails, tails)
            ctx.set(dut.advance, advance)
            if dut.has_tables:
                for name in ("write", "commit"):
                    ctx.set(getattr(dut.table, name), 0)
                for name, value in (writes[0] if writes else {}).items():
                    ctx.set(getattr(dut.table, name), value)
            check(requests, tails, advance, ctx.get(dut.grant))
            await ctx.tick()

    # Fixed priority has no state: the clock must not depend on there being some.
    top = Module()
    top.domains.sync = domain
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


async def write_tables(ctx, dut, high, low, limit) -> None:
    """Write and commit both tables with no request standing, and wait until they are in use."""
    await ctx.tick().until(dut.table.ready)
    for level, table in ((1, high), (0, low)):
        for entry, (vl, weight) in enumerate(table):
            for name, value in (
                ("high", level),
                ("entry", entry),
                ("vl", vl),
                ("weight", weight),
                ("write", 1),
            ):
                ctx.set(getattr(dut.table, name), value)
            await ctx.tick()
    ctx.set(dut.table.write, 0)
    ctx.set(dut.table.limit, limit)
    ctx.set(dut.table.commit, 1)
    await ctx.tick()
    ctx.set(dut.table.commit, 0)
    await ctx.tick().until(dut.table.ready)
