"""Every registered routing function: hardware and twin say the same, and a twin that is wrong is found out."""

import os

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.router.routing.choice.odd_even import OddEvenRouting
from lanikai.hdl.router.routing.choice.west_first import WestFirstRouting
from lanikai.hdl.router.routing.dimension_order import DimensionOrderRouting
from lanikai.hdl.router.routing.source import SourceRouting
from lanikai.hdl.router.routing.table import TableRouting
from lanikai.hdl.router.routing.torus import TorusRouting
from support.hdl import routing_twin

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))


@pytest.fixture
def twin():
    print(f"seed {SEED}")
    return routing_twin


@pytest.mark.parametrize("name", sorted(ROUTING))
def test_hardware_and_twin_say_the_same(twin, name):
    """The cases are random headers, positions, tables and VLs at every input port, and every way of some networks."""
    assert twin.hold(ROUTING[name], name, seed=SEED) >= 6 * 300


@pytest.mark.parametrize("name", sorted(ROUTING))
def test_the_same_with_a_management_port(twin, name):
    """Every other port is one higher. Only functions that need pairs of VLs are let off, as the control VL is alone,
    and adaptive ones, which would not keep control packets in order."""
    if not twin.networks_for(ROUTING[name], name, management=True):
        assert ROUTING[name].changes_vl
        return
    assert twin.hold(ROUTING[name], name, seed=SEED, headers=50, management=True) >= 6 * 50


def test_nodes_beyond_a_table_are_none_of_its_rows():
    """A table of 16 rows, whose row 0 would be that of node 16 as well."""
    config = routing_twin.router_for(TableRouting, "table").replace(forwarding_entries=16)
    dut = TableRouting(config, in_port=0)

    async def bench(ctx):
        for node, write in ((0, 1), (16, 1), (17, 1), (3, 0)):
            row = {"write": write, "node": node, "port": 1 if node == 0 else 2, "known": 1}
            for name, value in row.items():
                ctx.set(getattr(dut.table, name), value)
            await ctx.tick()
        for node, ports in ((0, 0b10), (1, 0), (3, 0), (16, 0), (17, 0)):
            ctx.set(dut.route, node)
            await ctx.delay(1e-9)
            assert ctx.get(dut.port) == ports

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


class NamesAnyPort(SourceRouting):
    """A mutant that takes a hop beyond the ports for a port."""

    @classmethod
    def decide(cls, config, arrival):
        return arrival.route, arrival.vl


class YFirst(DimensionOrderRouting):
    """A mutant that goes y before x."""

    @classmethod
    def decide(cls, config, arrival):
        x, y, here = arrival.route % 32, arrival.route >> 5, arrival.position
        column = super().decide(config, arrival._replace(route=here["x"] | y << 5))
        return column if y != here["y"] and x <= here["last_x"] else super().decide(config, arrival)


class NoEdge(DimensionOrderRouting):
    """A mutant that sends to a destination outside the mesh."""

    @classmethod
    def decide(cls, config, arrival):
        return super().decide(config, arrival._replace(position=dict(arrival.position, last_x=31, last_y=31)))


class KnowsAll(TableRouting):
    """A mutant that takes port 0 for a row that is not known."""

    @classmethod
    def decide(cls, config, arrival):
        return super().decide(config, arrival._replace(rows=[max(0, row) for row in arrival.rows]))


class KeepsVl(TorusRouting):
    """A mutant without a dateline."""

    @classmethod
    def decide(cls, config, arrival):
        return super().decide(config, arrival)[0], arrival.vl & ~1


class ForgetsTheDateline(TorusRouting):
    """A mutant that goes back on the lower VL after the dateline's own link."""

    @classmethod
    def decide(cls, config, arrival):
        return super().decide(config, arrival._replace(vl=arrival.vl & ~1))


class TurnsOnTheUpperVl(TorusRouting):
    """A mutant that turns on the upper VL: a packet that crossed x's dateline keeps it on y, as the input port is not
    looked at."""

    @classmethod
    def decide(cls, config, arrival):
        port, vl = super().decide(config, arrival)
        return port, vl | (arrival.vl & 1 if port else 0)


class HalfwayDown(TorusRouting):
    """A mutant that goes down where both ways round are as long."""

    @classmethod
    def decide(cls, config, arrival):
        port, vl = super().decide(config, arrival)
        x, here = arrival.route % 32, arrival.position
        if port == 1 and 2 * ((x - here["x"]) % (here["last_x"] + 1)) == here["last_x"] + 1:
            port = 2
        return port, vl


class NorthBeforeWest(WestFirstRouting):
    """A mutant that may go along y before x - 1."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        return True, True


class EvenOdd(OddEvenRouting):
    """A mutant whose columns are exchanged."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        here = dict(arrival.position, x=arrival.position["x"] + 1)
        return super().allowed_axes(x + 1, y, arrival._replace(position=here), came)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("source", NamesAnyPort),
        ("dimension_order", YFirst),
        ("dimension_order", NoEdge),
        ("table", KnowsAll),
        ("torus", KeepsVl),
        ("torus", ForgetsTheDateline),
        ("torus", TurnsOnTheUpperVl),
        ("torus", HalfwayDown),
        ("west_first", NorthBeforeWest),
        ("odd_even", EvenOdd),
    ],
)
def test_a_twin_that_is_wrong_is_found_out(twin, monkeypatch, name, mutant):
    """The hardware stays, the twin is the mutant's. Networks are made with the right twin, as a wrong one may be
    refused there."""
    right = twin.networks_for(ROUTING[name], name)
    monkeypatch.setattr(twin, "networks_for", lambda *_: right)
    with pytest.raises(AssertionError, match="twin"):
        twin.hold(mutant, name, seed=SEED)
