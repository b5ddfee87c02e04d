"""The specification of a whole router, by its links alone: what goes in comes out, where, in which order, and when.

Nothing inside of the router is named. So the proof is one of any router with these links.
"""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.monitors import LinkMonitor
from lanikai.hdl.packet import HEADER_LAYOUT

from .harness import Spec

__all__ = ["PORTS", "VLS", "RouterPlay", "configuration", "drains", "faithful"]

PORTS, VLS, DEPTH = 3, 2, 2
HOP_BITS = 2
MARK = slice(0, 2)
"""Bits of every flit that hold its mark: in a header those of the packet's kind, which no router of data looks at."""
DATA_BITS = (0, 1, 8, 9, 10, 11, 31)
"""Bits of a flit's data that are free: its mark, two hops of its route, and the last one."""
HOP = slice(HEADER_LAYOUT["route"].offset, HEADER_LAYOUT["route"].offset + HOP_BITS)
"""Bits of a header flit that name the output port."""


def configuration(**changes: Any) -> RouterConfig:
    """The router that is proved: 3 ports, 2 VLs, buffers of 2 flits, flits of 32 bits, source routes."""
    link = LinkConfig(flit_bits=32, vls=VLS, hop_bits=HOP_BITS)
    sizes: dict[str, Any] = dict(ports=PORTS, input_buffer_flits=DEPTH, output_buffer_flits=DEPTH)
    return RouterConfig(link=link, **(sizes | changes))


def routed_on(flit: Any) -> Value:
    """A flit's data after the router: a header has lost its first hop."""
    start, end = HOP.start, HEADER_LAYOUT["route"].offset + 24
    route = flit.data[start:end]
    return Cat(flit.data[:start], Mux(flit.head, route >> HOP_BITS, route)[: end - start], flit.data[end:])


class RouterPlay:
    """A router `dut` between links whose other ends keep the rules of `LinkMonitor`, and otherwise do what they like.
    `checks_rules`: the router's own rules are asserted.

    - `takes[i][v]`: a flit comes in at port i on VL v; `gives[p][v]`: one goes out.
    - `goal[i][v]`: the port that the flit of `takes` is for; `PORTS` for one that is to be thrown away.
    """

    def __init__(self, component: Any, config: RouterConfig, *, checks_rules: bool = True) -> None:
        self.spec, self.config = Spec(), config
        m = self.spec.m
        m.submodules.dut = self.dut = dut = component(config)
        self.takes, self.gives, self.goal = [], [], []
        for i in range(PORTS):
            rx, tx = dut.rx[i], dut.tx[i]
            self._let_in(i)
            self.spec.inputs(dut, f"tx.{i}.credit_valid", f"tx.{i}.credit_vl")
            for name, link, depth, senders, receivers in (
                (f"into_{i}", rx, config.input_buffer_flits, Assume, Assert),
                (f"from_{i}", tx, dut.credit_flits[i], Assert, Assume),
            ):
                m.submodules[name] = monitor = LinkMonitor(config.link, depth=depth)
                monitor.watch(m, link)
                rules = ((senders, monitor.broken("sender")), (receivers, monitor.broken("receiver")))
                for check, flags in rules:
                    if check is Assume or checks_rules:
                        m.d.comb += [check(~flag) for flag in flags]
            self.takes.append([rx.valid & (rx.payload.vl == v) for v in range(VLS)])
            self.gives.append([tx.valid & (tx.payload.vl == v) for v in range(VLS)])
            goals = []
            hop = rx.payload.data[HOP]
            for v in range(VLS):
                kept, now = Signal(HOP_BITS, name=f"kept_{i}_{v}"), Signal(HOP_BITS, name=f"goal_{i}_{v}")
                m.d.comb += now.eq(Mux(rx.payload.head, hop, kept))
                with m.If(self.takes[i][v]):
                    m.d.sync += kept.eq(now)
                goals.append(now)
            self.goal.append(goals)

    def _let_in(self, i: int) -> None:
        """Any flit, in any cycle. Its data has `DATA_BITS` free ones, the others are 0."""
        spec, rx = self.spec, self.dut.rx[i]
        spec.inputs(
            self.dut, *(f"rx.{i}.{name}" for name in ("valid", "payload.head", "payload.tail", "payload.vl"))
        )
        for bit in DATA_BITS:
            spec.m.d.comb += rx.payload.data[bit].eq(spec.free(1, f"data_{i}_{bit}"))

    def inside(self, p: int, v: int, *, checks: bool = True) -> Signal:
        """The flits that have come in for output p on VL v and not gone out. A proof asserts that it never sinks below
        0: none is made."""
        m = self.spec.m
        count = Signal(5, name=f"inside_{p}_{v}")
        comes = Cat(self.takes[i][v] & (self.goal[i][v] == p) for i in range(PORTS))
        arrived = sum((comes[i] for i in range(PORTS)), Const(0))
        m.d.sync += count.eq(count + arrived - self.gives[p][v])
        if checks:
            m.d.comb += Assert(~self.gives[p][v] | (count != 0))
        return count


