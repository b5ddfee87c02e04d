"""The display of a synthesis: a bar over its steps, and the report as a table."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..synth.report import SynthesisReport

__all__ = ["SynthesisProgress", "show"]

MODULES_SHOWN = 20
"""Modules in the table: the largest; `--json` has all."""


class SynthesisProgress:
    """A bar over `steps` steps, or a line for each where no bar can be drawn; a context manager. `step` begins one."""

    def __init__(self, console: Console, what: str, steps: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}"),
            console=console,
        )
        self._task = self._bar.add_task(f"synth {what}", total=steps, text="")
        self._plain = None if console.is_terminal else console
        self._begun = 0

    def step(self, text: str) -> None:
        """Begin the step `text`; the one before is done."""
        self._bar.update(self._task, completed=self._begun, text=text)
        self._begun += 1
        if self._plain:
            self._plain.print(text, highlight=False, markup=False)

    def __enter__(self) -> SynthesisProgress:
        if not self._plain:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._bar.update(self._task, completed=self._begun, text="")
        if not self._plain:
            self._bar.stop()


def show(console: Console, report: SynthesisReport) -> None:
    """Show the report: area, frequency, critical path, the largest modules."""
    facts = report.as_json()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for label, key, note in (
        ("LUT4", "lut4", "logic"),
        ("carry", "carry", "CCU2C: 2 LUT4s each"),
        ("distributed RAM", "distributed_ram", "DPR16X4, 16 x 4 bits: 6 LUT4s each"),
        ("LUT4 sites", "lut4_sites", "all of these together"),
        ("FF", "ff", ""),
        ("block RAM", "bram", "DP16KD, 18 Kbit"),
    ):
        table.add_row(label, str(facts[key]), note)
    for timing in report.timing:
        table.add_row("fmax", f"{timing.fmax_mhz:.1f}", f"MHz, seed {timing.seed}")
    console.print(f"{report.what} on {report.device}", highlight=False, markup=False)
    console.print(table)
    if slowest := report.slowest:
        console.print(
            f"critical path (seed {slowest.seed}): {slowest.logic_ns} ns logic, {slowest.routing_ns} ns wires",
            highlight=False,
        )
        for name in slowest.path:
            console.print(f"  {name}", highlight=False, markup=False, soft_wrap=True)
    if board := report.board:
        kept = "kept by every placement" if board["clock_met"] else "MISSED"
        console.print(
            f"board {board['name']}: clock of {board['clock_mhz']:g} MHz at pin {board['clock_pin']}, {kept}",
            highlight=False,
        )
    if report.target:
        target = report.target
        most = f"at most {target['lut4']} LUT4 at" if "lut4" in target else "at least"
        console.print(f"target: {most} {target['fmax_mhz']} MHz", highlight=False)
    if report.modules:
        _show_modules(console, report)
    if report.blocks:
        _show_blocks(console, report)


def _show_modules(console: Console, report: SynthesisReport) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("module, without its submodules")
    for heading in ("LUT4", "FF", "distributed RAM", "block RAM"):
        table.add_column(heading, justify="right", no_wrap=True)
    largest = sorted(report.modules.items(), key=lambda item: -item[1].lut4_sites)
    for name, area in largest[:MODULES_SHOWN]:
        table.add_row(name, *(str(n) for n in (area.lut4, area.ff, area.distributed_ram, area.bram)))
    console.print(table)


def _show_blocks(console: Console, report: SynthesisReport) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("block, alone")
    for heading in ("LUT4", "LUT4 sites", "FF", "distributed RAM", "block RAM", "fmax, MHz"):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, block in report.blocks.items():
        area = block.area
        clock = f"{block.slowest.fmax_mhz:.0f}" if block.slowest else ""
        cells = (area.lut4, area.lut4_sites, area.ff, area.distributed_ram, area.bram)
        table.add_row(label, *(str(n) for n in cells), clock)
    console.print(table)
