"""The command line. Each command checks the user's arguments, calls the library, and shows the result.

Heavy libraries (Amaranth, cocotb, matplotlib, polars) are imported by the commands that need them.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from lanikai.hdl.config import ConfigError

from ..errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_USER,
    FULL,
    Ended,
    LanikaiError,
    UserError,
)
from ..names import unknown
from ..paths import keep_caches_together
from ..tables import fitted
from .bench import bench
from .fpga import fpga
from .report import report
from .run import run
from .run_help import ExperimentCommand
from .schema import schema
from .screen import screen
from .sweep import sweep
from .synth import synth
from .told import told
from .topology import topology
from .verilog import verilog

__all__ = ["app", "main"]

app = typer.Typer(
    name="lanikai",
    help="A quality-of-service cluster interconnect: run the published experiments on its RTL.",
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

UsageError: Any = typer.BadParameter.__mro__[1]
"""The parser's base class of wrong usage; typer does not name it."""


@app.command("list")
def list_experiments() -> None:
    """List every experiment: where it is from, and whether it is built. Then extensions of other distributions."""
    from ..experiments.framework.display import list_table
    from ..experiments.registry import listing
    from ..extensions import outside_lines

    console = screen()
    console.print(fitted(list_table(listing()), console))
    for line in outside_lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)


app.command("run", cls=ExperimentCommand)(run)


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
    console.print(fitted(table, console))
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
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="Write the way of each packet for Perfetto instead, beside the waveform."
        ),
    ] = False,
) -> None:
    """Open a waveform of a run in GTKWave, signals grouped and enums decoded; or write a trace of its packets.

    The trace needs pywellen, which pip installs (the extra `waves`).
    """
    from ..waves.fst import waveforms
    from . import doctor

    if not run_folder.is_dir():
        raise UserError(f"there is no folder {str(run_folder)!r}: give the folder of a run made with --waves")
    found = waveforms(run_folder)
    if not found:
        raise UserError(f"no waveform (*.fst) in {str(run_folder)!r}: make the run with --waves")
    if point >= len(found):
        raise UserError(f"--point {point}: {str(run_folder)!r} has waveforms 0 to {len(found) - 1}")
    if trace:
        from ..waves.packet_trace import write_trace

        print(write_trace(found[point]))
        return
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


app.command("sweep", cls=ExperimentCommand)(sweep)
app.command("report")(report)
app.command("bench")(bench)
app.command("schema")(schema)
app.command("synth")(synth)
app.command("verilog")(verilog)
app.command("topology")(topology)
app.add_typer(fpga, name="fpga")


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
        # The parser takes no terminal to be narrower than 50.
        columns = max(shutil.get_terminal_size().columns, 30)
        narrow = {"terminal_width": columns - 2} if columns < 52 else {}
        done = app(arguments, prog_name="lanikai", standalone_mode=False, **narrow)
        sys.stdout.flush()  # what cannot be written is said here, not by the interpreter when it ends
        if done == EXIT_INTERRUPTED:
            raise KeyboardInterrupt  # typer turns it into a status
        return done if isinstance(done, int) else EXIT_OK
    except UsageError as error:
        return _fail(_usage(error), EXIT_USER)
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


def _usage(error: Any) -> str:
    """Wrong usage in one line: what is wrong, and the command whose help says what would be right."""
    message, context = " ".join(error.format_message().split()), error.ctx
    path = context.command_path if context is not None else "lanikai"
    if found := re.match(r"No such command '(.*?)'\.", message):
        return str(unknown("command", found[1], context.command.list_commands(context)))
    return f"{message} (see `{path} --help`)"


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
    columns = shutil.get_terminal_size().columns
    lines = told(f"lanikai: {message}", columns=columns, wrapped=sys.stderr.isatty())
    print("\n".join(lines), file=sys.stderr)
    return status