def faithful(component: Any, config: RouterConfig) -> Spec:
    """Two flits of one input VL, any, marked one after the other; all other flits have no mark.

    - Each marked flit comes out at most once, after it came in, at its packet's port, on its VL, with its data and
      flags. A header has lost a hop. A flit of a packet without a port never comes out.
    - Of two for one output the first comes out first.
    - No more flits come out of an output VL than came in for it: with the marks, none is made.
    - The router keeps the rules of its links: flits have credits, packets are whole, credits are of flits that came.
    """
    play = RouterPlay(component, config)
    spec, m, dut = play.spec, play.spec.m, play.dut
    who, lane = spec.constant(2, "who"), spec.constant(1, "lane")
    m.d.comb += Assume(who < PORTS)
    word_bits = config.link.flit_bits + 2
    there = [Signal(name=f"there_{k}") for k in (1, 2)]
    gone = [Signal(name=f"gone_{k}") for k in (1, 2)]
    words = [Signal(word_bits, name=f"word_{k}") for k in (1, 2)]
    goals = [Signal(HOP_BITS, name=f"goal_of_{k}") for k in (1, 2)]
    for i in range(PORTS):
        flit = dut.rx[i].payload
        mine = dut.rx[i].valid & (who == i) & (flit.vl == lane)
        marks = [mine & spec.free(1, f"marks_{i}_{k}") for k in (1, 2)]
        m.d.comb += [
            Assume(~marks[0] | ~there[0]),
            Assume(~marks[1] | (there[0] & ~there[1])),
            Assume(flit.data[MARK] == Cat(marks[0], marks[1])),
        ]
        for k in range(2):
            with m.If(marks[k]):
                m.d.sync += [
                    there[k].eq(1),
                    words[k].eq(Cat(routed_on(flit), flit.head, flit.tail)),
                    goals[k].eq(_of(play.goal[i], flit.vl)),
                ]
    for p in range(PORTS):
        flit = dut.tx[p].payload
        for k in range(2):
            out = dut.tx[p].valid & (flit.data[MARK] == k + 1)
            with m.If(out):
                m.d.sync += gone[k].eq(1)
                m.d.comb += [
                    Assert(there[k] & ~gone[k]),
                    Assert(goals[k] == p),
                    Assert(flit.vl == lane),
                    Assert(words[k] == Cat(flit.data, flit.head, flit.tail)),
                ]
                if k:
                    m.d.comb += Assert(gone[0] | (goals[0] != p))
        m.d.comb += Assert(~dut.tx[p].valid | (flit.data[MARK] != 3))
        for v in range(VLS):
            play.inside(p, v)
    m.d.comb += Cover(gone[0] & gone[1] & (goals[0] == goals[1]))
    m.d.comb += Cover(gone[0] & gone[1] & (goals[0] != goals[1]))
    return spec


def _of(values: list[Signal], number: Value) -> Value:
    return Mux(number == 0, values[0], values[1])


def drains(component: Any, config: RouterConfig, *, busy_cycles: int, bound: int) -> Spec:
    """Each input brings a packet at most, of one or two flits, for any output, on any VL, that begins in the first
    `busy_cycles`. Receivers keep what they like until then, and take after that.

    A receiver that takes gives back a credit a cycle for what it has had. A sender ends its packet: after the
    `busy_cycles` it sends the tail, as soon as it has a credit. After `bound` cycles more no flit is inside, and all
    credits are home: every packet has got out.
    """
    play = RouterPlay(component, config, checks_rules=False)
    spec, m, dut = play.spec, play.spec.m, play.dut
    last = busy_cycles + bound
    cycles = Signal(range(last + 1))
    m.d.sync += cycles.eq(Mux(cycles == last, cycles, cycles + 1))
    drain, over = cycles >= busy_cycles, cycles == last
    for i in range(PORTS):
        rx, tx = dut.rx[i], dut.tx[i]
        begun, had = Signal(VLS, name=f"begun_{i}"), Signal(name=f"had_{i}")
        homes = [Signal(2, init=DEPTH, name=f"home_{i}_{v}") for v in range(VLS)]
        owed = [Signal(2, name=f"owed_{i}_{v}") for v in range(VLS)]
        with m.If(rx.valid):
            m.d.sync += had.eq(1)
        for v in range(VLS):
            back = rx.credit_valid & (rx.credit_vl == v)
            paid = tx.credit_valid & (tx.credit_vl == v)
            with m.If(play.takes[i][v]):
                m.d.sync += begun[v].eq(~rx.payload.tail)
            m.d.sync += [
                homes[v].eq(homes[v] + back - play.takes[i][v]),
                owed[v].eq(owed[v] + play.gives[i][v] - paid),
            ]
            m.d.comb += [
                Assert(~over | (homes[v] == DEPTH)),
                Assert(~over | (play.inside(i, v, checks=False) == 0)),
            ]
        can = Cat(begun[v] & (homes[v] != 0) for v in range(VLS))
        m.d.comb += [
            Assume(~rx.valid | ~rx.payload.head | ~had),
            Assume(~rx.valid | rx.payload.head | rx.payload.tail),
            Assume(~drain | ~rx.valid | (~rx.payload.head & rx.payload.tail)),
            Assume(~drain | (rx.valid == can.any())),
            Assume(~drain | (tx.credit_valid == Cat(one != 0 for one in owed).any())),
        ]
    return spec
