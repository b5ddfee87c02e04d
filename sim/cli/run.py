"""`lanikai run`: an experiment, its parameters checked, its results held against the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from lanikai.hdl.config import ConfigError

from ..errors import Ended, LanikaiError, MissingTool, UserError
from ..machine import MOST_THREADS, Threads, cores
from . import backend
from .complete import experiment_names
from .complete import settings as complete_settings
from .json_file import JsonFile, check_json, write_json
from .screen import screen

if TYPE_CHECKING:
    from ..waves.window import WaveWindow

__all__ = ["run"]


def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Experiment, as `lanikai list` shows it.", autocompletion=experiment_names
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            autocompletion=complete_settings,
            help="A parameter of the experiment (`NAME --help` lists them); may be given again.",
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
    json_file: JsonFile = None,
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
        bool,
        typer.Option(
            "--debug", help="Make every signal visible, and watch every interface (5 times slower)."
        ),
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
    from ..experiments.framework.points import points_of
    from ..experiments.framework.run_folder import RunFolder
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
    points = points_of(experiment, parameters, size)
    if window is not None:
        for point in points:
            window.check(experiment.system(parameters, point))
    check_json(json_file)
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
    write_json(json_file, report.json_text())
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
