"""Points of a sweep on a Dask cluster: one that runs already, one of this machine, or one of a SLURM queue."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ..errors import MissingTool, SimulationError, UserError
from ..paths import cache_dir
from .code import CheckedBackend, Code, OtherCode, check_code, code_here
from .inputs import InputFile, InputFolder
from .work import Done, Executor, Failure, Work, end_of_log, one_line

__all__ = ["DaskExecutor", "connect"]

START_SECONDS = 30
"""Seconds in which a scheduler has to answer."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at the scheduler and its workers."""
PATIENCE_SECONDS = 300.0
"""Seconds without a worker after which a sweep ends. (A SLURM queue may take any time.)"""
FILL_SECONDS = 30.0
"""Seconds between two looks whether a SLURM job has to be replaced."""
AHEAD = 3
"""Points that a thread of a worker is given at a time: it is to have the next one when it has ended one."""
INSTALL = "pip install 'lanikai[cluster]'"

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
    - `fill` has lost workers replaced.
    - `patience_seconds` without a worker end the sweep; None: never.
    """

    def __init__(
        self,
        client: Any,
        *,
        name: str,
        say: Say = lambda text: None,
        fill: Callable[[], None] = lambda: None,
        patience_seconds: float | None = PATIENCE_SECONDS,
    ) -> None:
        self.client = client
        self._name, self._say, self._fill, self._patience = name, say, fill, patience_seconds
        self._code = code_here()
        self._resource = f"lanikai-{self._code.digest[:16]}"
        self._known: dict[str, str] = {}
        self._threads = 0
        self._filled = self._seen = time.monotonic()

    def look(self) -> None:
        """Take on workers that are new, refuse those with other code; have lost ones replaced.

        Raises SimulationError if the scheduler has gone, if there are workers and all are refused, or if there has been
        none for too long.
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
        good = [address for address in threads if self._known.get(address) == ""]
        self._threads = sum(threads[address] for address in good)
        if now - self._filled > FILL_SECONDS:
            self._fill()
            self._filled = now
        if good:
            self._seen = now
        elif threads and all(self._known.get(address) for address in threads):
            raise SimulationError(f"--cluster {self._name!r}: no worker has this machine's code")
        elif self._patience is not None and now - self._seen > self._patience:
            raise SimulationError(
                f"--cluster {self._name!r}: no worker for {self._patience:g} s; the same command with the same --out "
                "goes on where this stopped"
            )

    def _asked(self, question: Callable[[], Any]) -> Any:
        """The scheduler's answer. Raises SimulationError if it has gone."""
        try:
            if self.client.status == "running":
                return question()
        except (OSError, TimeoutError, RuntimeError):
            pass
        raise SimulationError(
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
                    self.look()
                    looked = time.monotonic()
                    if not self._threads:
                        progress(0.0, "no worker yet")
                while waiting and len(running) < max(1, self._threads) * AHEAD:
                    one, files = waiting.popleft()
                    future = self._submit(backend, one, {file.digest: inputs.content(file) for file in files})
                    running[future] = one
                    future.add_done_callback(ended.put)
                for future, what in self._answers(ended):
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

    def _answers(self, ended: SimpleQueue[Any]) -> Iterator[tuple[Any, Any]]:
        """Every future that has ended, and its answer; after `LOOK_SECONDS` without one, none."""
        futures = []
        with contextlib.suppress(Empty):
            futures.append(ended.get(timeout=LOOK_SECONDS))
            while True:
                futures.append(ended.get_nowait())
        finished = [future for future in futures if future.status == "finished"]
        answers = dict(zip(finished, self._asked(lambda: self.client.gather(finished)), strict=True))
        for future in futures:
            if future in answers:
                yield future, answers[future]
            elif future.status == "error":
                yield future, Failure(why=one_line(future.exception()))
            else:
                # Cancelled or lost: only a scheduler that has gone forgets a point.
                self._asked(lambda: self._forgotten())

    def _forgotten(self) -> None:
        raise RuntimeError


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
    for name in ("distributed", "distributed.nanny", "distributed.scheduler", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        fill: Callable[[], None] = lambda: None  # noqa: E731
        if kind == "local":
            cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=int(rest), threads_per_worker=1, dashboard_address=None
            )
            stack.enter_context(cluster)
        elif kind == "slurm":
            jobs = int(rest)
            cluster = stack.enter_context(_slurm(jobs))
            fill = lambda: cluster.scale(jobs=jobs)  # noqa: E731
        else:
            cluster = address
        try:
            client = distributed.Client(cluster, timeout=START_SECONDS)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            what = str(error).partition("\n")[0] or type(error).__name__
            raise UserError(f"--cluster {address!r}: no Dask scheduler answers there: {what}") from None
        stack.callback(client.close, timeout=2)
        executor = DaskExecutor(
            client,
            name=address,
            say=say,
            fill=fill,
            patience_seconds=None if kind == "slurm" else PATIENCE_SECONDS,
        )
        executor.look()
        yield executor


def _slurm(jobs: int) -> Any:
    """A cluster of SLURM jobs. Raises MissingTool, UserError if dask-jobqueue is not set up."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise MissingTool("the Python package dask-jobqueue", INSTALL) from None
    try:
        cluster = SLURMCluster()
        cluster.scale(jobs=jobs)
    except (TypeError, ValueError) as error:
        what = " ".join(str(error).split())
        raise UserError(f"--cluster 'slurm:{jobs}': jobqueue.slurm in jobqueue.yaml: {what}") from None
    return cluster
