"""Boards: what each says of its FPGA and pins, the file that nextpnr reads, and a block behind the pins."""

import random

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from lanikai.constraints.boards import BOARDS
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.synth.board_top import BoardTop
from lanikai.sim.synth.device import LARGEST, constraints, device_of, find_board


@pytest.mark.parametrize("name", BOARDS)
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
    with pytest.raises(UserError, match=r"^unknown board 'versa'; valid boards: ulx3s-85f$"):
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
