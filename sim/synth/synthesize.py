"""Synthesis of a block for ECP5, out of context or on a board: area by Yosys, clock frequency by nextpnr.

Area is that of the block alone, flattened, with `-nowidelut`. (Otherwise Yosys trades LUT4s for wide multiplexers, by
chance as much as by design.) Frequency is from Yosys's default flow, with a register on every port of the block, so
that paths through its ports count whole. Those registers are in no area.
"""

from __future__ import annotations

import importlib.metadata
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Aim, Config

from ..errors import UserError
from .blocks import BLOCKS, Block
from .card_report import CardBlock
from .device import LARGEST, Device, constraints, device_of, find_board
from .report import SynthesisReport, Timing, parse_area, parse_modules, parse_timing
from .tools import NEXTPNR, YOSYS, first_run, require, run_tool

if TYPE_CHECKING:
    from lanikai.constraints.board import Board

__all__ = ["TARGET_MHZ", "Progress", "steps", "synthesize", "synthesize_blocks"]

TARGET_MHZ = 125
"""Frequency that nextpnr works towards: above its reach in most blocks, so that it does its best."""
_BOARD, _TOP, _UNIT = "board", "context", "unit"
"""Names of the block on a board's pins, of the wrapper with registers on every port, and of the block in either."""

Progress = Callable[[str], None]
"""A function that is told the name of each step as it begins."""

# A memory that stays outside: an instance of a module of unknown content, and then ports. One bit enables each bit of a
# write, as Yosys has it.
_EXTERNAL = """(* blackbox *) module external_{name} (
    input RD_CLK, RD_EN, RD_ARST, RD_SRST, input [{address}:0] RD_ADDR, output [{bit}:0] RD_DATA,
    input WR_CLK, input [{bit}:0] WR_EN, input [{address}:0] WR_ADDR, input [{bit}:0] WR_DATA
); endmodule
"""
_MEMORY_PARAMETERS = (  # noqa: SIM905
    "MEMID SIZE OFFSET ABITS WIDTH INIT RD_PORTS RD_CLK_ENABLE RD_CLK_POLARITY RD_TRANSPARENCY_MASK "
    "RD_COLLISION_X_MASK RD_WIDE_CONTINUATION RD_CE_OVER_SRST RD_ARST_VALUE RD_SRST_VALUE RD_INIT_VALUE WR_PORTS "
    "WR_CLK_ENABLE WR_CLK_POLARITY WR_PRIORITY_MASK WR_WIDE_CONTINUATION"
).split()


def steps(seeds: Sequence[int]) -> int:
    """The number of steps that `synthesize` tells its progress."""
    return 3 + (2 + len(seeds) if seeds else 0)


def synthesize(
    what: str, config: Config, *, seeds: Sequence[int], progress: Progress, board: str | None = None
) -> SynthesisReport:
    """Synthesize the block `what` (a name in `BLOCKS`) with `config`.

    - `seeds`: one placement each, none for area alone.
    - `board`: a name in `BOARDS`. The block is placed for its device and clock, behind its pins (`BoardTop`), and not
      out of context.

    The same arguments and versions give the same report. Raises MissingTool and UserError before anything is run,
    SynthesisError.
    """
    on = None if board is None else find_board(board)
    device = LARGEST if on is None else device_of(on)
    if on is not None and BLOCKS[what].external:
        raise UserError(
            f"--board {board}: {what} has its memory outside of the FPGA, with more ports than the board has pins"
        )
    require(YOSYS, *([NEXTPNR] if seeds else []))
    block = BLOCKS[what]
    with tempfile.TemporaryDirectory(prefix="lanikai-synth-") as name:
        folder = Path(name)
        progress("make the RTL")
        _write(folder, block, config, registered=bool(seeds) and on is None)
        top = _TOP if on is None else _BOARD
        if seeds and on is not None:
            _write_on_board(folder, block, config, on)
        progress("start yosys (a minute and 1.7 GB the first time)")
        first_run(YOSYS, folder)
        progress("yosys: area")
        _yosys(
            folder,
            block,
            _UNIT,
            "synth_ecp5 -nowidelut",
            "tee -q -o area.stat stat -json; write_json area.json",
        )
        area = parse_area((folder / "area.stat").read_text())
        names = re.findall(r"^module \\(\S+)", (folder / f"{_UNIT}.il").read_text(), re.MULTILINE)
        modules = parse_modules((folder / "area.json").read_text(), top=_UNIT, names=names)
        timing: list[Timing] = []
        if seeds:
            progress("yosys: for speed")
            _yosys(folder, block, top, "synth_ecp5", "write_json speed.json")
            progress("start nextpnr (a minute the first time)")
            first_run(NEXTPNR, folder)
        for seed in seeds:
            progress(f"nextpnr: seed {seed}")
            timing.append(_place(folder, seed, device, out_of_context=on is None))
    return SynthesisReport(
        what=what,
        parameters=config.model_dump(mode="json"),
        device=device.part,
        board=None if on is None or board is None else _facts(board, on, timing),
        area=area,
        modules=modules,
        timing=timing,
        versions={tool: importlib.metadata.version(tool) for tool in (YOSYS, *([NEXTPNR] if seeds else []))},
    )


