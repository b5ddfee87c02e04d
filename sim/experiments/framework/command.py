"""The command that repeats a run, made of what differs from the defaults."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .base import Size

__all__ = ["run_command", "settings_of"]


def settings_of(parameters: Any, places: Mapping[str, str] | None = None) -> list[str]:
    """The `key=value` of each parameter that has not its default, as `--set` takes them. `places`: where a copy of each
    file is, by its absolute path, which is named in its place."""
    changed = _placed(parameters.model_dump(mode="json", exclude_defaults=True), places or {})
    return [
        f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for key, value in changed.items()
    ]


def _placed(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _placed(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [_placed(one, places) for one in value]
    if places and isinstance(value, str):
        return places.get(str(Path(value).absolute()), value)
    return value


def run_command(
    experiment: str,
    parameters: Any,
    *,
    size: Size,
    seed: int,
    seeds: int = 1,
    places: Mapping[str, str] | None = None,
) -> str:
    """The command line, quoted for a shell, whose run has the same points and seeds. `places` as in `settings_of`."""
    words = ["lanikai", "run", experiment]
    if size == "full":
        words.append("--full")
    for setting in settings_of(parameters, places):
        words += ["--set", setting]
    words += ["--seed", str(seed)]
    if seeds > 1:
        words += ["--seeds", str(seeds)]
    return shlex.join(words)
