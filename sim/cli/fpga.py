"""`lanikai fpga`: bitstreams, what fits where, a board's measurements, a board in simulation."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .fpga_help import DesignCommand, ReadCommand
from .json_file import JsonFile, check_json, write_json

__all__ = ["fpga"]

fpga = typer.Typer(help="Designs on FPGA boards: build, list, read, simulate.", rich_markup_mode=None)

DesignName = Annotated[str, typer.Argument(metavar="DESIGN", help="Design, as `lanikai fpga list` shows it.")]
"""The argument of a command on a design."""
DesignSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A size of the design that is to differ from the board's (listed below).",
    ),
]
"""The option of a command on a design for sizes that differ from the board's."""

STEPS = 6
"""Steps that a build tells its progress."""
COLUMNS = (
    "design",
    "board",
    "settings",
    "device",
    "LUT",
    "block RAM",
    "multipliers",
    "clock, MHz",
    "fmax, MHz",
)


@fpga.callback(invoke_without_command=True)
def designs_on_boards(context: typer.Context) -> None:
    """Designs on FPGA boards: build, list, read, simulate."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@fpga.command("list")
def list_designs() -> None:
    """List which design fits which board, with its use of the FPGA and its clock, as measured by builds."""
    from rich.table import Table

    from ..fpga.designs import DESIGNS
    from ..fpga.table import rows
    from .screen import screen

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in COLUMNS:
        # On a narrow terminal the numbers go over several lines, and the names stay whole.
        table.add_column(column, no_wrap=column in COLUMNS[:2], overflow="fold")
    for row in rows():
        table.add_row(*row)
    console = screen()
    console.print(table)
    console.print()
    for name, design in DESIGNS.items():
        console.print(f"{name}: {design.about}", highlight=False, markup=False)
        console.print(f"  its sizes: lanikai fpga build {name} --help", highlight=False, markup=False)
    console.print("what a host sets when it measures: lanikai fpga read --help", highlight=False)


@fpga.command(cls=DesignCommand)
def build(
    design: DesignName,
    board: Annotated[str, typer.Option(metavar="NAME", help="Board, as `lanikai fpga list` shows it.")],
    settings: DesignSettings = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="The bitstream (DESIGN-BOARD.bit or .bin here).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=1, help="Seed of the placement.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """Build a bitstream with Yosys and nextpnr, which pip installs (the extra `fpga`).

    Exit status: 0 done, and the clock is met; 1 it is not, or a tool failed; 2 wrong input; 3 a tool is missing;
    130 interrupted. A device that is too small counts as wrong input.
    """
    from rich.console import Console

    from ..experiments.framework.run_folder import check_file
    from ..fpga.build import build_bitstream
    from ..fpga.designs import configuration
    from ..fpga.families import board_of, family_of
    from .synth_display import SynthesisProgress

    configuration(design, board_name := board, settings or [])
    family = family_of(board_name, board_of(board_name))
    _check_name(out, "file")
    file = Path(f"{design}-{board_name}.{family.bitstream_suffix}" if out is None else out)
    check_file(file, "--out")
    check_json(json_file)
    console = Console(stderr=json_file == "-")
    with SynthesisProgress(console, f"{design} for {board_name}", STEPS) as progress:
        report = build_bitstream(
            design, board_name, settings=settings or [], seed=seed, out=file, progress=progress.step
        )
    write_json(json_file, json.dumps(report.as_json(), indent=2) + "\n")
    for kind, (used, available) in report.use.items():
        console.print(f"{kind}: {used} of {available} ({used / available:.0%})", highlight=False)
    console.print(
        f"clock met: {report.fmax_mhz} MHz, {report.clock_mhz:g} MHz are needed (seed {seed})",
        highlight=False,
    )
    console.print(f"bitstream {file} ({report.bytes} bytes)", highlight=False, soft_wrap=True)


def _check_name(out: str | None, what: str) -> None:
    """Raise UserError for the value of `--out` that names nothing."""
    if out is not None and not out.strip():
        raise UserError(f"--out {out!r}: give the name of a {what}")


@fpga.command(cls=ReadCommand)
def read(
    port: Annotated[str, typer.Argument(metavar="PORT", help="Serial port of the board: /dev/ttyUSB1, say.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the experiment that the host decides (listed below).",
        ),
    ] = None,
    baud: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rate of the line, bits a second.")
    ] = 1_000_000,
    full: Annotated[bool, typer.Option("--full", help="The full size of the experiment.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the whole run.")] = 1,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run the same in simulation: every result must be equal.")
    ] = False,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for the files of this run: a new or empty one.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Measure on a board: `network-load` on the design `router-loopback`, `node-messages` on `node`.

    Exit status: as `lanikai run`; 1 also if the board does not answer, or differs from the simulation.
    """
    from ..errors import LanikaiError
    from ..experiments.framework import runner
    from ..experiments.framework.base import Size
    from ..experiments.framework.display import RunProgress, show
    from ..experiments.framework.points import points_of
    from ..experiments.framework.run_folder import RunFolder
    from ..fpga.board_backend import BoardBackend
    from ..fpga.board_load import different
    from ..fpga.designs import known_design
    from ..fpga.line import BoardLine, open_port
    from ..machine import ONE_THREAD
    from . import backend
    from .screen import screen

    _check_name(out, "folder")
    check_json(json_file)
    with BoardLine(open_port(port, baud), port) as line:
        identity, label = line.identity(), line.label()
    known = known_design(label, identity)
    experiment = known.experiment()
    parameters = experiment.parameters(settings or [])
    size: Size = "full" if full else "quick"
    points = points_of(experiment, parameters, size)
    console = screen(stderr=json_file == "-")
    console.print(f"{label} at {port}", highlight=False, soft_wrap=True)
    on_board = BoardBackend(port=port, baud=baud, identity=identity, on_board=known.on_board)

    def run(run_on: object, folder: RunFolder) -> runner.Report:
        with RunProgress(console, points) as bars:
            return runner.execute(
                experiment,
                parameters,
                points=points,
                size=size,
                seed=seed,
                folder=folder,
                backend=run_on,  # type: ignore[arg-type]
                progress=bars.report,
            )

    folder = RunFolder(None if out is None else Path(out), experiment=experiment.name, size=size, seed=seed)
    try:
        report = run(on_board, folder)
    except BaseException:
        folder.discard()
        raise
    folder.keep()
    write_json(json_file, report.json_text())
    show(console, report)
    if compare:
        with tempfile.TemporaryDirectory(prefix="lanikai-compare-") as name:
            other = RunFolder(Path(name) / "run", experiment=experiment.name, size=size, seed=seed)
            simulated = run(backend.make(ONE_THREAD), other)
            other.keep()
        if found := different(report.outcomes, simulated.outcomes):
            raise LanikaiError(f"{len(found)} results differ from the simulation; {found[0]}")
        console.print(f"all results of {len(points)} points are equal to the simulation's", highlight=False)
    if failures := report.failures():
        raise LanikaiError(f"{experiment.name} on {known.board}: {failures}")


