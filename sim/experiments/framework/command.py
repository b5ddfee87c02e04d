"""The command that repeats a run, made of what differs from the defaults."""

from __future__ import annotations

import json
import shlex
from typing import Any

from .base import Size

__all__ = ["run_command", "settings_of"]


def settings_of(parameters: Any) -> list[str]:
    """The `key=value` of each parameter that has not its default, as `--set` takes them."""
    changed = parameters.model_dump(mode="json", exclude_defaults=True)
    return [
        f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for key, value in changed.items()
    ]


def run_command(experiment: str, parameters: Any, *, size: Size, seed: int, seeds: int = 1) -> str:
    """The command line, quoted for a shell, whose run has the same points and seeds."""
    words = ["lanikai", "run", experiment]
    if size == "full":
        words.append("--full")
    for setting in settings_of(parameters):
        words += ["--set", setting]
    words += ["--seed", str(seed)]
    if seeds > 1:
        words += ["--seeds", str(seeds)]
    return shlex.join(words)
