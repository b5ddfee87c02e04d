"""A second opinion on block tests: what a test does to a block in Amaranth's simulator is done again by Icarus Verilog.

As a plugin of pytest (`-p support.hdl.on_icarus`) it takes the place of Amaranth's `Simulator` in the tests that
follow. A test runs as ever. Beside that, all inputs and outputs of its block are recorded in every cycle. In the end
the block's Verilog is given the same inputs by Icarus, and every output of every cycle must be the same. A test whose
block is wrapped in a bench, or that writes registers inside of the block, is not repeated.

The last line that the plugin prints says how many runs were repeated, of how many.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import amaranth.sim
import pytest
from amaranth.hdl import Shape, Value
from amaranth.lib import wiring
from amaranth.sim import _async
from lanikai.hdl.emit import to_verilog

__all__ = ["DIFFERS", "NO_ICARUS", "READ_REGISTER", "RecordingSimulator", "bench_text", "by_icarus", "icarus"]

NO_ICARUS = "Icarus Verilog is missing; install it with: sudo apt-get install iverilog"
DIFFERS = "Icarus Verilog differs"
CYCLES = int(os.environ.get("LANIKAI_ICARUS_CYCLES", "400"))
"""Cycles of a run that are repeated: its first ones."""
RUNS = int(os.environ.get("LANIKAI_ICARUS_RUNS", "2"))
"""Runs of a test that are repeated: its first ones."""

READ_REGISTER = re.compile(r"^  reg (\[\d+:\d+\] )?(_\d+_);$", re.MULTILINE)
"""The register of a memory's clocked read port, which has no initial value in Verilog."""

Pin = tuple[str, int, bool]
"""Name in Verilog, bits, and whether it is an input."""


def icarus() -> str | None:
    """The path of Icarus Verilog, if it is there."""
    return shutil.which("iverilog") if shutil.which("vvp") else None


def bench_text(
    name: str,
    pins: list[Pin],
    *,
    clock: Sequence[str] = ("clk", "rst"),
    reset_cycles: int = 0,
    inner: Sequence[str] = (),
) -> str:
    """A Verilog module `bench`: it reads a line of inputs a cycle from the file `inputs`, and writes a line of outputs.

    Both are hexadecimal, one number a line with the first pin in its highest bits. Outputs are those just before the
    clock's edge. The block is in reset for the first `reset_cycles` cycles. `clock`: pins of clock and reset that it
    has. `inner`: wires in the block that are written as well, behind the outputs.
    """
    ins, outs = ([pin for pin in pins if pin[2] == way] for way in (True, False))
    bits_in = max(1, sum(bits for _, bits, _ in ins))
    wire = {pin: f"pin{i}" for i, (pin, _, _) in enumerate(ins + outs)}
    wires = [f"  wire [{bits - 1}:0] {wire[pin]};" for pin, bits, _ in ins + outs]
    joined = ", ".join(wire[pin] for pin, _, _ in ins) or "unused"
    shown = ", ".join([*(wire[pin] for pin, _, _ in outs), *(f"dut.{one}" for one in inner)]) or "1'd0"
    pins_text = ", ".join(
        [f".{pin}({pin})" for pin in clock] + [f".\\{pin} ({w})" for pin, w in wire.items()]
    )
    return "\n".join(
        [
            "module bench;",
            "  reg clk = 0;",
            "  integer source, sink, found, cycle = 0;",
            f"  wire rst = cycle < {reset_cycles};",
            f"  reg [{bits_in - 1}:0] in = 0;",
            "  wire unused;",
            *wires,
            f"  assign {{{joined}}} = in;",
            f"  {name} dut ({pins_text});",
            "  initial begin",
            '    source = $fopen("inputs", "r");',
            '    sink = $fopen("outputs", "w");',
            '    found = $fscanf(source, "%h\\n", in);',
            "    while (found == 1) begin",
            '      #4 $fdisplay(sink, "%h", {' + shown + "});",
            "      #1 clk = 1;",
            '      #1 found = $fscanf(source, "%h\\n", in);',
            "      cycle = cycle + 1;",
            "      #4 clk = 0;",
            "    end",
            "    $fclose(sink);",
            "    $finish;",
            "  end",
            "endmodule",
            "",
        ]
    )


