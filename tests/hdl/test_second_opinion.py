"""Block tests on Icarus Verilog, a second opinion: `support/hdl/on_icarus.py` says how."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from support.hdl import on_icarus

ROOT = Path(__file__).parents[2]
NEEDS_ICARUS = pytest.mark.skipif(on_icarus.icarus() is None, reason=on_icarus.NO_ICARUS)
QUICK = (
    "tests/hdl/arbiter/test_least_recent.py",
    "tests/hdl/router/test_credits.py",
    "tests/hdl/nic/test_rtc.py",
    "tests/hdl/nic/queues/test_stream_register.py",
)
"""Files of the normal run. `full` takes all of tests/hdl."""


def repeat(files: tuple[str, ...], **settings: str) -> tuple[int, int, str]:
    """Run the tests of some files, and repeat what they do on Icarus. Returns the exit status, the number of runs that
    were repeated, and what pytest printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "support.hdl.on_icarus", "-p", "no:cacheprovider",
         "-m", "not full", "--deselect", "tests/hdl/test_second_opinion.py", *files],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **settings},
    )  # fmt: skip
    found = re.search(r"on Icarus Verilog: (\d+) of \d+ runs repeated", done.stdout)
    return done.returncode, int(found[1]) if found else 0, done.stdout + done.stderr


@NEEDS_ICARUS
def test_blocks_do_the_same_on_icarus():
    status, repeated, text = repeat(QUICK, LANIKAI_ICARUS_CYCLES="200")
    assert status == 0, text
    assert repeated >= 8, text


@pytest.mark.full
@NEEDS_ICARUS
def test_all_blocks_do_the_same_on_icarus():
    status, repeated, text = repeat(("tests/hdl",), LANIKAI_ICARUS_CYCLES="2000", LANIKAI_ICARUS_RUNS="4")
    assert status == 0, text
    assert repeated >= 100, text


class Adder(wiring.Component):
    """A register that adds up `step`."""

    def __init__(self) -> None:
        super().__init__({"step": In(4), "total": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq(self.total + self.step)
        return m


@NEEDS_ICARUS
@pytest.mark.parametrize("wrong", [False, True])
def test_a_block_whose_verilog_is_another_one_is_found(wrong, monkeypatch):
    if wrong:
        right = on_icarus.to_verilog
        monkeypatch.setattr(on_icarus, "to_verilog", lambda *a, **k: right(*a, **k).replace(" + ", " - "))

    async def bench(ctx):
        for step in (3, 1, 4):
            ctx.set(dut.step, step)
            await ctx.tick()

    dut = Adder()
    simulator = on_icarus.RecordingSimulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    if wrong:
        with pytest.raises(AssertionError, match="Icarus Verilog differs: Adder, cycle 1"):
            simulator.run()
    else:
        simulator.run()
