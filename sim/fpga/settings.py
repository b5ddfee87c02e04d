"""The settings of designs and of their experiments in words: names, values, defaults on each board."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..experiments.framework.parameters import ranges
from .designs import find_design

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from .size import BoardExperiment

__all__ = ["Setting", "design_settings", "experiment_name", "host_settings"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A name that `--set` takes.

    - `name`: the name.
    - `values`: the values that it takes, in words.
    - `default`: its value by itself, as it stands after `--set NAME=`. Where boards differ, the value of most comes
      first, and then that of each other board.
    - `what`: its meaning.
    """

    name: str
    values: str
    default: str
    what: str


def design_settings(design: str) -> list[Setting]:
    """The sizes of a design, as `lanikai fpga build` and `simulate` take them. Raises UserError."""
    sizes = find_design(design).sizes
    return _settings(type(next(iter(sizes.values()))), sizes)


def experiment_name(design: str) -> str:
    """The name of the experiment that runs on a design. Raises UserError."""
    return next(iter(_experiments(design).values())).name


def host_settings(design: str) -> list[Setting]:
    """The parameters of a design's experiment that a host may set, as `lanikai fpga read` takes them. Raises
    UserError."""
    experiments = _experiments(design)
    one = next(iter(experiments.values()))
    values = {board: experiment.parameters([]) for board, experiment in experiments.items()}
    return _settings(one.Parameters, values, one.host_sets)


def _experiments(design: str) -> dict[str, BoardExperiment]:
    """The experiment on a design, for its size on each board."""
    found = find_design(design)
    return {board: found.experiment(size) for board, size in found.sizes.items()}


def _settings(
    part: type[BaseModel], values: Mapping[str, Any], names: Iterable[str] | None = None
) -> list[Setting]:
    right = ranges(part)
    return [
        Setting(
            name=name,
            values=right[name],
            default=_default({board: getattr(one, name) for board, one in values.items()}),
            what=str(part.model_fields[name].description),
        )
        for name in names or part.model_fields
    ]


def _default(values: Mapping[str, Any]) -> str:
    """The value of most boards, and of each board that has another one."""
    texts = {board: value if isinstance(value, str) else json.dumps(value) for board, value in values.items()}
    ((most, _),) = Counter(texts.values()).most_common(1)
    return "; ".join([most, *(f"{board}: {text}" for board, text in texts.items() if text != most)])
