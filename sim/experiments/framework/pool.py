"""Jobs in worker processes, one at a time in each; none is left behind, whoever is killed.

A process takes one job after the other, so that a job costs no start of Python. The results are in the order of the
jobs, whatever order they ended in.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any

from ...carried import pack, unpack
from ...errors import FULL, LanikaiError, SimulationError
from ...extensions import added
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
    # Started by the first process otherwise, which would unblock the SIGINT that the jobs are to have blocked.
    resource_tracker.ensure_running()
    waiting = deque(range(len(jobs)))
    idle: list[_Worker] = []
    running: dict[Connection, tuple[int, _Worker]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                worker = idle.pop() if idle else _Worker(backend)
                if worker.process.exitcode is not None:  # it has died since its last job
                    worker.end(0.0)
                    continue
                index = waiting.popleft()
                running[worker.connection] = index, worker
                # If it dies now, that is told by its end of the connection.
                with contextlib.suppress(OSError):
                    worker.connection.send((models[index], jobs[index]))
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                index, worker = running[connection]
                try:
                    kind, content = connection.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    content = SimulationError(
                        f"the process of point {index} ended with status {worker.process.exitcode} and no result"
                    )
                    kind = "died"
                if kind == "progress":
                    progress(index, *content)
                    continue
                del running[connection]
                if kind == "died":
                    worker.end(0.0)
                else:
                    idle.append(worker)
                yield index, content
    finally:
        left = [*idle, *(worker for _, worker in running.values())]
        for worker in left:
            worker.process.terminate()
        for worker in left:
            worker.end(END_SECONDS)


class _Worker:
    """A process that takes jobs from its `connection`, and gives what becomes of them."""

    def __init__(self, backend: Backend) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(backend, theirs, pack(None) if added() else None), daemon=True
        )
        # Ctrl-C goes to the whole terminal group. Jobs inherit the mask: we alone act on it, and end them. Held back
        # for this moment only, it is not lost here.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _without_main():
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()

    def end(self, seconds: float) -> None:
        """Wait so long for its end, kill it then."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """A process that is started inside imports no main module: a script that runs experiments would begin anew."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(backend: Backend, connection: Connection, extensions: bytes | None = None) -> None:
    """Run jobs until there are no more, in a process of their own. `extensions`: those that the parent has added."""
    # As an exception, so that whoever started the simulator ends it on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if extensions is not None:
        unpack(extensions)
    while True:
        try:
            model, job = connection.recv()
        except EOFError:
            return
        _work(backend, model, job, connection)


def _end_with_parent() -> None:
    """End this process, and its simulator with it, when the one that started it has gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _work(backend: Backend, model: Any, job: Job, connection: Connection) -> None:
    """Run the job and send the outcome."""
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
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