def by_icarus(bench: str, verilog: str, inputs: list[int], folder: Path) -> list[str]:
    """The lines of outputs that a `bench_text` writes, by Icarus Verilog. Raises AssertionError with what it says."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dut.v").write_text(verilog)
    (folder / "bench.v").write_text(bench)
    (folder / "inputs").write_text("".join(f"{word:x}\n" for word in inputs))
    for command in (["iverilog", "-g2005-sv", "-o", "model", "bench.v", "dut.v"], ["vvp", "-n", "model"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return (folder / "outputs").read_text().split()


class Recording:
    """A run of a block: its pins, and a line of values a cycle; `poked`: the test wrote a register of it."""

    count = {"runs": 0, "repeated": 0, "cycles": 0}
    current: Recording | None = None

    def __init__(self, block: wiring.Component) -> None:
        self.block = block
        self.pins: list[Pin] = []
        self.values: list[Value] = []
        self.lines: list[tuple[int, ...]] = []
        self.poked = False
        for path, member, value in block.signature.flatten(block):
            bits = Shape.cast(member.shape).width
            if bits:
                self.pins.append(("__".join(str(step) for step in path), bits, member.flow == wiring.In))
                self.values.append(Value.cast(value))
        inputs = [value for value, pin in zip(self.values, self.pins, strict=True) if pin[2]]
        self.inputs = {id(signal) for value in inputs for signal in value._lhs_signals()}

    def note(self, expression: Any) -> None:
        """The test writes this."""
        if any(id(signal) not in self.inputs for signal in Value.cast(expression)._lhs_signals()):
            self.poked = True

    def repeat(self) -> None:
        """Have Icarus do the same. Raises AssertionError at the first difference."""
        if self.poked or not self.lines:
            return
        packed: dict[bool, list[int]] = {True: [], False: []}
        for line in self.lines:
            words = {True: 0, False: 0}
            for (_, bits, way), value in zip(self.pins, line, strict=True):
                words[way] = words[way] << bits | value & (1 << bits) - 1
            for way, word in words.items():
                packed[way].append(word)
        name = type(self.block).__name__.lower()
        # What a memory's clocked read port shows before its first read is 0 in Amaranth's simulator.
        verilog = READ_REGISTER.sub(r"  reg \1\2 = 0;", to_verilog(self.block, name=name))
        with tempfile.TemporaryDirectory() as folder:
            clock = ("clk", "rst") if "input clk;" in verilog else ()
            found = by_icarus(bench_text(name, self.pins, clock=clock), verilog, packed[True], Path(folder))
        assert len(found) == len(self.lines), f"{DIFFERS}: {len(found)} cycles of {len(self.lines)}"
        outs = [pin for pin in self.pins if not pin[2]]
        digits = -(-max(1, sum(bits for _, bits, _ in outs)) // 4)
        for cycle, (text, word) in enumerate(zip(found, packed[False], strict=True)):
            assert text == f"{word:0{digits}x}", (
                f"{DIFFERS}: {type(self.block).__name__}, cycle {cycle}: {text}, and {word:0{digits}x} in Amaranth's "
                f"simulator; outputs {outs}"
            )
        Recording.count["repeated"] += 1
        Recording.count["cycles"] += len(self.lines)


_Simulator = amaranth.sim.Simulator
_done: dict[str, int] = {}


class RecordingSimulator(_Simulator):
    """Amaranth's simulator, which records the block and has Icarus repeat the run at its end."""

    def __init__(self, toplevel: Any, *args: Any, **keywords: Any) -> None:
        super().__init__(toplevel, *args, **keywords)
        Recording.count["runs"] += 1
        key = hashlib.sha1(os.environ.get("PYTEST_CURRENT_TEST", "").encode()).hexdigest()
        _done[key] = _done.get(key, 0) + 1
        self._recording = None
        if isinstance(toplevel, wiring.Component) and _done[key] <= RUNS:
            self._recording = Recording(toplevel)

    def add_clock(self, period: Any, *args: Any, **keywords: Any) -> None:
        """The clock, and with it the recorder."""
        super().add_clock(period, *args, **keywords)
        recording, domain = self._recording, keywords.get("domain", "sync")
        if recording is None or domain != "sync" or domain not in self._design.fragment.domains:
            return

        async def record(ctx: Any) -> None:
            async for _, _, *values in ctx.tick().sample(*recording.values):
                if len(recording.lines) < CYCLES:
                    recording.lines.append(tuple(values))

        self.add_process(record)

    def run(self, *args: Any, **keywords: Any) -> None:
        """The run, and then its repetition."""
        Recording.current = self._recording
        super().run(*args, **keywords)
        Recording.current = None
        if self._recording is not None:
            self._recording.repeat()


class _NotingContext(_async.TestbenchContext):
    """The context of testbenches: it notes what they write."""

    def set(self, expr: Any, value: Any) -> None:
        if Recording.current is not None:
            Recording.current.note(expr)
        super().set(expr, value)


def pytest_configure(config: pytest.Config) -> None:
    """Put the recording simulator in the place of Amaranth's."""
    if icarus() is None:
        raise pytest.UsageError(NO_ICARUS)
    amaranth.sim.Simulator = RecordingSimulator
    amaranth.sim.core.TestbenchContext = _NotingContext
    amaranth.sim._pycoro.TestbenchContext = _NotingContext
    _async.TestbenchContext = _NotingContext


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many runs were repeated."""
    count = Recording.count
    terminalreporter.write_line(
        f"on Icarus Verilog: {count['repeated']} of {count['runs']} runs repeated, {count['cycles']} cycles"
    )
