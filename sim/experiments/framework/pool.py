"""Jobs in processes of their own, at most so many at a time; none is left behind.

The results are in the order of the jobs, whatever order they ended in.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from ...errors import FULL, LanikaiError, SimulationError
from .backend import Backend, Job, Measured

__all__ = ["JobCrash", "ended_jobs", "run_jobs"]

END_SECONDS = 10.0
"""Seconds in which an interrupted job has to end its simulator before it is killed."""


class JobCrash(Exception):
    """An unexpected error inside a job; the message is the job's traceback."""


def run_jobs(
    backend: Backend,
    models: Sequence[Any],
    jobs: Sequence[Job],
    *,
    workers: int,
    progress: Callable[[int, float, str], None],
) -> list[Measured]:
    """Run every job on the model in its place of `models`. `progress` is told the job's index, a fraction and a line of
    text.

    The first job that fails ends all. Raises the job's LanikaiError, or JobCrash. However it ends (an interrupt too),
    no process of it is left.
    """
    measured: dict[int, Measured] = {}
    with contextlib.closing(ended_jobs(backend, models, jobs, workers=workers, progress=progress)) as ended:
        for index, what in ended:
            if isinstance(what, Exception):
                raise what
            measured[index] = what
    return [measured[index] for index in range(len(jobs))]


def ended_jobs(
    backend: Backend,
    models: Sequence[Any],
    jobs: Sequence[Job],
    *,
    workers: int,
    progress: Callable[[int, float, str], None],
) -> Generator[tuple[int, Measured | LanikaiError | JobCrash], None, None]:
    """Run jobs as `run_jobs` does. Gives each one's index as soon as it ends, with what it measured or why it failed.

    No process is left when the iterator is closed.
    """
    context = multiprocessing.get_context("spawn")
    # Started by the first process otherwise, which would unblock the SIGINT that the jobs are to have blocked.
    resource_tracker.ensure_running()
    waiting = deque(range(len(jobs)))
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                index = waiting.popleft()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(
                    target=_work, args=(backend, models[index], jobs[index], theirs), daemon=True
                )
                # Ctrl-C goes to the whole terminal group. Jobs inherit the mask: we alone act on it, and end
                # them. Held back for this moment only, it is not lost here.
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    process.start()
                    running[ours] = index, process
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                theirs.close()
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                index, process = running[connection]
                try:
                    kind, content = connection.recv()
                except EOFError:
                    process.join()
                    kind, content = (
                        "error",
                        SimulationError(
                            f"the process of point {index} ended with status {process.exitcode} and no result"
                        ),
                    )
                if kind == "progress":
                    progress(index, *content)
                    continue
                process.join()
                del running[connection]
                connection.close()
                yield index, content
    finally:
        for _, process in running.values():
            process.terminate()
        for connection, (_, process) in running.items():
            process.join(END_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            connection.close()


def _work(backend: Backend, model: Any, job: Job, connection: Connection) -> None:
    """Run the job in its process and send the outcome."""
    # As an exception, so that whoever started the simulator ends it on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        connection.send(
            ("done", backend.run(model, job, lambda f, text: connection.send(("progress", (f, text)))))
        )
    except LanikaiError as error:
        connection.send(("error", error))
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.errno in FULL:
            full = f"{error.filename or job.folder} cannot be written: {error.strerror}"
            connection.send(("error", SimulationError(full)))
        else:
            connection.send(("error", JobCrash(traceback.format_exc())))
    except Exception:
        connection.send(("error", JobCrash(traceback.format_exc())))
