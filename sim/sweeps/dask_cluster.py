"""Points of a sweep on a Dask cluster: one that runs already, one of this machine, or one of a SLURM queue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from ..errors import MissingTool, SimulationError, UserError
from ..input_files import InputFile, InputFolder
from ..paths import cache_dir
from .code import CheckedBackend, Code, OtherCode, check_code, code_here
from .slurm import INSTALL, SlurmJobs, slurm_jobs
from .work import Done, Executor, Failure, Work, end_of_log, one_line

__all__ = ["DaskExecutor", "connect"]

START_SECONDS = 30
"""Seconds in which a scheduler that is started here has to answer."""
ANSWER_SECONDS = 3.0
"""Seconds in which the machine of a scheduler that runs already has to take a connection, and the scheduler to answer
on it."""
CONNECT_AGAIN_SECONDS = 0.5
"""Seconds between two attempts to connect."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at the scheduler and its workers."""
PATIENCE_SECONDS = 300.0
"""Seconds without a worker, and without a job in a queue, after which a sweep ends."""
FILL_SECONDS = 30.0
"""Seconds between two looks at the jobs of a queue."""
AHEAD = 3
"""Points that a thread of a worker is given at a time: it is to have the next one when it has ended one."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A worker's answer: it has not these input files of the point."""

    files: Sequence[InputFile]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A worker's answer: its code is not the sweep's (`why`)."""

    worker: str
    why: str


def run_work(
    backend: CheckedBackend, work: Work, contents: Mapping[str, bytes]
) -> Done | Failure | Missing | Refused:
    """Run the point, on a worker; first build the model, if this machine does not have it.

    It needs nothing of the machine that asked. Input files are taken from this machine's cache, or from `contents` (by
    digest). Other files are in a temporary folder, and the log comes back with the result.
    """
    with tempfile.TemporaryDirectory(prefix="lanikai-sweep-") as scratch:
        folder = Path(scratch)
        try:
            places = InputFolder(cache_dir() / "inputs")
            for file in work.inputs:
                if file.digest in contents:
                    places.keep(file, contents[file.digest])
            if missing := [file for file in work.inputs if places.place(file) is None]:
                return Missing(files=missing)
            job = work.job(folder, places)
            model = backend.build(work.system, "fast", lambda fraction, text: None)
            done = backend.run(model, job, lambda fraction, text: None)
        except OtherCode as error:
            return Refused(worker=_address(), why=str(error))
        except Exception as error:
            return Failure(why=one_line(error).replace(f"{scratch}/", ""), log=end_of_log(folder))
        return Done(
            values=done.values,
            cycles=done.cycles,
            wall_seconds=done.wall_seconds,
            log=end_of_log(folder),
        )


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


async def admit(code: Code, resource: str, dask_worker: Any) -> str:
    """On a worker: take it on for points of `code`. Returns why not, or an empty text."""
    try:
        check_code(code)
    except OtherCode as error:
        return str(error)
    await dask_worker.set_resources(**{resource: 1_000_000})
    return ""


class DaskExecutor:
    """Runs points on the workers of a `distributed.Client`.

    - A worker that has this machine's code is given a resource, and points ask for it. So no other is ever given one.
      `say` is told of a worker that is refused.
    - A worker that is lost costs only time: the scheduler gives its points to others.
    - `patience_seconds` without a worker end the sweep. With `jobs` of a queue, lost ones are replaced, and patience
      begins when no job is left in the queue.
    """

    def __init__(
        self,
        client: Any,
        *,
        name: str,
        say: Say = lambda text: None,
        jobs: SlurmJobs | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.client = client
        self._name, self._say, self._jobs, self._patience = name, say, jobs, patience_seconds
        self._code = code_here()
        self._resource = f"lanikai-{self._code.name}"
        self._known: dict[str, str] = {}
        self._good: set[str] = set()
        self._threads = 0
        self._filled = self._seen = time.monotonic()

    def look(self) -> bool:
        """Take on workers that are new, refuse those with other code; have lost ones replaced.

        Returns whether no worker is left of those that were there at the last look: then nobody has what they were
        given. The scheduler gives it to others only as they join, before they are taken on.

        Raises SimulationError if the scheduler has gone, if a queue takes no job, if there are workers and all are
        refused, or if there has been none for too long.
        """
        now = time.monotonic()
        threads = self._asked(self.client.nthreads)
        new = [address for address in threads if address not in self._known]
        if new:
            answers = self._asked(
                lambda: self.client.run(admit, self._code, self._resource, workers=new, on_error="return")
            )
            for address, why in answers.items():
                if isinstance(why, BaseException):
                    if isinstance(why, OSError):
                        continue  # it has gone; or it is asked again
                    why = f"no such Lanikai there: {one_line(why)}"
                self._known[address] = why
                if why:
                    self._say(f"worker {address} is refused: {why}")
        before, good = self._good, {address for address in threads if self._known.get(address) == ""}
        self._good = good
        self._threads = sum(threads[address] for address in good)
        if self._jobs is not None:
            self._jobs.check()
            if now - self._filled > FILL_SECONDS:
                self._jobs.fill()
                self._filled = now
                if self._jobs.waits():
                    self._seen = now
        if good:
            self._seen = now
        elif threads and all(self._known.get(address) for address in threads):
            raise SimulationError(f"--cluster {self._name!r}: no worker has this machine's code")
        elif now - self._seen > self._patience:
            raise SimulationError(
                f"--cluster {self._name!r}: no worker for {self._patience:g} s; the same command with the same --out "
                "goes on where this stopped"
            )
        return not before & good

    def _asked(self, question: Callable[[], Any]) -> Any:
        """The scheduler's answer. Raises SimulationError if it has gone."""
        try:
            if self.client.status == "running":
                return question()
        except (OSError, TimeoutError, RuntimeError):
            pass
        raise self._gone()

    def _gone(self) -> SimulationError:
        return SimulationError(
            f"--cluster {self._name!r}: the scheduler has gone; the same command with the same --out goes on where "
            "this stopped"
        )

    def run(
        self,
        backend: CheckedBackend,
        work: Sequence[Work],
        progress: Callable[[float, str], None],
        *,
        scratch: Path,
        inputs: InputFolder,
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """As `Executor.run`. Workers build the models that they need."""
        waiting: deque[tuple[Work, Sequence[InputFile]]] = deque((one, ()) for one in work)
        running: dict[Any, Work] = {}
        ended: SimpleQueue[Any] = SimpleQueue()
        looked = -LOOK_SECONDS
        try:
            while waiting or running:
                if time.monotonic() - looked >= LOOK_SECONDS:
                    if self.look() and running:
                        self.client.cancel(list(running), force=True)
                        waiting.extendleft((one, ()) for one in running.values())
                        running.clear()
                    looked = time.monotonic()
                    if not self._threads:
                        progress(0.0, "no worker yet")
                while waiting and len(running) < self._threads * AHEAD:
                    one, files = waiting.popleft()
                    future = self._submit(backend, one, {file.digest: inputs.content(file) for file in files})
                    running[future] = one
                    future.add_done_callback(ended.put)
                for future, what in self._answers(ended, running):
                    one = running.pop(future)
                    if isinstance(what, Missing):
                        waiting.appendleft((one, what.files))
                    elif isinstance(what, Refused):
                        raise OtherCode(f"worker {what.worker}: {what.why}")
                    else:
                        yield one, what
        finally:
            if self.client.status == "running":
                self.client.cancel(list(running), force=True)

    def _submit(self, backend: CheckedBackend, work: Work, contents: Mapping[str, bytes]) -> Any:
        return self.client.submit(
            run_work, backend, work, contents, pure=False, resources={self._resource: 1}
        )

    def _answers(self, ended: SimpleQueue[Any], running: Collection[Any]) -> Iterator[tuple[Any, Any]]:
        """Every future of `running` that has ended, and its answer; after `LOOK_SECONDS` without one, none.

        Raises SimulationError if the scheduler has gone: nobody else forgets a point.
        """
        futures = []
        with contextlib.suppress(Empty):
            futures.append(ended.get(timeout=LOOK_SECONDS))
            while True:
                futures.append(ended.get_nowait())
        futures = [future for future in futures if future in running]
        finished = [future for future in futures if future.status == "finished"]
        answers = dict(zip(finished, self._asked(lambda: self.client.gather(finished)), strict=True))
        for future in futures:
            if future in answers:
                yield future, answers[future]
            elif future.status == "error":
                yield future, Failure(why=one_line(future.exception()))
            else:
                raise self._gone()


def _check_listens(address: str) -> None:
    """Raise UserError unless something takes a TCP connection at `scheme://host:port`: Dask would try for as long as it
    waits, whatever the reason."""
    place = urlsplit(address)
    try:
        host, port = place.hostname, place.port
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise UserError(f"--cluster {address!r}: tcp://host:port of a Dask scheduler, local:N or slurm:N")
    ends = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
            return
        except OSError as error:
            # A scheduler that was started just before takes a moment.
            if time.monotonic() + CONNECT_AGAIN_SECONDS > ends or isinstance(error, socket.gaierror):
                why = error.strerror or str(error)
                raise UserError(f"--cluster {address!r}: no Dask scheduler answers there: {why}") from None
        time.sleep(CONNECT_AGAIN_SECONDS)


def _check_answers(address: str) -> None:
    """Raise UserError unless a Dask scheduler tells its identity there: a client of one that is mute never gives up.

    A thread of its own asks, since the caller may be inside an event loop, as a notebook's cell is.
    """
    problem: list[Exception] = []

    async def ask() -> None:
        from distributed.comm import connect as open_comm
        from distributed.security import Security

        arguments = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
        comm = await open_comm(address, timeout=2 * ANSWER_SECONDS, **arguments)
        try:
            await comm.write({"op": "identity", "reply": True})
            answer = await comm.read()
            if not (isinstance(answer, dict) and answer.get("type") == "Scheduler"):
                raise ValueError("it is no scheduler")
        finally:
            comm.abort()

    def run() -> None:
        try:
            asyncio.run(asyncio.wait_for(ask(), 2 * ANSWER_SECONDS))
        except Exception as error:
            problem.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(3 * ANSWER_SECONDS)
    if thread.is_alive() or problem:
        what = one_line(problem[0]) if problem and str(problem[0]) else "no answer"
        raise UserError(f"--cluster {address!r}: no Dask scheduler answers there: {what}")


@contextlib.contextmanager
def connect(address: str, say: Say = lambda text: None) -> Iterator[Executor]:
    """The executor of `--cluster ADDRESS`:

    - `tcp://host:port`, `tls://host:port`: a Dask scheduler that runs already;
    - `local:N`: N worker processes of this machine, under a scheduler of their own;
    - `slurm:N`: N jobs of a SLURM queue, by dask-jobqueue, set up in its own `jobqueue.yaml`.

    `say` is told of workers that are refused. Raises UserError for another address, or one where nothing answers;
    SimulationError if there are workers and all are refused; MissingTool.
    """
    kind, _, rest = address.partition(":")
    if kind in ("local", "slurm"):
        if not rest.isascii() or not rest.isdigit() or not 1 <= int(rest) <= 10_000:
            raise UserError(f"--cluster {address!r}: {kind}:N, N workers, 1 to 10000")
    elif "://" not in address:
        raise UserError(f"--cluster {address!r}: tcp://host:port of a Dask scheduler, local:N or slurm:N")
    try:
        import distributed
    except ImportError:
        raise MissingTool("the Python package distributed", INSTALL) from None
    # A worker that goes is told of in the sweep's own words.
    for part in ("", ".client", ".core", ".nanny", ".scheduler", ".worker"):
        logging.getLogger(f"distributed{part}").setLevel(logging.CRITICAL + 1)
    with contextlib.ExitStack() as stack:
        jobs: SlurmJobs | None = None
        if kind == "local":
            cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=int(rest), threads_per_worker=1, dashboard_address=":0"
            )
            stack.enter_context(cluster)
        elif kind == "slurm":
            jobs = stack.enter_context(slurm_jobs(int(rest)))
            cluster = jobs.cluster
        else:
            cluster = address
        seconds: float = START_SECONDS
        if cluster is address:
            _check_listens(address)
            _check_answers(address)
            seconds = 2 * ANSWER_SECONDS
        try:
            client = distributed.Client(cluster, timeout=seconds)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            what = str(error).partition("\n")[0] or type(error).__name__
            raise UserError(f"--cluster {address!r}: no Dask scheduler answers there: {what}") from None
        stack.callback(client.close, timeout=2)
        executor = DaskExecutor(client, name=address, say=say, jobs=jobs)
        executor.look()
        yield executor
