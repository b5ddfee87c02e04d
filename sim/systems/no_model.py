"""Systems without RTL: an experiment whose points run in plain Python, in a process each as all others do."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from random import Random
from typing import Any

from lanikai.hdl.config import Config

from ..errors import UserError

__all__ = ["NO_MODEL", "NoModel", "PlainConfig", "PlainSystem"]

Progress = Callable[[float, str], None]


class PlainSystem:
    """The system that a point's coroutine is given.

    - `seed`, `random`: the point's.
    - `progress`: is told a fraction and a line of text.
    - `cycles`: the cycles that have been simulated, which the coroutine says.
    """

    def __init__(self, seed: int, progress: Progress) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.progress = progress
        self.cycles = 0


class NoModel:
    """The model of such a system: there is nothing to build, and `run` is the whole simulation."""

    cached = True
    seconds = 0.0

    def run(
        self, entry: str, spec: Mapping[str, Any], *, seed: int, progress: Progress
    ) -> tuple[Mapping[str, Any], int, float]:
        """Run a point's coroutine, which waits for nothing. Returns its values, the cycles simulated, and the seconds
        of wall-clock time."""
        module, _, name = entry.partition(":")
        system = PlainSystem(seed, progress)
        coroutine: Coroutine[Any, Any, Mapping[str, Any]] = getattr(import_module(module), name)(system, spec)
        began = time.perf_counter()
        try:
            coroutine.send(None)
        except StopIteration as end:
            values: Mapping[str, Any] = end.value
        else:
            raise TypeError(f"{entry} waits for something, and there is no simulator")
        return values, system.cycles, time.perf_counter() - began


NO_MODEL = NoModel()


class PlainConfig(Config):
    """The configuration of a system without RTL. Its points' specs say all."""

    def build(self, variant: str = "fast", progress: Progress | None = None) -> NoModel:
        """Nothing is built. Raises UserError for waves."""
        if variant == "waves":
            raise UserError("there are no waves: nothing of this experiment is RTL")
        return NO_MODEL

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and spec, as they are."""
        return entry, dict(spec)
