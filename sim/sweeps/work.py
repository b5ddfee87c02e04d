"""The work of a sweep: its points, the executors that run them, and the one for this machine's cores."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import LanikaiError
from ..experiments.framework.backend import Backend, Job
from ..experiments.framework.pool import JobCrash, ended_jobs

__all__ = ["Done", "Executor", "Failure", "LocalExecutor", "Work"]

LOG_CHARACTERS = 100_000
"""Most characters that are kept of a point's log: its end."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A point to be run: `system`, `entry` and `spec` as in `backend.Job`, its `seed`, a time limit."""

    key: str
    system: Any
    entry: str
    spec: Mapping[str, Any]
    seed: int
    timeout_seconds: float


@dataclass(frozen=True, kw_only=True)
class Done:
    """Measurement of a point: `values` of its coroutine, NIC clock `cycles`, `wall_seconds`; its `log`'s end."""

    values: Mapping[str, Any]
    cycles: int
    wall_seconds: float
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a point has no result: one line (`why`), and what there is of a log."""

    why: str
    log: str = ""


class Executor(Protocol):
    """Runs points somewhere."""

    def run(
        self, backend: Backend, work: Sequence[Work], progress: Callable[[float, str], None]
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """Run all of `work`, each once; give each one's end as it comes, in any order.

        `progress` is told how many points' worth has been done beyond those that have ended, and what is going on. When
        the iterator is closed, nothing of it runs any more. Raises LanikaiError if nothing can be run at all.
        """


class LocalExecutor:
    """Runs points in processes of this machine, `workers` at a time, in folders below `scratch`."""

    def __init__(self, *, workers: int, scratch: Path) -> None:
        self.workers = workers
        self.scratch = scratch

    def run(
        self, backend: Backend, work: Sequence[Work], progress: Callable[[float, str], None]
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """Run all of `work`, as `Executor.run`; models are built first, one after the other. Raises LanikaiError if one
        cannot be built."""
        models = []
        built: list[tuple[Any, Any]] = []
        for one in work:
            model = next((model for system, model in built if system == one.system), None)
            if model is None:
                model = backend.build(one.system, "fast", lambda _, text: progress(0.0, text))
                built.append((one.system, model))
            models.append(model)
        jobs = [
            Job(
                system=one.system,
                entry=one.entry,
                spec=one.spec,
                seed=one.seed,
                folder=self.scratch / one.key,
                timeout_seconds=one.timeout_seconds,
            )
            for one in work
        ]
        for job in jobs:
            job.folder.mkdir(parents=True, exist_ok=True)
        under_way: dict[int, float] = {}

        def tell(index: int, fraction: float, text: str) -> None:
            under_way[index] = fraction
            progress(sum(under_way.values()), text)

        ended = ended_jobs(backend, models, jobs, workers=self.workers, progress=tell)
        with contextlib.closing(ended):
            for index, what in ended:
                under_way.pop(index, None)
                log = end_of_log(jobs[index].folder)
                if isinstance(what, Exception):
                    yield work[index], Failure(why=one_line(what), log=f"{log}{what}\n")
                else:
                    yield (
                        work[index],
                        Done(values=what.values, cycles=what.cycles, wall_seconds=what.wall_seconds, log=log),
                    )


def one_line(error: BaseException) -> str:
    """An error as a failure says it: a crash by the last line of its traceback."""
    lines = str(error).strip().splitlines()
    if isinstance(error, JobCrash):
        return lines[-1] if lines else "a crash"
    text = lines[0] if lines else ""
    return text if isinstance(error, LanikaiError) else f"{type(error).__name__}: {text}"


def end_of_log(folder: Path) -> str:
    """The logs in the folder of a point."""
    text = "".join(path.read_text(errors="replace") for path in sorted(folder.glob("*.log")))
    return text[-LOG_CHARACTERS:]