def synthesize_blocks(
    report: SynthesisReport,
    blocks: Sequence[CardBlock],
    *,
    seeds: Sequence[int],
    progress: Progress,
    target: Aim | None = None,
) -> SynthesisReport:
    """`report` with its `target`, if there is one, and with reports of `blocks`; `seeds`: where a clock is wanted."""
    found = {
        block.label: synthesize(
            block.what,
            block.config,
            seeds=seeds if block.clock else [],
            progress=lambda text, label=block.label: progress(f"{label}: {text}"),  # type: ignore[misc]
        )
        for block in blocks
    }
    bounds = {name: bound for name, bound in asdict(target).items() if bound} if target else None
    return replace(report, target=bounds, blocks=found)


def _write(folder: Path, block: Block, config: Config, *, registered: bool) -> None:
    """Write the block as `unit.il` and, if asked, `context.il` with registers on its ports."""
    from lanikai.hdl.emit import to_rtlil
    from lanikai.sim.synth.registered_ports import Registered

    (folder / f"{_UNIT}.il").write_text(to_rtlil(block.make(config), name=_UNIT))
    if registered:
        wrapper = Registered(block.make(config), name=_UNIT)
        (folder / f"{_TOP}.il").write_text(to_rtlil(wrapper, name=_TOP))
    if block.external:
        shapes = {name: shape(config) for name, shape in block.external.items()}
        texts = [
            _EXTERNAL.format(name=name, address=(rows - 1).bit_length() - 1, bit=bits - 1)
            for name, (rows, bits) in shapes.items()
        ]
        (folder / "external.v").write_text("".join(texts))


def _yosys(folder: Path, block: Block, top: str, synthesis: str, last: str) -> None:
    """Run Yosys: read `top`, put external memories outside, `synthesis`, `last`."""
    commands = [f"read_rtlil {top}.il"]
    if block.external:
        commands.append("read_verilog -lib external.v")
        below = f"{top}.{_UNIT}" if top == _TOP else top
        unset = " ".join(f"-unset {name}" for name in _MEMORY_PARAMETERS)
        for module in block.external:
            commands += [
                f"cd {below}.{module}",
                "proc",
                "memory_collect",
                f"chtype -set external_{module} t:$mem_v2",
                f"setparam {unset} t:external_{module}",
                "cd",
            ]
        # No wire is selected: an output for each would keep Yosys from block RAM, and from much else.
        cells = " ".join(f"t:external_{module}" for module in block.external)
        commands += [f"hierarchy -top {top}", "proc", "flatten", f"expose -evert {cells}"]
    commands += [f"{synthesis} -top {top}", last]
    (folder / f"{top}.ys").write_text("\n".join(commands) + "\n")
    run_tool(YOSYS, ["-q", "-s", f"{top}.ys"], folder=folder, log=f"{top}.log")


def _write_on_board(folder: Path, block: Block, config: Config, board: Board) -> None:
    """Write `board.il`, the block behind the board's pins, and `board.lpf`, where the pins are."""
    from lanikai.hdl.emit import to_rtlil

    from .board_top import BoardTop

    top = BoardTop(block.make(config), name=_UNIT, board=board)
    (folder / f"{_BOARD}.il").write_text(to_rtlil(top, name=_BOARD))
    (folder / f"{_BOARD}.lpf").write_text(constraints(board, top.pins, clock="clock"))


def _facts(name: str, board: Board, timing: Sequence[Timing]) -> dict[str, Any]:
    """Facts of the board for a report: its clock, and whether every placement keeps to it."""
    mhz = board.clock_hz / 1e6
    return {
        "name": name,
        "clock_mhz": mhz,
        "clock_pin": board.clock.site,
        "clock_met": all(one.fmax_mhz >= mhz for one in timing),
    }


def _place(folder: Path, seed: int, device: Device, *, out_of_context: bool) -> Timing:
    """Place and route `speed.json`, out of context or at the pins of `board.lpf`, whose clock is then aimed at."""
    report = f"seed{seed}.json"
    free = ["--out-of-context", "--freq", str(TARGET_MHZ)]
    where = free if out_of_context else ["--lpf", f"{_BOARD}.lpf"]
    arguments = [
        *(*device.options, "--json", "speed.json", *where, "--seed", str(seed)),
        *("--timing-allow-fail", "--report", report, "--quiet"),
    ]
    run_tool(NEXTPNR, arguments, folder=folder, log=f"seed{seed}.log")
    return parse_timing((folder / report).read_text(), seed=seed, prefix=f"{_UNIT}.")
