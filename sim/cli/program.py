"""The command line. Each command checks the user's arguments, calls the library, and shows the result.

Heavy libraries (Amaranth, cocotb, matplotlib, polars) are imported by the commands that need them.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from lanikai.hdl.config import ConfigError

from ..errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_USER,
    FULL,
    LanikaiError,
    MissingTool,
    UserError,
)
from ..machine import MOST_THREADS, Threads, cores
from ..paths import keep_caches_together
from . import backend
from .bench import bench
from .screen import screen
from .sweep import sweep
from .synth import synth
from .verilog import verilog

if TYPE_CHECKING:
    from ..waves.window import WaveWindow

__all__ = ["app", "main"]

app = typer.Typer(
    name="lanikai",
    help="A quality-of-service cluster interconnect: run the published experiments on its RTL.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

UsageError: Any = typer.BadParameter.__mro__[1]
"""The parser's base class of wrong usage; typer does not name it."""


class Ended(BaseException):
    """SIGTERM, as an exception, so that what runs is ended on the way out."""


@app.command("list")
def list_experiments() -> None:
    """List every experiment: where it is from, and whether it is built."""
    from ..experiments.framework.display import list_table
    from ..experiments.registry import listing

    screen().print(list_table(listing()))


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Experiment, as `lanikai list` shows it.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the experiment (docs/experiments.md lists them); may be given again.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: seconds, or minutes (the default).")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The published size.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the whole run.")] = 1,
    seeds: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=1000, help="Run each point with N seeds from --seed on: means."),
    ] = 1,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for the files of this run: a new or empty one.")
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the results there; `-`: standard output."),
    ] = None,
    waves: Annotated[
        bool,
        typer.Option(
            "--waves", help="Write a waveform of each point's first 20,000 cycles, 64 MB at most (slower)."
        ),
    ] = False,
    waves_from: Annotated[
        int | None, typer.Option("--waves-from", metavar="CYCLE", min=0, help="First cycle of the waveform.")
    ] = None,
    waves_cycles: Annotated[
        int | None,
        typer.Option("--waves-cycles", metavar="N", min=0, help="Cycles of the waveform; 0: to the end."),
    ] = None,
    waves_of: Annotated[
        str | None, typer.Option("--waves-of", metavar="NAMES", help="Only these: node0,router1, say.")
    ] = None,
    waves_limit: Annotated[
        int | None,
        typer.Option("--waves-limit", metavar="MB", min=1, max=100_000, help="Largest waveform of a point."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Make every signal visible (5 times slower).")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", metavar="N", min=1, max=1024, help="Points run at once.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_THREADS,
            help="Threads of each simulation (by itself: the cores that points leave, if it is large).",
        ),
    ] = None,
) -> None:
    """Run an experiment and hold its results against the published ones.

    Exit status: 0 all within tolerance and every claim holds; 1 something is not; 2 wrong input; 3 something
    is missing on this machine; 130 interrupted.
    """
    from ..build.cache import Cache
    from ..experiments import registry
    from ..experiments.framework import runner
    from ..experiments.framework.base import Size
    from ..experiments.framework.display import RunProgress, show
    from ..experiments.framework.parameters import parse, shortened
    from ..experiments.framework.results import RunFolder, check_file
    from . import doctor

    if quick and full:
        raise UserError("--quick and --full: give one of them")
    if waves and debug:
        raise UserError("--waves and --debug: give one of them (a waveform has every signal)")
    window = _window(waves, waves_from, waves_cycles, waves_of, waves_limit)
    if out is not None and not out.strip():
        raise UserError(f"--out {out!r}: give the name of a folder")
    experiment = registry.find(shortened(name))
    parameters = parse(experiment, settings or [])
    size: Size = "full" if full else "quick"
    points = experiment.points(parameters, size)
    if window is not None:
        for point in points:
            window.check(experiment.system(parameters, point))
    if json_file not in (None, "-"):
        check_file(Path(json_file), "--json")
    # The folder is the last thing that the user can have got wrong, and the first that is made.
    folder = RunFolder(None if out is None else Path(out), experiment=name, size=size, seed=seed)
    console = screen(stderr=json_file == "-")
    try:
        Cache().check()
        doctor.require(doctor.WAVES if waves else doctor.RUN)
        if window is not None:
            _say_size(console, window, [experiment.system(parameters, point) for point in points], seeds)
        with RunProgress(console, points) as bars:
            report = runner.execute(
                experiment,
                parameters,
                points=points,
                size=size,
                seed=seed,
                folder=folder,
                backend=backend.make(Threads.share(threads, len(points) * seeds, jobs or cores())),
                variant="waves" if waves else "debug" if debug else "fast",
                workers=jobs or cores(),
                seeds=seeds,
                window=window,
                progress=bars.report,
            )
    except (UserError, ConfigError, MissingTool, KeyboardInterrupt, Ended, BrokenPipeError, SystemExit):
        # The last two: whoever read our output has gone. Rich turns the one into the other.
        folder.discard()
        raise
    except Exception:
        folder.keep()  # its logs say what went wrong
        raise
    folder.keep()
    if json_file == "-":
        sys.stdout.write(report.json_text())
    elif json_file:
        try:
            Path(json_file).write_text(report.json_text())
        except OSError as error:
            raise LanikaiError(f"--json {json_file!r} cannot be written: {error.strerror}") from None
    show(console, report)
    if window is not None and (short := [one for one in report.outcomes if one.cycles <= window.first_cycle]):
        console.print(
            f"waves: nothing of {len(short)} points, which end before cycle {window.first_cycle} (--waves-from)",
            highlight=False,
        )
    if failures := report.failures():
        raise LanikaiError(f"{name}: {failures}")


