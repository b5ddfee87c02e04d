"""The experiments from Python: which there are, their parameters, and one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import ConfigError
from lanikai.sim.errors import Ended, MissingTool, UserError

from .errors import plain
from .results import Run

if TYPE_CHECKING:
    import polars
    from lanikai.sim.experiments.framework.base import Size

__all__ = ["experiments", "parameters", "run"]


@plain
def experiments() -> polars.DataFrame:
    """Every experiment, a row each: `name`, `state` (`built` or `not built yet`), `source`, what it `asks`, and its
    `origin` (`lanikai`, or another distribution)."""
    import polars
    from lanikai.sim.experiments.registry import listing

    columns = ("name", "state", "source", "asks", "origin")
    return polars.DataFrame([{column: getattr(row, column) for column in columns} for row in listing()])


@plain
def parameters(name: str) -> polars.DataFrame:
    """The parameters of an experiment, a row each: `name`, `default` (JSON), the `range` of its values, `meaning`.

    Raises UserError for an unknown experiment.
    """
    import json

    import polars
    from lanikai.sim.experiments.framework.parameters import ranges
    from lanikai.sim.experiments.registry import find

    model = find(name).Parameters
    schema = dict.fromkeys(("name", "default", "range", "meaning"), polars.String)
    listed = [
        (
            key,
            None
            if info.is_required()
            else json.dumps(info.get_default(call_default_factory=True), default=str),
            ranges(model)[key],
            info.description,
        )
        for key, info in model.model_fields.items()
    ]
    return polars.DataFrame(listed, schema=schema, orient="row")


@plain
def run(
    name: str,
    *,
    full: bool = False,
    seed: int = 1,
    seeds: int = 1,
    out: str | Path | None = None,
    jobs: int | None = None,
    quiet: bool = False,
    **parameters: Any,
) -> Run:
    """Run an experiment, as `lanikai run` does, and hold its results against the published ones.

    - `full`: the published size, else the quick one.
    - `seed`, `seeds`: so many runs of each point, from that seed on. Results of several are means.
    - `out`: the folder of its files (default: a new one in `results/`).
    - `jobs`: points that run at once (default: one a core).
    - `quiet`: without progress bars.
    - `parameters`: the experiment's own, as `lanikai.parameters(name)` has them.

    Raises UserError for what is wrong with any of them, before anything is built or written.
    """
    from lanikai.sim.build.cache import Cache
    from lanikai.sim.cli import doctor
    from lanikai.sim.experiments.framework.backend import Simulator
    from lanikai.sim.experiments.framework.points import points_of
    from lanikai.sim.experiments.framework.run_folder import RunFolder
    from lanikai.sim.experiments.framework.runner import execute
    from lanikai.sim.experiments.registry import find
    from lanikai.sim.machine import Threads, cores

    from .screen import bars

    for word, value, least in (("seed", seed, 0), ("seeds", seeds, 1), ("jobs", jobs, 1)):
        if value is not None and (type(value) is not int or value < least):
            raise UserError(f"{word} = {value!r}: a whole number, at least {least}")
    experiment = find(name)
    given = _parameters(experiment, parameters)
    size: Size = "full" if full else "quick"
    points = points_of(experiment, given, size)
    folder = RunFolder(None if out is None else Path(out), experiment=name, size=size, seed=seed)
    try:
        Cache().check()
        doctor.require(doctor.RUN)
        with bars([point.label for point in points], quiet=quiet) as progress:
            report = execute(
                experiment,
                given,
                points=points,
                size=size,
                seed=seed,
                folder=folder,
                backend=Simulator(threads=Threads.share(None, len(points) * seeds, jobs or cores())),
                workers=jobs or cores(),
                seeds=seeds,
                progress=progress,
            )
    except (UserError, ConfigError, MissingTool, KeyboardInterrupt, Ended, SystemExit):
        folder.discard()
        raise
    except Exception:
        folder.keep()  # its logs say what went wrong
        raise
    folder.keep()
    return Run(report, folder.path)


def _parameters(experiment: Any, given: dict[str, Any]) -> Any:
    """The experiment's parameters with the `given` values. Raises UserError in the words of Python."""
    import json
    import re

    from lanikai.sim.experiments.framework.parameters import parse

    def text(value: Any) -> str:
        return str(value) if isinstance(value, str | Path) else json.dumps(value, default=list)

    try:
        return parse(experiment, [f"{key}={text(value)}" for key, value in given.items()])
    except UserError as error:
        message = re.sub(r"^--set ('.*?'|\".*?\"): ", "", str(error))
        raise UserError(re.sub(r"needs --set (\w+)=VALUE", r"needs \1=...", message)) from None
