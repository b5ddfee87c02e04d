"""The command `lanikai bench`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from ..paths import CACHE_VARIABLE
from .screen import screen

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
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the report there; `-`: standard output."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE", help="Hold the speeds against those of an earlier report.")
    ] = None,
) -> None:
    """Measure how fast simulations are here: medians of several runs, one case at a time.

    `model alone` is the same model in the same state, run by a loop in C++ without Python; `ratio` is of
    neighbouring stretches. With hosts in Python, a second table says where their time goes.
    """
    from ..build.cache import Cache
    from ..experiments.framework.results import check_file
    from ..run import run
    from ..speed.cases import find_cases
    from ..speed.report import BenchReport, earlier, result
    from . import doctor

    cases = find_cases(names or [])
    before = None if compare is None else earlier(Path(compare))
    if json_file not in (None, "-"):
        check_file(Path(json_file), "--json")
    Cache().check()
    doctor.require(doctor.RUN)
    console = screen(stderr=json_file == "-")
    results = []
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
            entry, spec = system.job(*case.job(runs))
            done = run(model, entry, spec, out_dir=Path(scratch) / case.name, seed=1)
            results.append(result(case, done.value, seconds.get(case.model)))
    report = BenchReport(results=results, before=before)
    console.print(report.table())
    if profiles := report.profiles():
        console.print()
        console.print(profiles)
    if before:
        console.print(f"before: {_machine(before)}", highlight=False)
    console.print(f"here: {_machine(report.as_json())}", highlight=False)
    text = json.dumps(report.as_json(), indent=2) + "\n"
    if json_file == "-":
        sys.stdout.write(text)
    elif json_file:
        Path(json_file).write_text(text)


def _machine(report: Any) -> str:
    found = report["machine"]
    return f"{found['processor']}, {found['cores']} cores, {found['system']}"
