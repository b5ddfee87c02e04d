"""Systems without RTL: an experiment whose points run in plain Python, in a process each as all others do."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config

from ..errors import UserError

if TYPE_CHECKING:
    from ..experiments.framework.backend import Job, Measured, Progress

__all__ = ["NO_MODEL", "NoModel", "PlainConfig", "PlainSystem"]


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

    def run(self, job: Job, progress: Progress, measured: Callable[..., Measured]) -> Measured:
        """Run a point's coroutine, which waits for nothing. Gives `measured` of what it returns."""
        module, _, name = job.entry.partition(":")
        system = PlainSystem(job.seed, progress)
        coroutine: Coroutine[Any, Any, Mapping[str, Any]] = getattr(import_module(module), name)(
            system, job.spec
        )
        began = time.perf_counter()
        try:
            coroutine.send(None)
        except StopIteration as end:
            values: Mapping[str, Any] = end.value
        else:
            raise TypeError(f"{job.entry} waits for something, and there is no simulator")
        return measured(values=values, cycles=system.cycles, wall_seconds=time.perf_counter() - began)


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
