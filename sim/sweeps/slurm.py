"""Dask workers as jobs of a SLURM queue, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from ..errors import MissingTool, SimulationError, UserError

__all__ = ["INSTALL", "SlurmJobs", "slurm_jobs"]

INSTALL = "pip install 'lanikai[cluster]'"
ASK_SECONDS = 30
"""Seconds in which `squeue` has to answer."""


class SlurmJobs:
    """`jobs` jobs of a queue; `cluster` is the dask-jobqueue cluster that they belong to, `faults` what `sbatch`
    said when it took none."""

    def __init__(self, cluster: Any, jobs: int, faults: list[str]) -> None:
        self.cluster, self._jobs, self._faults = cluster, jobs, faults
        self.fill()

    def check(self) -> None:
        """Raise SimulationError if `sbatch` has refused a job."""
        if self._faults:
            raise SimulationError(f"--cluster 'slurm:{self._jobs}': sbatch takes no job: {self._faults[0]}")

    def fill(self) -> None:
        """Submit jobs in place of those that have ended."""
        self.cluster.scale(jobs=self._jobs)

    def waits(self) -> bool:
        """Whether a job stands in the queue, or runs: then a worker may still come."""
        numbers = [str(job.job_id) for job in self.cluster.workers.values() if getattr(job, "job_id", None)]
        if not numbers:
            return False
        try:
            asked = subprocess.run(
                ["squeue", "-h", "-j", ",".join(numbers)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=ASK_SECONDS,
                text=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            return True  # a queue that does not answer says nothing about its jobs
        return bool(asked.stdout.strip())


@contextlib.contextmanager
def slurm_jobs(jobs: int) -> Iterator[SlurmJobs]:
    """So many jobs; they are cancelled afterwards.

    Raises MissingTool without dask-jobqueue or SLURM's commands, UserError if dask-jobqueue is not set up.
    """
    try:
        from dask_jobqueue import SLURMCluster
        from dask_jobqueue.slurm import SLURMJob
        from distributed.core import Status
    except ImportError:
        raise MissingTool("the Python package dask-jobqueue", INSTALL) from None
    for command in ("sbatch", "scancel"):
        if shutil.which(command) is None:
            raise MissingTool(f"SLURM's command {command}", "sudo apt-get install slurm-client")
    faults: list[str] = []

    class Job(SLURMJob):  # type: ignore[misc]
        """A job that says why it was not taken."""

        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                said = str(error).partition("stderr:")[2] or str(error)
                faults.append(" ".join(said.split()))
                # Else the cluster cannot be closed, and jobs that were taken stay in the queue.
                self.status = Status.running

    class Cluster(SLURMCluster):  # type: ignore[misc]
        """A cluster of such jobs."""

        job_cls = Job

    with contextlib.ExitStack() as stack:
        try:
            found = SlurmJobs(stack.enter_context(Cluster()), jobs, faults)
        except (TypeError, ValueError) as error:
            what = " ".join(str(error).split())
            raise UserError(f"--cluster 'slurm:{jobs}': jobqueue.slurm in jobqueue.yaml: {what}") from None
        yield found
