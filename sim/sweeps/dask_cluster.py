"""Points of a sweep on a Dask cluster: one that runs already, one of this machine, or one of a SLURM queue."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import MissingTool, SimulationError, UserError
from ..experiments.framework.backend import Backend, Job
from .work import Done, Executor, Failure, Work, end_of_log, one_line

__all__ = ["DaskExecutor", "connect"]

START_SECONDS = 30
"""Seconds in which a scheduler has to answer."""
INSTALL = "pip install 'lanikai[cluster]'"


def run_work(backend: Backend, work: Work) -> Done | Failure:
    """Run the point, on a worker; first build the model, if this machine does not have it.

    It needs nothing of the machine that asked: files are in a temporary folder, and the log comes back with the result.
    """
    with tempfile.TemporaryDirectory(prefix="lanikai-sweep-") as scratch:
        folder = Path(scratch)
        job = Job(
            system=work.system,
            entry=work.entry,
            spec=work.spec,
            seed=work.seed,
            folder=folder,
            timeout_seconds=work.timeout_seconds,
        )
        try:
            model = backend.build(work.system, "fast", lambda fraction, text: None)
            done = backend.run(model, job, lambda fraction, text: None)
        except Exception as error:
            return Failure(why=one_line(error).replace(f"{scratch}/", ""), log=end_of_log(folder))
        return Done(
            values=done.values,
            cycles=done.cycles,
            wall_seconds=done.wall_seconds,
            log=end_of_log(folder),
        )


class DaskExecutor:
    """Runs points on the workers of a `distributed.Client`. A worker that is lost costs only time: the
    scheduler gives its points to others."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(
        self, backend: Backend, work: Sequence[Work], progress: Callable[[float, str], None]
    ) -> Generator[tuple[Work, Done | Failure], None, None]:
        """As `Executor.run`. Workers build the models that they need."""
        from distributed import as_completed

        progress(0.0, f"{len(self.client.scheduler_info()['workers'])} workers")
        futures = {
            self.client.submit(run_work, backend, one, key=f"lanikai-{one.key}", pure=False): one
            for one in work
        }
        try:
            for future in as_completed(list(futures)):
                one = futures[future]
                if future.status == "finished":
                    yield one, future.result()
                else:
                    error = future.exception()
                    yield one, Failure(why=one_line(error) if error else f"the point was {future.status}")
                future.release()
        finally:
            self.client.cancel(list(futures), force=True)


@contextlib.contextmanager
def connect(address: str) -> Iterator[Executor]:
    """The executor of `--cluster ADDRESS`:

    - `tcp://host:port`, `tls://host:port`: a Dask scheduler that runs already;
    - `local:N`: N worker processes of this machine, under a scheduler of their own;
    - `slurm:N`: N jobs of a SLURM queue, by dask-jobqueue, set up in its own `jobqueue.yaml`.

    Raises UserError for another address, or one where nothing answers; MissingTool.
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
        if kind == "local":
            cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=int(rest), threads_per_worker=1, dashboard_address=None
            )
            stack.enter_context(cluster)
        elif kind == "slurm":
            cluster = stack.enter_context(_slurm(int(rest)))
        else:
            cluster = address
        try:
            client = distributed.Client(cluster, timeout=START_SECONDS)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            what = str(error).partition("\n")[0] or type(error).__name__
            raise UserError(f"--cluster {address!r}: no Dask scheduler answers there: {what}") from None
        stack.enter_context(client)
        _same_version(client)
        yield DaskExecutor(client)


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


def _version() -> str:
    from ..experiments.framework.results import versions

    return versions()["lanikai"]


def _same_version(client: Any) -> None:
    """Check that workers that are there already run this Lanikai. Raises SimulationError."""
    for worker, found in client.run(_version, on_error="return").items():
        if found != _version():
            raise SimulationError(f"worker {worker} has lanikai {found}, this machine has {_version()}")
