"""Boards: what each says of its FPGA and pins, the file that nextpnr reads, and a block behind the pins."""

import random
import re

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from lanikai.constraints.boards import BOARDS
from lanikai.hdl.board.line_design import LIGHTS
from lanikai.hdl.board.pll import Ecp5Pll
from lanikai.hdl.config import ConfigError
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.fpga.families import board_of, family_of
from lanikai.sim.fpga.top import DesignTop
from lanikai.sim.synth.board_top import BoardTop
from lanikai.sim.synth.device import LARGEST, constraints, device_of, find_board

ECP5_BOARDS = [name for name in BOARDS if name != "icebreaker"]


@pytest.mark.parametrize("name", BOARDS)
def test_the_pins_of_a_design_are_those_of_the_board_in_the_file_of_its_family(name):
    """Read back from the file that nextpnr reads: every port, the clock's frequency, and no pin twice."""
    board = board_of(name)
    family = family_of(name, board)
    lights = len(board.leds[:LIGHTS])
    pins = DesignTop(Lights(), board=board, clock_hz=board.clock_hz).pins
    assert list(pins) == ["clock", "reset", "rx", "tx", *(f"led_{i}" for i in range(lights))]
    lines = family.pins(board, pins).splitlines()
    place = r'LOCATE COMP "(\w+)" SITE "(\w+)";|set_io(?: -pullup yes)? (\w+) (\w+)'
    found = [re.fullmatch(place, line) for line in lines]
    sites = {one[1] or one[3]: one[2] or one[4] for one in found if one}
    assert sites == {port: pin.site for port, pin in pins.items()}
    assert len(set(sites.values())) == len(sites)
    assert lines[-1] in (
        f'FREQUENCY PORT "clock" {board.clock_hz} HZ;',
        f"set_frequency clock {board.clock_hz / 1e6:g}",
    )


@pytest.mark.parametrize(
    "name, device, clock_hz, clock, reset, rx, tx",
    [
        ("ulx3s-85f", "LFE5U-85F", 25_000_000, "G2", "R1", "M1", "L4"),
        ("versa-5g", "LFE5UM5G-45F", 100_000_000, "P3", "T1", "C11", "A11"),
        ("ecpix5-85f", "LFE5UM5G-85F", 100_000_000, "K23", "AB1", "R26", "R24"),
        ("orangecrab-25f", "LFE5U-25F", 48_000_000, "A9", "J17", "N17", "M18"),
        ("icebreaker", "iCE40UP5K", 12_000_000, "35", "10", "6", "9"),
    ],
)
def test_devices_and_pins_are_those_of_the_boards_public_constraints(
    name, device, clock_hz, clock, reset, rx, tx
):
    board = BOARDS[name]
    assert (board.device, board.clock_hz, board.clock.site, board.reset.site) == (
        device,
        clock_hz,
        clock,
        reset,
    )
    assert (board.uart_rx.site, board.uart_tx.site) == (rx, tx)


@pytest.mark.parametrize("name", ECP5_BOARDS)
def test_a_board_has_a_device_that_can_be_placed_and_pins_of_their_own(name):
    board = find_board(name)
    assert device_of(board).options and board.clock_hz > 0 and board.leds
    pins = [board.clock, board.reset, board.data, *board.leds]
    assert len({pin.site for pin in pins}) == len(pins)
    text = constraints(board, BoardTop(Sum(), name="sum", board=board).pins, clock="clock")
    assert text.count("LOCATE COMP") == 4
    assert f'FREQUENCY PORT "clock" {board.clock_hz} HZ;' in text


def test_the_pins_of_the_ulx3s_are_those_of_its_schematic():
    """Facts of the board's public documentation: https://github.com/emard/ulx3s, its constraints for v2.0."""
    board = BOARDS["ulx3s-85f"]
    device = device_of(board)
    assert device.part == "LFE5U-85F-6BG381"
    assert device.options == ["--85k", "--package", "CABGA381", "--speed", "6"]
    assert (board.clock_hz, board.clock.site) == (25_000_000, "G2")
    assert (board.reset.site, board.data.site) == ("R1", "T1")
    assert [pin.site for pin in board.leds] == ["B2", "C2", "C1", "D2", "D1", "E2", "E1", "H3"]
    assert constraints(board, {"clock": board.clock, "reset": board.reset}, clock="clock").splitlines() == [
        'LOCATE COMP "clock" SITE "G2";',
        'IOBUF PORT "clock" IO_TYPE=LVCMOS33;',
        'LOCATE COMP "reset" SITE "R1";',
        'IOBUF PORT "reset" IO_TYPE=LVCMOS33 PULLMODE=DOWN;',
        'FREQUENCY PORT "clock" 25000000 HZ;',
    ]
    assert LARGEST.part == "LFE5U-85F-6BG756C"