def _window(
    waves: bool, first: int | None, cycles: int | None, names: str | None, limit_mb: int | None
) -> WaveWindow | None:
    """The part of a run that goes into its waves; None without any. Raises UserError."""
    from ..waves.window import WaveWindow

    given = {
        "--waves-from": first,
        "--waves-cycles": cycles,
        "--waves-of": names,
        "--waves-limit": limit_mb,
    }
    if not waves:
        if wrong := next((name for name, value in given.items() if value is not None), None):
            raise UserError(f"{wrong}: give --waves too, or there is no waveform")
        return None
    values = {"first_cycle": first, "cycles": cycles, "limit_mb": limit_mb}
    return WaveWindow.of(names or "", **{name: value for name, value in values.items() if value is not None})


def _say_size(console: Any, window: WaveWindow, systems: Sequence[Any], seeds: int) -> None:
    """Say how large the waveforms will be, before anything is run."""
    sizes = [window.estimate_mb(system) for system in systems for _ in range(seeds)]
    known = [size for size in sizes if size is not None]
    about = f"about {sum(known):.0f} MB" if len(known) == len(sizes) else "of unknown size"
    cycles = (
        f"{window.cycles} cycles from {window.first_cycle}"
        if window.cycles
        else f"from {window.first_cycle} on"
    )
    console.print(
        f"waves: {len(sizes)} files, {cycles} each, {about} in all, at most {window.limit_mb} MB each "
        "(--waves-cycles, --waves-of, --waves-limit)",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@app.command()
def doctor() -> None:
    """Say what is there and what is missing on this machine, and how to install it."""
    from rich.table import Table

    from ..experiments.framework.results import versions
    from ..paths import cache_dir
    from .doctor import RUN, examine, folder_bytes

    console = screen()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("what", "", "where, or how to install it", "what for"):
        table.add_column(heading, no_wrap=heading in ("what", ""), overflow="fold")
    findings = examine()
    for finding in findings:
        state = "[green]found[/]" if finding.found else "[bold red]missing[/]"
        table.add_row(finding.need.name, state, finding.found or finding.remedy, finding.need.for_)
    console.print(table)
    for package, number in versions().items():
        console.print(f"{package} {number}", highlight=False)
    cache = cache_dir()
    console.print(f"build cache {cache}: {folder_bytes(cache) / 1e6:.1f} MB", highlight=False, soft_wrap=True)
    missing = [finding.need for finding in findings if not finding.found]
    if any(RUN in need.commands for need in missing):
        console.print("`lanikai run` needs what is missing above")
        raise typer.Exit(EXIT_MISSING)
    console.print("everything that `lanikai run` needs is there")


@app.command("waves")
def show_waves(
    run_folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run made with --waves.")],
    point: Annotated[
        int, typer.Option("--point", metavar="N", min=0, help="Which waveform of the folder, from 0 on.")
    ] = 0,
) -> None:
    """Open a waveform of a run in GTKWave, signals grouped and enums decoded."""
    from ..waves.fst import waveforms
    from . import doctor

    if not run_folder.is_dir():
        raise UserError(f"there is no folder {str(run_folder)!r}: give the folder of a run made with --waves")
    found = waveforms(run_folder)
    if not found:
        raise UserError(f"no waveform (*.fst) in {str(run_folder)!r}: make the run with --waves")
    if point >= len(found):
        raise UserError(f"--point {point}: {str(run_folder)!r} has waveforms 0 to {len(found) - 1}")
    doctor.require(doctor.VIEW)
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        error = LanikaiError(
            f"no display (DISPLAY is not set): copy {str(found[point].parent)!r} to a machine with one, and run there: "
            f"gtkwave {found[point].name} {found[point].stem}.gtkw"
        )
        error.exit_status = EXIT_MISSING
        raise error
    # The save file names its files relative to its folder.
    waves, folder = found[point].name, found[point].parent
    save = found[point].with_suffix(".gtkw")
    command = [
        "gtkwave",
        waves,
        *([save.name] if save.is_file() else []),
        "--rcvar",
        "do_initial_zoom_fit yes",
    ]
    for number, path in enumerate(found if len(found) > 1 else ()):
        opened = "  (opened)" if number == point else ""
        print(f"--point {number}: {path}{opened}")
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Without a display that it can use, GTKWave says so in many lines and ends with status 0.
    if done.returncode or "Could not initialize GTK" in done.stdout:
        last = (done.stdout.strip().splitlines() or [""])[-1]
        raise LanikaiError(f"GTKWave ended with status {done.returncode} and showed nothing: {last}")
    raise typer.Exit(EXIT_OK)


app.command("sweep")(sweep)
app.command("bench")(bench)
app.command("synth")(synth)
app.command("verilog")(verilog)


@app.callback(invoke_without_command=True)
def lanikai(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """A quality-of-service cluster interconnect: run the published experiments on its RTL."""
    if version:
        from ..experiments.framework.results import versions

        print(f"lanikai {versions()['lanikai']}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The program `lanikai`: runs a command and exits with its status. An error is one line on standard error."""
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        # A terminal may lack a letter: that is no reason to lose a result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    keep_caches_together()
    # A warning about a design whose making is interrupted is not the user's concern.
    warnings.filterwarnings("ignore", message=".* created but never used", category=Warning)
    sys.exit(_status(sys.argv[1:] if arguments is None else list(arguments)))


def _end(number: int, frame: Any) -> None:
    raise Ended


def _status(arguments: list[str]) -> int:
    """Run a command. Returns its exit status."""
    try:
        for argument in arguments:
            _check_letters(argument)
        done = app(arguments, prog_name="lanikai", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is said here, not by the interpreter when it ends
        if done == EXIT_INTERRUPTED:
            raise KeyboardInterrupt  # typer turns it into a status
        return done if isinstance(done, int) else EXIT_OK
    except UsageError as error:
        message = " ".join(error.format_message().split())
        return _fail(f"{message} (see `lanikai --help`)", EXIT_USER)
    except ConfigError as error:
        return _fail(str(error), EXIT_USER)
    except LanikaiError as error:
        return _fail(str(error), error.exit_status)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except Ended:
        return _fail("terminated", 128 + signal.SIGTERM)
    except BrokenPipeError:
        # Whoever read our output has gone (`lanikai list | head`): nothing is left to say, and nobody to say
        # it to.
        _drop_output()
        return EXIT_FAILED
    except OSError as error:
        if error.errno not in FULL:
            return _internal_error(error)
        if error.filename is None:
            _drop_output()
        return _fail(
            f"{error.filename or 'standard output'} cannot be written: {error.strerror}", EXIT_FAILED
        )
    except Exception as error:
        return _internal_error(error)


def _check_letters(argument: str) -> None:
    """Raise UserError unless what the shell gave is UTF-8, as the files that repeat it are."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(argument).decode("ascii", "backslashreplace")
        raise UserError(f"argument '{shown}' is not in UTF-8: give a name that is") from None


def _drop_output() -> None:
    """Send standard output nowhere from now on: what is left in its buffer is no error at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal_error(error: Exception) -> int:
    """Tell of a fault of ours: one line, and the traceback in a file."""
    handle, name = tempfile.mkstemp(prefix="lanikai-", suffix=".log")
    with os.fdopen(handle, "w") as log:
        traceback.print_exception(error, file=log)
    what = f"{type(error).__name__}: {error}".partition("\n")[0]
    return _fail(f"internal error: {what} (traceback in {name})", EXIT_FAILED)


def _fail(message: str, status: int) -> int:
    line = message.partition("\n")[0]
    print(f"lanikai: {line}", file=sys.stderr)
    return status
