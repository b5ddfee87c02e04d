"""Counters of blocks that no elaborated system of `test_counters.py` has, taken over their wraps.

A counter of many bits is set near its end: a register may be written in Amaranth's simulator.
"""

import random

import pytest
from amaranth import Module, Signal, Value
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.fault_link import FAULT_COUNTS, FaultKind, FaultLink, FaultSetup
from lanikai.hdl.link_guard import GUARD_BITS, ReceiveGuard, add_up
from lanikai.hdl.link_restart import ReceiveRestart, TransmitRestart
from lanikai.hdl.monitors import StreamMonitor, monitor
from lanikai.hdl.router.router import DROPPED_BITS, Router
from support.hdl.counter_search import assigns

GUARDED = LinkConfig(flit_bits=32, vls=2, restart=True, guard_cycles=8)
LAST = (1 << GUARD_BITS) - 1


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


class Sums(wiring.Component):
    """A sum of 5 bits of two counts of 3 bits."""

    def __init__(self):
        super().__init__({"counts": In(3).array(2), "total": Out(5)})

    def elaborate(self, platform):
        m = Module()
        add_up(m, self.total, list(self.counts))
        return m


def test_sums_of_narrower_counts_go_round():
    rng, dut = random.Random(1), Sums()

    async def bench(context):
        counts, total = [0, 0], 0
        for _ in range(200):
            steps = [rng.randrange(8), rng.randrange(8)]
            total += sum(steps)
            for i, step in enumerate(steps):
                counts[i] += step
                context.set(dut.counts[i], counts[i] % 8)
            await context.tick()
            assert context.get(dut.total) == total % 32
        assert total > 10 * 32

    simulate(dut, bench)


def test_flits_refused_go_round():
    dut = ReceiveGuard(GUARDED)

    async def bench(context):
        context.set(dut.refused, LAST - 1)
        context.set(dut.valid, 1)
        context.set(dut.full, 3)
        found = []
        for _ in range(4):
            await context.tick()
            found.append(context.get(dut.refused))
        assert found == [LAST, 0, 1, 2]

    simulate(dut, bench)


@pytest.mark.parametrize("half", [TransmitRestart, ReceiveRestart])
def test_links_begun_anew_go_round(half):
    """The other end answers: a receiver is down while the transmitter is, a transmitter for a while."""
    dut = half(GUARDED)
    level, answer = (dut.restart, dut.peer) if half is TransmitRestart else (dut.credit_restart, dut.restart)

    async def bench(context):
        async def settle():
            for cycle in range(60):
                context.set(answer, context.get(level) & (half is TransmitRestart or cycle < 30))
                await context.tick()
            assert not context.get(level)

        await settle()
        context.set(dut.begun_anew, LAST - 1)
        found = []
        for _ in range(3):
            context.set(dut.breach, 1)
            await context.tick()
            context.set(dut.breach, 0)
            found.append(context.get(dut.begun_anew))
            await settle()
        assert found == [LAST, 0, 1]

    simulate(dut, bench)


ALL_ONES = (1 << 32) - 1


def test_what_a_failing_link_counts_goes_round():
    dut = FaultLink(LinkConfig(flit_bits=32, vls=2))

    async def bench(context):
        context.set(Value.cast(dut.control), FaultSetup(kind=FaultKind.DEAD).word())
        for name, _ in FAULT_COUNTS:
            context.set(dut.counts[name], ALL_ONES)
        context.set(dut.rx.valid, 1)
        context.set(dut.rx.payload.head, 1)
        context.set(dut.tx.credit_valid, 1)
        for _ in range(2):
            await context.tick()
        found = {name: context.get(dut.counts[name]) for name, _ in FAULT_COUNTS}
        counted = {"flits", "dropped", "packets_hit", "credits_lost", "cycles"}
        assert found == {name: 1 if name in counted else ALL_ONES for name in found}

    simulate(dut, bench)


def test_the_cycle_of_a_message_goes_round(monkeypatch):
    monkeypatch.setattr(monitor, "CYCLE_BITS", 3)

    class Watched(wiring.Component):
        """A stream of one bit, watched."""

        def __init__(self):
            super().__init__({"valid": In(1)})

        def elaborate(self, platform):
            m = Module()
            m.submodules.monitor = one = StreamMonitor(1)
            m.d.comb += one.valid.eq(self.valid)
            one.stop(m, "x")
            return m

    dut = Watched()

    async def bench(context):
        context.set(dut.valid, 1)
        await context.tick().repeat(9)
        context.set(dut.valid, 0)
        for _ in range(2):
            await context.tick()

    with pytest.raises(AssertionError, match=r"valid_dropped .*, cycle 1$"):
        simulate(dut, bench)


def test_packets_that_a_pipelined_router_drops_go_round():
    link = LinkConfig(flit_bits=32, vls=2)
    dut = Router(RouterConfig(link=link, ports=3, input_buffer_flits=4, pipelined=True, routing="source"))

    async def bench(context):
        context.set(dut.dropped, (1 << DROPPED_BITS) - 1)
        context.set(dut.connected, 1)
        flit = dut.rx[0].payload
        for _ in range(2):
            context.set(flit.data, 1 << 8)
            context.set(flit.head, 1)
            context.set(flit.tail, 1)
            context.set(dut.rx[0].valid, 1)
            await context.tick()
        context.set(dut.rx[0].valid, 0)
        await context.tick().repeat(20)
        assert context.get(dut.dropped) == 1

    simulate(dut, bench)


def test_a_fault_that_is_over_does_not_come_back():
    """The clock of faults stands still at its end."""
    dut = FaultLink(LinkConfig(flit_bits=32, vls=2))
    fragment = Fragment.get(dut, None)
    targets = (one.lhs for one in assigns(fragment.statements["sync"]))
    now = next(one for one in targets if isinstance(one, Signal) and one.name == "now")

    async def bench(context):
        context.set(Value.cast(dut.control), FaultSetup(kind=FaultKind.DEAD, length=2).word())
        found = []
        for cycle in range(8):
            if cycle == 3:
                context.set(now, ALL_ONES - 1)
            await context.tick()
            found.append(context.get(dut.counts.cycles))
        assert found == [1, 2, 2, 2, 2, 2, 2, 2]

    simulate(fragment, bench)
