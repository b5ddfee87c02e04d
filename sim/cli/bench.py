"""The command `lanikai bench`."""

from __future__ import annotations

import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from ..machine import MOST_THREADS, ONE_THREAD, Threads
from ..paths import CACHE_VARIABLE
from .json_file import JsonFile, check_json, write_json
from .screen import screen

if TYPE_CHECKING:
    from ..speed.cases import BenchCase

__all__ = ["bench"]


def bench(
    names: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="NAME", help="A model, or a model at a load; may be given again."),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Stretches of each case.")] = 5,
    build: Annotated[
        bool, typer.Option("--build", help="Build every model from an empty cache, to measure that.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            max=MOST_THREADS,
            help="Measure networks on N threads and on one in turns, by wall-clock time: on a machine at rest.",
        ),
    ] = None,
    json_file: JsonFile = None,
    full: Annotated[bool, typer.Option("--full", help="The cases that take minutes, too.")] = False,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="PEER[=PROGRAM]",
            help="Run another simulator in turns with ours: booksim2, found on PATH or named.",
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE", help="Hold the speeds against those of an earlier report.")
    ] = None,
) -> None:
    """Measure how fast simulations are here: medians of several runs, one case at a time.

    `model alone` is the same model in the same state, run by a loop in C++ without Python; `ratio` is of
    neighbouring stretches. With hosts in Python, a second table says where their time goes. With --beside, there is
    one turn of both for each of --runs seeds, and a table of both.
    """
    from ..build.cache import Cache
    from ..speed.beside import Beside, beside_table, wall_table
    from ..speed.cases import find_cases
    from ..speed.peers import find_peer
    from ..speed.report import BenchReport, earlier, result
    from . import doctor

    if names and full:
        raise UserError("--case and --full: give one of them (a large case is run when it is named)")
    cases = find_cases(names or ([] if threads is None else ["mesh8x8"]), full=full)
    pair: Beside | None = None
    if beside is not None:
        peer, program = find_peer(beside)
        if not names:
            cases = [case for case in cases if not peer.refuses(case)]
        pair = Beside(peer, program, cases)
    if threads is not None and (build or full or compare is not None or beside is not None):
        raise UserError("--threads: not with --build, --full, --compare or --beside")
    before = None if compare is None else earlier(Path(compare))
    check_json(json_file)
    Cache().check()
    doctor.require(doctor.RUN)
    console = screen(stderr=json_file == "-")
    if threads is not None:
        _bench_threads(console, cases, threads, runs, json_file)
        return
    results, sides = [], []
    with tempfile.TemporaryDirectory(prefix="lanikai-bench-") as scratch:
        if build:
            os.environ[CACHE_VARIABLE] = f"{scratch}/cache"
        seconds: dict[str, float | None] = {}
        for case in cases:
            console.print(f"{case.name} ...", highlight=False)
            system = case.system()
            model = system.build()
            if not model.cached:
                seconds[case.model] = model.seconds
            go = partial(_run, case, system, model, Path(scratch) / case.name)
            if pair is None:
                measured = go(runs, 1)
            else:
                side, mine = pair.compare(case, range(1, runs + 1), partial(go, 1))
                sides.append(side)
                measured = mine[0] | {"samples": [one["samples"][0] for one in mine]}
            results.append(result(case, measured, seconds.get(case.model)))
    report = BenchReport(results=results, before=before, beside=None if pair is None else pair.as_json(sides))
    console.print(report.table())
    if profiles := report.profiles():
        console.print()
        console.print(profiles)
    if pair is not None:
        console.print()
        console.print(beside_table(pair.peer.name, sides))
        console.print()
        console.print(wall_table(pair.peer.name, sides))
        for sentence in pair.peer.differences:
            console.print(sentence, highlight=False, markup=False)
    if before:
        console.print(f"before: {_machine(before)}", highlight=False)
    console.print(f"here: {_machine(report.as_json())}", highlight=False)
    text = json.dumps(report.as_json(), indent=2) + "\n"
    write_json(json_file, text)


def _run(
    case: BenchCase,
    system: Any,
    model: Any,
    folder: Path,
    runs: int,
    seed: int,
    threads: Threads = ONE_THREAD,
) -> dict[str, Any]:
    """Run so many stretches of a case; gives what they measured."""
    from ..run import run

    entry, spec = system.job(*case.job(runs))
    measured: dict[str, Any] = run(model, entry, spec, out_dir=folder, seed=seed, threads=threads).value
    return measured


def _bench_threads(console: Any, cases: Any, threads: int, runs: int, json_file: str | None) -> None:
    from ..speed.threads import measure_threads, threads_json, threads_table

    def tell(name: str) -> None:
        console.print(f"{name} ...", highlight=False)

    with tempfile.TemporaryDirectory(prefix="lanikai-bench-") as scratch:
        results = measure_threads(cases, threads, runs, Path(scratch), tell)
    console.print(threads_table(results))
    text = json.dumps(threads_json(results), indent=2) + "\n"
    write_json(json_file, text)


def _machine(report: Any) -> str:
    found = report["machine"]
    return f"{found['processor']}, {found['cores']} cores, {found['system']}"