@fpga.command(cls=DesignCommand)
def simulate(
    design: DesignName,
    board: Annotated[str, typer.Option(metavar="NAME", help="The board whose size it has.")],
    link: Annotated[str, typer.Option(metavar="PATH", help="The serial port: a new symbolic link.")],
    settings: DesignSettings = None,
) -> None:
    """Simulate a design on a board, its serial line at a pseudo-terminal, until Ctrl-C: `lanikai fpga read` reads it.

    Exit status: 2 wrong input; 3 something is missing; 130 ended by Ctrl-C.
    """
    from ..experiments.framework.run_folder import check_file
    from ..fpga.virtual_board import SERVE, VirtualBoardConfig
    from ..run import run
    from . import doctor
    from .screen import screen

    place = Path(link).absolute()
    if place.exists() or place.is_symlink():
        raise UserError(f"--link {link!r} is there already: give the name of a new file")
    check_file(Path(link), "--link")
    config = VirtualBoardConfig(design_name=design, board=board, settings=tuple(settings or ()))
    config.line  # noqa: B018  (refuses unknown names before anything is built)
    doctor.require(doctor.RUN)
    model = config.build("fast")
    screen().print(f"{design} of {board}: lanikai fpga read {link}", highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="lanikai-board-") as name:
        stop = Path(name) / "stop"
        entry, spec = config.job(SERVE, {"link": str(place), "stop": str(stop)})
        try:
            run(model, entry, spec, out_dir=Path(name), name="board")
        finally:
            place.unlink(missing_ok=True)
