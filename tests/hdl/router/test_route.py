"""Stage 2 by itself: the choice of the header that is routed."""

from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.packet import Kind
from lanikai.hdl.router.route import RouteStage


def test_the_control_vl_is_routed_first_and_takes_nobodys_turn():
    """All VLs have a header in every cycle. VL 15's comes second, and again after the others' first four."""
    link = LinkConfig(flit_bits=32, vls=16, hop_bits=2)
    dut = RouteStage(RouterConfig(link=link, ports=3), in_port=0)
    order = []

    async def bench(ctx):
        ctx.set(dut.connected, 0b111)
        ctx.set(dut.header, {"head": 1, "route": 1, "kind": Kind.PROBE.value})
        for cycle in range(10):
            ctx.set(dut.non_empty, 0xFFFF if cycle in (1, 6) else 0x7FFF)
            await ctx.delay(1e-8)
            select = ctx.get(dut.header_select)
            assert ctx.get(dut.found) == select and ctx.get(dut.found_port) == 0b010
            order.append(select.bit_length() - 1)
            # Its output VL is there at once; the next header of that VL comes when all others had their turn.
            ctx.set(dut.taken, 0x8000)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert order == [0, 15, 1, 2, 3, 4, 15, 5, 6, 7]


def test_the_control_vl_takes_what_is_no_data_whether_refused_or_not():
    """The level of the header at the front is told, for the choice of an output VL."""
    link = LinkConfig(flit_bits=32, vls=16, hop_bits=2)
    dut = RouteStage(RouterConfig(link=link, ports=3), in_port=0)

    async def bench(ctx):
        ctx.set(dut.connected, 0b111)
        for vl, kind, refused, found in (
            (15, Kind.PROBE, 1, True),
            (15, Kind.DATA, 0, False),
            (3, Kind.DATA, 0, True),
            (3, Kind.DATA, 1, False),
        ):
            ctx.set(dut.header, {"head": 1, "route": 1, "kind": kind.value, "service_level": vl - 1})
            ctx.set(dut.non_empty, 1 << vl)
            ctx.set(dut.refused, refused)
            await ctx.delay(1e-8)
            assert ctx.get(dut.found) == found << vl
            assert ctx.get(dut.service_level) == vl - 1
            ctx.set(dut.taken, found << vl)
            ctx.set(dut.done, (not found) << vl)
            await ctx.tick().repeat(2)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