def test_boards_that_cannot_be_used_are_refused(monkeypatch):
    with pytest.raises(
        UserError, match=r"^unknown board 'versa' \(did you mean 'versa-5g'\?\); valid boards: versa-5g, .*$"
    ):
        find_board("versa")

    class Other(type(BOARDS["ulx3s-85f"])):
        device = "iCE40HX8K"

    monkeypatch.setitem(BOARDS, "other", Other())
    with pytest.raises(
        UserError, match=r"^board 'other' has a iCE40HX8K in BG381; only ECP5s can be placed: LFE5U"
    ):
        find_board("other")

    class Unknown(type(BOARDS["ulx3s-85f"])):
        platform = "no_such_module:Platform"

    monkeypatch.setitem(BOARDS, "unknown", Unknown())
    with pytest.raises(MissingTool, match=r"is missing; install it with: "):
        find_board("unknown")


class Lights(wiring.Component):
    """A design of nothing but its ports; its lights are on."""

    rx: In(1)
    tx: Out(1)
    leds: Out(LIGHTS, init=(1 << LIGHTS) - 1)

    def elaborate(self, platform):
        return Module()


class Sum(wiring.Component):
    """The sum of two numbers, a cycle later."""

    a: In(3)
    b: In(4)
    sum: Out(5)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.sum.eq(self.a + self.b)
        return m


class Low:
    """A board all of whose pins are asserted when they are low, but for the clock."""

    def __init__(self):
        from lanikai.constraints.board import Pin

        self.clock = Pin(site="A1")
        self.reset, self.data, led = (Pin(site=f"A{i}", inverted=True) for i in (2, 3, 4))
        self.leds = [led]


@pytest.mark.parametrize("board", [BOARDS["ulx3s-85f"], Low()], ids=["high", "low"])
def test_every_port_of_a_block_is_reached_from_the_pins(board):
    """The LED against a model of both chains, bit by bit; the button empties them."""
    block = Sum()
    top = BoardTop(block, name="sum", board=board)
    inverted = board.reset.inverted
    seed = 20
    rng = random.Random(seed)
    bits = [rng.randrange(2) for _ in range(400)]
    resets = [int(240 <= cycle < 244) for cycle in range(400)]
    seen, expected = [], []

    async def drive(ctx):
        shifted = folded = total = 0
        late = [(0, 0)] * 2  # two flip-flops behind each button
        for bit, reset in zip(bits, resets, strict=True):
            ctx.set(top.data, bit ^ inverted)
            ctx.set(top.reset, reset ^ inverted)
            for level in (1, 0):
                ctx.set(top.clock, level)
                await ctx.delay(1e-9)
            data, empty = late[0]
            late = [late[1], (bit, reset)]
            if empty:
                shifted = folded = total = 0
            else:
                a, b = shifted & 7, shifted >> 3
                shifted, folded, total = shifted << 1 & 127 | data, (total ^ folded << 1) & 31, a + b
            seen.append(ctx.get(top.led) ^ inverted)
            expected.append(folded >> 4)

    simulator = Simulator(top)
    simulator.add_testbench(drive)
    simulator.run()
    # Until the buttons' flip-flops have filled, what an inverted one began with is in the chains.
    assert seen[250:] == expected[250:] and 20 < sum(seen[250:]) < 130, f"seed {seed}"


def test_a_clock_that_a_pll_does_not_make_is_refused():
    Ecp5Pll(from_hz=100_000_000, to_hz=25_000_000)
    for to_hz in (30_000_000, 5_000_000):
        with pytest.raises(
            ConfigError, match=rf"^clock_hz = {to_hz}: the board's 100000000 Hz divided by 1 to 128"
        ):
            Ecp5Pll(from_hz=100_000_000, to_hz=to_hz)
