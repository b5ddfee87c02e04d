"""The work of a sweep: its points, the executors that run them, and the one for this machine's cores."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import LanikaiError
from ..experiments.framework.backend import Job
from ..experiments.framework.pool import JobCrash, ended_jobs
from ..input_files import InputFile, InputFolder, placed
from .code import CheckedBackend, OtherCode

__all__ = ["Done", "Executor", "Failure", "LocalExecutor", "Work"]

LOG_CHARACTERS = 100_000
"""Most characters that are kept of a point's log: its end."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A point to be run: `system` and `entry` as in `backend.Job`, its `seed`, a time limit; `spec`, with marks in
    place of the paths of its `inputs`."""

    key: str
    system: Any
    entry: str
    spec: Mapping[str, Any]
    seed: int
    timeout_seconds: float
    inputs: Sequence[InputFile] = ()

    def job(self, folder: Path, places: InputFolder) -> Job:
        """The point as a job in `folder`, with the input files that `places` holds."""
        found = {file.mark: path for file in self.inputs if (path := places.place(file)) is not None}
        return Job(
            system=self.system,
            entry=self.entry,
            spec=placed(self.spec, found),
            seed=self.seed,
            folder=folder,
            timeout_seconds=self.timeout_seconds,
        )


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
        self,
        backend: CheckedBackend,
        work: Sequence[Work],
        progress: Callable[[float, str], None],
        *,
        scratch: Path,
        inputs: InputFolder,
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """Run all of `work`, each once; give each one's end as it comes, in any order.

        `progress` is told how many points' worth has been done beyond those that have ended, and what is going on. When
        the iterator is closed, nothing of it runs any more. Points that run on this machine write below `scratch`.
        `inputs` holds the input files. Raises LanikaiError if nothing can be run at all, OtherCode where the code has
        been edited.
        """


class LocalExecutor:
    """Runs points in processes of this machine, `workers` at a time."""

    def __init__(self, *, workers: int) -> None:
        self.workers = workers

    def run(
        self,
        backend: CheckedBackend,
        work: Sequence[Work],
        progress: Callable[[float, str], None],
        *,
        scratch: Path,
        inputs: InputFolder,
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """Run all of `work`, as `Executor.run`; models are built first, one after the other. Raises LanikaiError if one
        cannot be built."""
        built: dict[int, Any] = {}
        for one in work:
            if id(one.system) not in built:
                built[id(one.system)] = backend.build(one.system, "fast", lambda _, text: progress(0.0, text))
        models = [built[id(one.system)] for one in work]
        jobs = [one.job(scratch / one.key, inputs) for one in work]
        under_way: dict[int, float] = {}

        def tell(index: int, fraction: float, text: str) -> None:
            under_way[index] = fraction
            progress(sum(under_way.values()), text)

        ended = ended_jobs(backend, models, jobs, workers=self.workers, progress=tell)
        with contextlib.closing(ended):
            for index, what in ended:
                under_way.pop(index, None)
                log = end_of_log(jobs[index].folder)
                shutil.rmtree(jobs[index].folder, ignore_errors=True)
                if isinstance(what, OtherCode):
                    raise what
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
