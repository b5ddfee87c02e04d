"""PowerHerd: a router keeps to its own energy budget by stalling its switch allocation (Shang, Peh and Jha 2003)."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from .crossbar import CrossbarStage

__all__ = ["PowerHerd", "add_power_herd", "power_members", "power_signals"]


class PowerHerd(wiring.Component):
    """The energy credits of a router, and what it lends to its neighbours and borrows from them.

    A flit that crosses to output p takes `RouterConfig.power_weights[p]` credits, for `power_window_cycles` W cycles.
    The switch is open while the credits left suffice for a flit to every output. So in any W cycles in a row the flits
    that cross take at most `power_budget`, plus what is borrowed, less what is lent.

    Sharing: a router that has stalled asks all its neighbours. One that has `power_share` credits to spare, and a
    flit's to every output besides, lends them to one neighbour that asks, the lowest port first. The borrower has them
    for W cycles, the lender misses them for 2 W. Each lends to a neighbour once at a time. So in any W cycles the flits
    that cross in all routers together take at most the sum of the budgets.

    The wires between neighbours are registers of their sender. `Network` joins them port to port. Simulations of blocks
    that are compiled once each (`sim/build/power_wires.py`) do the same to the cycle.

    Members (P ports):

    - `crossed` (in, P): a flit crosses to this output.
    - `waits` (in): a flit could cross but for the budget.
    - `open` (out): flits may cross; from registers.
    - `needs` (out), `gives` (out, P): it asks; it has lent to the neighbour at that port, in the cycle before.
    - `neighbour_needs`, `neighbour_gives` (in, P): those of the neighbours. Low where there is none.
    - `used` (out, 32): credits of the flits that crossed in the last W cycles.
    - `stalls` (out, 32): cycles in which a flit waited for the budget, modulo 2^32.
    - `lent`, `borrowed` (out, P): a share is lent to, or borrowed from, the neighbour at that port.
    - `quiet` (out): no credit is in use, lent or borrowed.

    Latency: a flit that crosses in cycle t counts from t + 1 to t + W. The lender misses what it lends in cycle t from
    t + 1 to t + 2 W, and the borrower has it from t + 2 to t + W + 1.
    Throughput: a flit to every output in a cycle, as far as the budget lasts.
    Longest wait: within W cycles of its closing the switch is open again, whatever is lent. `RouterConfig` asks for a
    budget of a flit to every output and a share lent to every neighbour.

    Departures from the document, of which only the published abstract and yum-2006 were at hand:

    - The credits are counted exactly as flits cross, by a price a flit. The document has a power model in each router.
    - What is lent is of one size, and to direct neighbours alone; the document's own rule of sharing is not known here.
    - A flit's other energy (its buffer writes before, its reads and its link after) is charged as it crosses.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        ports = config.ports
        super().__init__(
            {
                "crossed": In(ports),
                "waits": In(1),
                "open": Out(1),
                "needs": Out(1),
                "gives": Out(ports),
                "neighbour_needs": In(ports),
                "neighbour_gives": In(ports),
                "used": Out(32),
                "stalls": Out(32),
                "lent": Out(ports),
                "borrowed": Out(ports),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, ports = self._config, range(self._config.ports)
        window, share, weights = config.power_window_cycles, config.power_share, config.initial_power_weights
        worst = sum(weights)

        # A ring of the last W cycles. A memory has no reset: until it has gone round, its rows do not count.
        m.submodules.ring = ring = memory.Memory(shape=unsigned(worst.bit_length()), depth=window, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        place, round_once = Signal(range(window)), Signal()
        energy, gone = Signal(range(worst + 1)), Signal(range(worst + 1))
        last = place == window - 1
        # Without a credit in use all rows that count are 0: the ring stands still.
        with m.If((self.used != 0) | (energy != 0)):
            m.d.sync += [place.eq(Mux(last, 0, place + 1)), round_once.eq(round_once | last)]
        m.d.comb += [
            energy.eq(sum(Mux(self.crossed[p], weights[p], 0) for p in ports)),
            write.addr.eq(place),
            write.data.eq(energy),
            write.en.eq(1),
            read.addr.eq(place),
            gone.eq(Mux(round_once, read.data, 0)),
        ]
        m.d.sync += self.used.eq(self.used + energy - gone)

        lent = [Signal(range(2 * window + 1), name=f"lent_{p}") for p in ports]
        borrowed = [Signal(range(window + 1), name=f"borrowed_{p}") for p in ports]
        limit, needed, lends = Signal(32), Signal(32), Signal(config.ports)
        m.d.comb += [
            limit.eq(config.power_budget + share * sum(count != 0 for count in borrowed)),
            needed.eq(self.used + worst + share * sum(count != 0 for count in lent)),
            self.open.eq(needed <= limit),
            self.lent.eq(Cat(*(count != 0 for count in lent))),
            self.borrowed.eq(Cat(*(count != 0 for count in borrowed))),
            self.quiet.eq(~((self.used != 0) | self.lent.any() | self.borrowed.any() | self.needs)),
        ]
        with m.If(self.waits & ~self.open):
            m.d.sync += self.stalls.eq(self.stalls + 1)
        m.d.sync += self.needs.eq(self.waits & ~self.open)
        if share:
            may = self.neighbour_needs & Cat(*(count == 0 for count in lent))
            # It spares a share beyond this cycle's flits, and the flits of a cycle more.
            with m.If(needed + share + worst <= limit):
                m.d.comb += lends.eq(may & (~may + 1))
        m.d.sync += self.gives.eq(lends)
        for p in ports:
            for count, starts, cycles in (
                (lent[p], lends[p], 2 * window),
                (borrowed[p], self.neighbour_gives[p], window),
            ):
                with m.If(starts):
                    m.d.sync += count.eq(cycles)
                with m.Elif(count != 0):
                    m.d.sync += count.eq(count - 1)
        return m


def power_members(config: RouterConfig) -> dict[str, Any]:
    """Members of a router with `RouterConfig.power_budget`: the wires to its neighbours, and counts; {} without.

    `power_needs`, `power_gives`, `power_used`, `power_stalls` (out) and `power_neighbour_needs`,
    `power_neighbour_gives` (in) are those of `PowerHerd`. `Network` joins neighbours' wires port to port. Left low,
    nothing is shared.
    """
    if not config.power_budget:
        return {}
    ports = config.ports
    return {
        "power_needs": Out(1),
        "power_gives": Out(ports),
        "power_neighbour_needs": In(ports),
        "power_neighbour_gives": In(ports),
        "power_used": Out(32),
        "power_stalls": Out(32),
    }


def add_power_herd(m: Module, router: Any, crossbar: CrossbarStage) -> list[Value]:
    """Adds the energy credits of a router with `power_members`. Returns what keeps the router from being quiet."""
    config: RouterConfig = router.config
    if not config.power_budget:
        return []
    m.submodules.power_herd = herd = PowerHerd(config)
    for name in ("lent", "borrowed"):
        shown = Signal(config.ports, name=f"power_{name}")
        m.d.comb += shown.eq(getattr(herd, name))
    m.d.comb += [
        herd.crossed.eq(Cat(*crossbar.write_valid)),
        herd.waits.eq(crossbar.waits),
        crossbar.closed.eq(~herd.open),
        router.power_needs.eq(herd.needs),
        router.power_gives.eq(herd.gives),
        herd.neighbour_needs.eq(router.power_neighbour_needs),
        herd.neighbour_gives.eq(router.power_neighbour_gives),
        router.power_used.eq(herd.used),
        router.power_stalls.eq(herd.stalls),
    ]
    return [~herd.quiet]


def power_signals(config: RouterConfig, *, name: str = "router") -> list[tuple[str, str]]:
    """(Verilog module, variable) of the energy credits of a router converted as `name`; none without them.

    The variables are `power_` and the names of members of `PowerHerd`: `used`, `stalls`, `lent`, `borrowed`.
    """
    if not config.power_budget:
        return []
    return [(name, f"power_{one}") for one in ("used", "stalls", "lent", "borrowed")]
