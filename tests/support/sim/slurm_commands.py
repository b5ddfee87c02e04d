"""Stand-ins for SLURM's commands: jobs are process groups of this machine. They are put on PATH by `slurm_commands`.

`sbatch SCRIPT` starts a job, `squeue -h -j A,B` lists those that run, `scancel A` ends one. The file `refuse` in the
queue's folder makes `sbatch` refuse jobs with its text.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["jobs", "running", "slurm_commands"]

COMMANDS = ("sbatch", "squeue", "scancel")


def slurm_commands(folder: Path) -> Mapping[str, str]:
    """Make the commands, with their queue in `folder`; the environment in which they are found, and in which
    dask-jobqueue asks for workers of one thread."""
    (folder / "queue").mkdir(parents=True)
    for name in COMMANDS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} {folder / "queue"} "$@"\n')
        path.chmod(0o755)
    return {
        "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
        "DASK_JOBQUEUE__SLURM__CORES": "1",
        "DASK_JOBQUEUE__SLURM__MEMORY": "1GB",
        "DASK_JOBQUEUE__SLURM__LOCAL_DIRECTORY": str(folder),
        "DASK_JOBQUEUE__SLURM__SCHEDULER_OPTIONS": '{"host": "127.0.0.1", "dashboard_address": None}',
        "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1s",
    }


def jobs(folder: Path) -> list[int]:
    """The numbers of all jobs that were submitted: the number of the job's process group."""
    return sorted(int(path.name) for path in (folder / "queue").iterdir() if path.name.isdigit())


def running(job: int) -> bool:
    """Whether a process of the job runs."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(group) == job and state != "Z":
            return True
    return False


def main(command: str, queue: Path, *arguments: str) -> int:
    """One command."""
    if command == "sbatch":
        if (queue / "refuse").exists():
            print((queue / "refuse").read_text(), file=sys.stderr)
            return 1
        script = Path(arguments[-1]).read_text()
        job = subprocess.Popen(
            ["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        (queue / str(job.pid)).write_text(script)
        print(f"Submitted batch job {job.pid}")
    elif command == "squeue":
        for job in arguments[arguments.index("-j") + 1].split(","):
            if running(int(job)):
                print(f"{job} normal dask-worker R 1:00 1 here")
    else:
        for job in arguments:
            try:
                os.killpg(int(job), signal.SIGKILL)
            except ProcessLookupError:
                print(f"scancel: error: Invalid job id {job}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
