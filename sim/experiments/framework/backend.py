"""The runner's view of the simulator, as a protocol, and the simulator itself behind it.

The tests of the framework put a plain Python backend in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ...machine import ONE_THREAD, Threads
from ...systems.no_model import NoModel
from ...waves.window import WaveWindow

__all__ = ["Backend", "Built", "Job", "Measured", "Progress", "Simulator", "System", "Variant"]

Progress = Callable[[float, str], None]
"""A function that is told a fraction, 0 to 1, and a line of text."""

Variant = Literal["fast", "debug", "waves"]
"""`fast`: few visible signals; `debug`: all of them; `waves`: all of them, written to a file."""


class Built(Protocol):
    """A model that can be run. `cached`: it came from the cache; `seconds`: the time that building took."""

    @property
    def cached(self) -> bool:
        """Whether the model was there already."""

    @property
    def seconds(self) -> float:
        """Time that building took."""


class System(Protocol):
    """A configuration that can be simulated: a `lanikai.sim.systems.base.SystemConfig`, or what a test has for it."""

    def build(self, variant: Variant = "fast", progress: Progress | None = None) -> Any:
        """The system's model (`lanikai.sim.build.model.Model`), from the cache if it was built before."""

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and the spec that `run.run` is given to have `entry` run on it with `spec`."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One point to run.

    - `system`: the system that it runs on.
    - `entry`: the coroutine, `module:name`.
    - `spec`: the coroutine's spec.
    - `seed`: the point's seed.
    - `folder`: the folder for what the simulation writes.
    - `timeout_seconds`: it is ended after so much wall-clock time.
    - `window`: the part of the run that a traced model writes waves of (default: all).
    """

    system: Any
    entry: str
    spec: Mapping[str, Any]
    seed: int
    folder: Path
    timeout_seconds: float | None = None
    window: WaveWindow | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The outcome of a job.

    - `values`: those of the coroutine.
    - `cycles`: the cycles simulated.
    - `wall_seconds`: the time they took.
    - `log`, `waves`: files, where there are any.
    """

    values: Mapping[str, Any]
    cycles: int
    wall_seconds: float
    log: str | None = None
    waves: str | None = None


class Backend(Protocol):
    """Builds a system's model and runs points on it. `run` is called in a process of its own."""

    def build(self, system: Any, variant: Variant, progress: Progress) -> Built:
        """The model of a `System`. Raises MissingTool."""

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """Run one point. Raises LanikaiError."""


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """The backend that runs RTL: Verilator, by `lanikai.sim.build.model` and `lanikai.sim.run`. A system without RTL
    (`lanikai.sim.systems.no_model`) runs by itself.

    `threads`: those of each simulation.
    """

    threads: Threads = ONE_THREAD

    def build(self, system: Any, variant: Variant, progress: Progress) -> Built:
        """The system's model, from the cache if it was built before."""
        built: Built = system.build(variant, progress)
        return built

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """Run the point in a simulator process; in this process where the system has no RTL."""
        if isinstance(model, NoModel):
            values, cycles, seconds = model.run(job.entry, job.spec, seed=job.seed, progress=progress)
            return Measured(values=values, cycles=cycles, wall_seconds=seconds)
        from ...run import run

        entry, spec = job.system.job(job.entry, job.spec)
        done = run(
            model,
            entry,
            spec,
            out_dir=job.folder,
            seed=job.seed,
            progress=progress,
            name="point",
            timeout_seconds=job.timeout_seconds,
            window=job.window,
            threads=self.threads,
        )
        return Measured(
            values=done.value,
            cycles=done.cycles,
            wall_seconds=done.seconds,
            # As the user named the folder: relative paths stay relative.
            log=str(job.folder / done.log.name),
            waves=str(job.folder / done.waves.name) if done.waves else None,
        )
