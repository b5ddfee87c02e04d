"""Watched components: the first broken rule stops a simulation, in Amaranth and in Verilog, with a message."""

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.monitors.watched import watched
from lanikai.hdl.router.router import Router


class Wire(wiring.Component):
    """A stream that goes on at once, and one that `breaks` may take away."""

    def __init__(self):
        items = stream.Signature(4)
        super().__init__({"i": In(items), "o": Out(items).array(2), "breaks": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o[0].payload.eq(self.i.payload),
            self.o[0].valid.eq(self.i.valid),
            self.o[1].payload.eq(self.i.payload),
            self.o[1].valid.eq(self.i.valid & ~self.breaks),
            self.i.ready.eq(self.o[0].ready & self.o[1].ready),
        ]
        return m


def run(dut, cycles):
    async def bench(context):
        for payload, valid, breaks in cycles:
            context.set(dut.i.payload, payload)
            context.set(dut.i.valid, valid)
            context.set(dut.breaks, breaks)
            await context.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def all_streams(name):
    return {}


def test_a_history_that_keeps_the_rules_runs_through():
    run(watched(Wire(), all_streams), [(3, 1, 0)] * 4)


@pytest.mark.parametrize(
    ("cycles", "message"),
    [
        (
            [(3, 1, 0), (3, 1, 0), (3, 1, 1)],
            "o__1: rule valid_dropped broken by the sender: valid fell .*, cycle 2",
        ),
        (
            [(3, 1, 1), (4, 1, 1)],
            "(i|o__0): rule payload_changed broken by the sender: the item changed .*, cycle 1",
        ),
    ],
)
def test_the_first_broken_rule_stops_the_simulation(cycles, message):
    with pytest.raises(AssertionError, match=message):
        run(watched(Wire(), all_streams), cycles)


def test_an_interface_can_be_left_alone():
    run(watched(Wire(), lambda name: None if name == "o__1" else {}), [(3, 1, 0), (3, 1, 1)])


def test_a_watched_router_has_its_ports_and_a_message_for_each_rule_in_verilog():
    config = RouterConfig(link=LinkConfig(vls=2), ports=2, input_buffer_flits=2, output_buffer_flits=2)
    plain = to_verilog(Router(config), name="router")
    text = to_verilog(watched(Router(config), lambda name: {"depth": 2}), name="router")
    assert text.split(";")[0].split("(")[1] == plain.split(";")[0].split("(")[1]
    for link in ("rx__0", "rx__1", "tx__0", "tx__1"):
        assert (
            f"{link}: rule no_credit broken by the sender: a flit was sent without a credit, cycle " in text
        )
    assert text.count("assert (") == 4 * 7
