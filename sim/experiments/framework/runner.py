"""Runs of an experiment: build the systems of its points, run the points in parallel, compare, write the files."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import LanikaiError, SimulationError
from ...input_files import keep_inputs
from ...waves.window import WaveWindow
from .backend import Backend, Built, Job, Measured, Variant
from .base import Claim, Experiment, Outcome, Point, Size
from .command import run_command
from .plots import save_figure, save_plot
from .pool import JobCrash, ended_jobs
from .repetitions import average, judged
from .results import Report, versions, write_csv
from .run_folder import RunFolder
from .tables import table_rows, write_tables

__all__ = ["execute", "point_seed"]

BUILD = -1
"""Index of the build in reports of progress; points count from 0."""


def point_seed(seed: int, experiment: str, index: int, workload: str = "") -> int:
    """The seed of a point: 31 bits.

    They follow from the run's seed, the experiment, and the point's workload or, if it names none, its place.
    """
    place = workload or index
    digest = hashlib.blake2b(f"{seed}/{experiment}/{place}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") & 0x7FFFFFFF


def execute(
    experiment: Experiment,
    parameters: Any,
    *,
    points: Sequence[Point],
    size: Size,
    seed: int,
    folder: RunFolder,
    backend: Backend,
    variant: Variant = "fast",
    workers: int = 1,
    seeds: int = 1,
    window: WaveWindow | None = None,
    progress: Callable[[int, float, str], None] = lambda index, fraction, text: None,
) -> Report:
    """Run `points` of an experiment and write its files into `folder`.

    - `window`: the part of each point that goes into its waves.
    - `seeds`: so often, with the seeds `seed`, `seed + 1`, ...; results are then means (`repetitions.average`).
    - `progress`: is told `BUILD` or a point's index, a fraction and a line of text.

    If a point fails, those that run are ended. The results of those that have ended are written, without claims and
    plot, and the failure is raised.

    The report, and the bytes of CSV and plot, depend on neither `workers` nor the order in which points end. Raises
    LanikaiError.
    """
    folder.clear()
    inputs = keep_inputs(parameters, folder.file("inputs"))
    systems = [experiment.system(parameters, point) for point in points]
    built = _build(backend, systems, variant, progress)
    models = [next(model for known, model in built if known == system) for system in systems]
    jobs = []
    for index, point in enumerate(points):
        for number in range(seeds):
            place = folder.file("points") / (f"{index:02d}" if seeds == 1 else f"{index:02d}-{number}")
            place.mkdir(parents=True)
            seed_here = point_seed(seed + number, experiment.name, index, point.workload)
            jobs.append(
                Job(
                    window=window,
                    system=systems[index],
                    entry=experiment.entry,
                    spec=point.spec,
                    seed=seed_here,
                    folder=place,
                )
            )
    fractions = [0.0] * len(jobs)

    def tell(job: int, fraction: float, text: str) -> None:
        fractions[job] = fraction
        index = job // seeds
        progress(index, sum(fractions[index * seeds : (index + 1) * seeds]) / seeds, text)

    of_each = [model for model in models for _ in range(seeds)]
    done: dict[int, Measured] = {}
    failed: tuple[int, LanikaiError | JobCrash] | None = None
    with contextlib.closing(ended_jobs(backend, of_each, jobs, workers=workers, progress=tell)) as ended:
        for number, what in ended:
            if isinstance(what, Exception):
                failed = number // seeds, what
                break
            done[number] = what
    whole = [
        index
        for index in range(len(points))
        if all(index * seeds + number in done for number in range(seeds))
    ]
    if failed and not (whole and isinstance(failed[1], SimulationError | JobCrash)):
        raise failed[1]
    kept = [index * seeds + number for index in whole for number in range(seeds)]
    single = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, measured.values),
            seed=job.seed,
            cycles=measured.cycles,
            wall_seconds=measured.wall_seconds,
            log=measured.log,
            waves=measured.waves,
            series=measured.values.get("series", {}),
            tables=experiment.tables(parameters, point, measured.values),
        )
        for point, job, measured in ((points[number // seeds], jobs[number], done[number]) for number in kept)
    ]
    outcomes = [average(single[first : first + seeds]) for first in range(0, len(single), seeds)]
    tables = table_rows(
        ({"point": number // seeds, "seed": one.seed}, one.tables) for number, one in enumerate(single)
    )
    claims: Sequence[Claim] = ()
    if not failed:
        claims = judged([experiment.claims(parameters, single[number::seeds]) for number in range(seeds)])
    report = _write(
        experiment,
        parameters,
        outcomes,
        claims,
        tables,
        folder,
        [model for _, model in built],
        size=size,
        seed=seed,
        seeds=seeds,
        inputs=inputs,
        failures=[(points[failed[0]].label, str(failed[1]))] if failed else [],
    )
    if failed:
        _, error = failed
        if isinstance(error, SimulationError):
            error.args = (
                f"{points[failed[0]].label}: {error}; the results of {len(whole)} of {len(points)} points are in "
                f"{folder.path}",
            )
        raise error
    return report


def _build(
    backend: Backend, systems: Sequence[Any], variant: Variant, progress: Callable[[int, float, str], None]
) -> list[tuple[Any, Built]]:
    """The model of each of the different systems."""
    different: list[Any] = []
    for system in systems:
        if system not in different:
            different.append(system)
    built: list[tuple[Any, Built]] = []
    for system in different:

        def tell(fraction: float, text: str) -> None:
            progress(BUILD, (len(built) + fraction) / len(different), text)

        built.append((system, backend.build(system, variant, tell)))
    cached = all(model.cached for _, model in built)
    progress(BUILD, 1.0, "built before" if cached else "built")
    return built


def _write(
    experiment: Experiment,
    parameters: Any,
    outcomes: Sequence[Outcome],
    claims: Sequence[Claim],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    folder: RunFolder,
    models: Sequence[Built],
    *,
    size: Size,
    seed: int,
    seeds: int,
    inputs: Mapping[str, str],
    failures: Sequence[tuple[str, str]],
) -> Report:
    """Write every file of the run; the JSON file last, as it names the others."""
    files: dict[str, Any] = {
        "csv": str(folder.file("results.csv")),
        "json": str(folder.file("results.json")),
        **({} if failures else {"plot": str(folder.file("plot.png"))}),
        "log": str(folder.file("run.log")),
    }
    if inputs:
        files["inputs"] = list(inputs.values())
    if tables:
        write_tables(folder.file("tables"), tables)
        files["tables"] = str(folder.file("tables"))
    plots = experiment.more_plots(parameters, outcomes) if not failures else {}
    if plots:
        folder.file("plots").mkdir()
        files["plots"] = [str(folder.file("plots") / f"{name}.png") for name in plots]
    waves = [outcome.waves for outcome in outcomes if outcome.waves]
    if waves:
        files |= {"waves": waves[0], "waves_of_points": waves}
    report = Report(
        experiment=experiment.name,
        size=size,
        seed=seed,
        outcomes=outcomes,
        claims=claims,
        build_seconds=sum(model.seconds for model in models),
        build_cached=all(model.cached for model in models),
        files=files,
        by_flow=experiment.by_flow,
        element=experiment.element,
        first_element=experiment.first_element,
        failed_points=failures,
        notes=experiment.notes(parameters, [outcome.point for outcome in outcomes]),
        parameters=parameters.model_dump(mode="json"),
        command=run_command(experiment.name, parameters, size=size, seed=seed, seeds=seeds, places=inputs),
    )
    numbers = experiment.by_flow, experiment.element, experiment.first_element
    write_csv(folder.file("results.csv"), outcomes, *numbers)
    if not failures:
        save_plot(folder.file("plot.png"), experiment, parameters, outcomes)
    for name, draw in plots.items():
        save_figure(folder.file("plots") / f"{name}.png", draw)
    folder.file("run.log").write_text(_log(experiment, parameters, outcomes, size=size, seed=seed))
    folder.file("results.json").write_text(report.json_text())
    return report


def _log(
    experiment: Experiment, parameters: Any, outcomes: Sequence[Outcome], *, size: Size, seed: int
) -> str:
    """The run's log: what was run, then the log of each point's simulation."""
    lines = [f"lanikai run {experiment.name}: size {size}, seed {seed}"]
    lines += [f"version of {name}: {number}" for name, number in versions().items()]
    lines += [f"parameter {name} = {value}" for name, value in parameters.model_dump(mode="json").items()]
    for index, outcome in enumerate(outcomes):
        lines += ["", f"point {index}: {outcome.point.label}: seed {outcome.seed}, {outcome.cycles} cycles"]
        lines += [json.dumps(dict(outcome.results))]
        if outcome.log and Path(outcome.log).is_file():
            lines += [Path(outcome.log).read_text(errors="replace").rstrip()]
    return "\n".join(lines) + "\n"
