"""The grid of a sweep: which settings of an experiment are run, and which points that makes."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanikai.hdl.config import Config
from pydantic import BaseModel

from ..errors import UserError
from ..experiments.framework.base import Experiment, Point, Size
from ..experiments.framework.parameters import parse, shortened
from ..experiments.framework.points import points_of
from ..experiments.framework.runner import point_seed
from ..input_files import InputFile, input_files, marked
from .code import code_here

__all__ = ["SEED", "Case", "Task", "cases", "tasks"]

SEED = "seed"
"""Name that stands for the run's seed in a grid, beside the experiment's parameters."""
MAX_SEED = 2**63 - 1
MAX_CASES = 100_000
"""More combinations than this are taken for a mistake."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One combination of a grid.

    - `parameters`: the experiment's.
    - `seed`: the run's.
    - `points`: the points that `lanikai run` with the same settings would run.
    - `inputs`: the files that the parameters name, as they were when the points were made.
    """

    parameters: Config
    seed: int
    points: Sequence[Point]
    inputs: Sequence[InputFile] = ()

    def settings(self) -> dict[str, Any]:
        """Every parameter by name, and the seed, as JSON values."""
        return self.parameters.model_dump(mode="json") | {SEED: self.seed}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One point of one case.

    - `key`: the same for the same work, whatever else the grid holds. It follows from the system, the spec, the seed,
      the content of every input file and the code.
    - `seed`: the seed that `lanikai run` gives the point.
    - `system`: the system that it runs on. Points with equal ones have the same object.
    - `spec`: its spec, with marks in place of the paths of input files.
    """

    key: str
    case: int
    index: int
    seed: int
    label: str
    system: Any
    spec: Mapping[str, Any]


def cases(
    experiment: Experiment, size: Size, *, grid: Sequence[str], settings: Sequence[str], seed: int
) -> list[Case]:
    """The combinations of `grid` (`key=a,b,c` each), the last key fastest, on top of `settings` (`key=value`).

    Raises UserError for a grid that is not one, an unknown name, or a value that the experiment refuses in any
    combination.
    """
    axes: dict[str, list[str]] = {}
    for axis in grid:
        key, equals, text = axis.partition("=")
        key = key.strip()
        if not equals or not key or not text.strip():
            raise UserError(f"--grid {shortened(axis)!r}: not of the form key=a,b,c")
        if key in axes:
            raise UserError(f"--grid {shortened(axis)!r}: {shortened(key)!r} is in the grid twice")
        values = _values(text)
        if "" in values:
            raise UserError(f"--grid {shortened(axis)!r}: a value is empty")
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise UserError(f"--grid {shortened(axis)!r}: the value {shortened(twice[0])!r} is given twice")
        axes[key] = values
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MAX_CASES:
        raise UserError(f"--grid: {count} combinations: at most {MAX_CASES}")
    seeds = [_seed(value) for value in axes.pop(SEED)] if SEED in axes else [seed]
    found = []
    for choice in itertools.product(*axes.values()):
        chosen = [f"{key}={value}" for key, value in zip(axes, choice, strict=True)]
        parameters = parse(experiment, settings, chosen)
        # Before the points, which may hold what stands in the files.
        inputs = input_files(parameters)
        points = points_of(experiment, parameters, size)
        found += [Case(parameters=parameters, seed=number, points=points, inputs=inputs) for number in seeds]
    return found


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MAX_SEED:
        raise UserError(f"--grid seed: {shortened(text)!r}: 0 to {MAX_SEED}")
    return int(text)


def _values(text: str) -> list[str]:
    """`text` cut at its commas, except those in brackets, braces and quoted strings: values may be JSON."""
    values, depth, quoted, escaped = [""], 0, False, False
    for letter in text:
        if quoted:
            quoted = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            values.append("")
            continue
        values[-1] += letter
    return [value.strip() for value in values]


def tasks(experiment: Experiment, size: Size, found: Sequence[Case]) -> list[Task]:
    """The points of all cases, in the grid's order. Raises UserError if two are the same work."""
    settings = [case.settings() for case in found]
    varied = [key for key in settings[0] if any(one[key] != settings[0][key] for one in settings)]
    code = code_here()
    listed: dict[str, Task] = {}
    # Cases that differ in the seed alone share their points: those are looked at once.
    known: dict[tuple[int, int], tuple[Any, Mapping[str, Any], str]] = {}
    systems: dict[str, Any] = {}
    for number, case in enumerate(found):
        for index, point in enumerate(case.points):
            place = id(case.parameters), index
            if place not in known:
                system = experiment.system(case.parameters, point)
                text = _text(system)
                spec = marked(dict(point.spec), case.inputs)
                work = _digest(
                    [
                        experiment.name,
                        size,
                        case.parameters.model_dump(mode="json"),
                        spec,
                        index,
                        text,
                        [file.mark for file in case.inputs],
                        [code.digest, dict(code.versions)],
                    ]
                )
                known[place] = systems.setdefault(text, system), spec, work
            system, spec, work = known[place]
            seed = point_seed(case.seed, experiment.name, index, point.workload)
            task = Task(
                key=_digest([work, seed]),
                case=number,
                index=index,
                seed=seed,
                label=" ".join([*(f"{key}={settings[number][key]}" for key in varied), point.label]),
                system=system,
                spec=spec,
            )
            if task.key in listed:
                raise UserError(f"--grid: two combinations are the same: {task.label}")
            listed[task.key] = task
    return list(listed.values())


def _text(system: Any) -> str:
    """A system as text, every field of it."""
    kind = f"{type(system).__module__}:{type(system).__qualname__}"
    fields = system.model_dump_json() if isinstance(system, BaseModel) else repr(system)
    return f"{kind} {fields}"


def _digest(what: Any) -> str:
    """A name for JSON values, of 16 hexadecimal digits; a point's is also the name of its files."""
    return hashlib.blake2b(json.dumps(what, sort_keys=True).encode(), digest_size=8).hexdigest()
