"""The command `lanikai sweep`."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..errors import LanikaiError, UserError
from ..machine import MOST_THREADS, Threads, cores
from . import backend
from .complete import experiment_names
from .complete import settings as complete_settings
from .json_file import check_json, write_json
from .screen import screen
from .sweep_display import SweepProgress, show_sweep

__all__ = ["sweep"]

TIMEOUT_SECONDS = 3600.0


def sweep(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Experiment, as `lanikai list` shows it.", autocompletion=experiment_names
        ),
    ],
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=A,B,C",
            autocompletion=complete_settings,
            help="Values of a parameter (or of `seed`); given again, every combination is run.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            autocompletion=complete_settings,
            help="A parameter of all combinations (`NAME --help` lists them); may be given again.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Each point as in a quick run (the default).")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Each point as in a full run.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of every run (1 if not given)."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder of this sweep; of one that was interrupted, to go on with it."
        ),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write a summary there; `-`: standard output."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "-j", "--jobs", metavar="N", min=1, max=1024, help="Points run at once on this machine."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_THREADS,
            help="Threads of each simulation (1: points fill the cores).",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port, local:N or slurm:N workers."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=1e7, help="Time limit of a point.")
    ] = TIMEOUT_SECONDS,
) -> None:
    """Run an experiment over a grid of parameters, into one table.

    Exit status: 0 every point has a result; 1 one has failed twice; 2 wrong input; 3 something is missing on
    this machine; 130 interrupted. The same command with the same --out goes on where it stopped.
    """
    from ..build.cache import Cache
    from ..experiments import registry
    from ..experiments.framework.base import Size
    from ..experiments.framework.parameters import shortened
    from ..sweeps.grid import SEED, cases, tasks
    from ..sweeps.store import SweepFolder
    from ..sweeps.sweep import run_sweep
    from . import doctor

    if quick and full:
        raise UserError("--quick and --full: give one of them")
    if jobs is not None and cluster is not None:
        raise UserError("--jobs and --cluster: give one of them (the cluster says how many run at once)")
    if out is not None and not out.strip():
        raise UserError(f"--out {out!r}: give the name of a folder")
    if seed is not None and any(axis.partition("=")[0].strip() == SEED for axis in grid or ()):
        raise UserError("--seed and --grid seed=...: give one of them")
    seed = 1 if seed is None else seed
    if not grid:
        raise UserError("--grid KEY=A,B,C: give at least one (a single set-up: `lanikai run`)")
    experiment = registry.find(shortened(name))
    size: Size = "full" if full else "quick"
    found = cases(experiment, size, grid=grid, settings=settings or [], seed=seed)
    listed = tasks(experiment, size, found)
    check_json(json_file)
    Cache().check()
    doctor.require(doctor.RUN)
    console = screen(stderr=json_file == "-")
    path = (
        Path(out)
        if out is not None
        else Path("results") / f"sweep-{name}-{size}-{time.strftime('%Y%m%d-%H%M%S')}"
    )
    with contextlib.ExitStack() as stack:
        executor = _executor(stack, cluster, jobs, console)
        definition = {
            "experiment": name, "size": size, "seed": seed, "grid": grid, "settings": settings or [],
        }  # fmt: skip
        folder = stack.enter_context(SweepFolder(path, definition, new=out is None))
        path = folder.path
        bars = stack.enter_context(SweepProgress(console, len(listed), path))
        report = run_sweep(
            experiment,
            found,
            listed,
            folder=folder,
            executor=executor,
            backend=backend.make(Threads(threads or 1, asked=threads is not None)),
            timeout_seconds=timeout,
            progress=bars.report,
            failed=bars.failed,
        )
    show_sweep(console, report)
    text = json.dumps(report.as_json(), indent=2, ensure_ascii=False) + "\n"
    write_json(json_file, text)
    if report.failures:
        raise LanikaiError(f"{name}: {len(report.failures)} of {report.points} points have no result")


def _executor(stack: contextlib.ExitStack, cluster: str | None, jobs: int | None, console: Console) -> Any:
    """The executor of the points; `stack` ends it."""
    if cluster is not None:
        from ..sweeps.dask_cluster import connect

        def say(text: str) -> None:
            console.print(text, highlight=False, markup=False, soft_wrap=True)

        return stack.enter_context(connect(cluster, say))
    from ..sweeps.work import LocalExecutor

    return LocalExecutor(workers=jobs or cores())
