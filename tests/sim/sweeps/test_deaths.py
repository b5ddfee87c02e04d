"""Sweeps whose workers, scheduler or client are killed: after resuming, the tables are those of a quiet sweep."""

import functools
import os
import signal
import sys

import pytest
from lanikai.sim.sweeps.work import LocalExecutor
from support.sim.dask_processes import dask_processes, wait_until
from support.sim.slurm_commands import jobs, running, slurm_commands
from support.sim.sweep_points import sweep_points, tables
from support.sim.sweep_process import Client, alive, processes

SIZES = (60, pytest.param(10_000, marks=pytest.mark.full))
"""Points of a sweep."""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder with a file for each run of a point."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """The tables of a sweep of so many points that nobody disturbs."""

    @functools.cache
    def found(points):
        from support.sim.fake_backend import FakeBackend

        folder = tmp_path_factory.mktemp("quiet")
        report = sweep_points(folder, LocalExecutor(workers=1), points=points, backend=FakeBackend())
        assert report.points == points and not report.failures
        return tables(folder)

    return found


@pytest.mark.parametrize(
    "arguments",
    [("-j", "2"), pytest.param(("--cluster", "local:2"), marks=pytest.mark.full)],
    ids=["processes", "dask"],
)
@pytest.mark.xdist_group("dask")
def test_client_is_killed(tmp_path, runs, arguments, quiet):
    """No process of it goes on; the folder is free; what had ended is taken up."""
    client = Client(tmp_path, runs, 60, *arguments, slow=0.05)
    client.wait_for(10)
    client.kill()
    wait_until(lambda: not any(alive(pid) for pid in processes(runs)), 30)
    # As if it had been killed while it wrote.
    (client.out / "points" / "0123456789abcdef.json.7.part").write_text("{")
    before = len(list(runs.iterdir()))
    status, lines = Client(tmp_path, runs, 60, *arguments).end()
    assert status == 0, lines
    assert len(list(runs.iterdir())) - before <= 60 - 10
    assert tables(client.out) == quiet(60)
    assert not list(client.out.rglob("*.part")) and not (client.out / "running").exists()


@pytest.mark.xdist_group("dask")
def test_process_of_a_point_is_killed(tmp_path, runs, quiet):
    """The point is run once more; others are not disturbed."""
    from support.sim.sweep_backend import SweepBackend

    killed = []

    def kill(done, text):
        if done >= 10 and not killed:
            killed.append(max(processes(runs)))
            os.kill(killed[0], signal.SIGKILL)

    backend = SweepBackend(runs=str(runs), slow=0.05)
    report = sweep_points(
        tmp_path / "sweep", LocalExecutor(workers=2), points=60, backend=backend, progress=kill
    )
    assert not report.failures and 60 <= len(list(runs.iterdir())) <= 61
    assert tables(tmp_path / "sweep") == quiet(60)


@pytest.mark.parametrize("points", SIZES)
@pytest.mark.xdist_group("dask")
def test_worker_scheduler_and_client_are_killed(tmp_path, runs, points, quiet):
    """One after the other, on a Dask cluster of processes.

    A worker costs nothing but time. A scheduler ends the sweep with one line, and does not wait. The same command goes
    on each time.
    """
    slow = 3.0 / points
    with dask_processes(tmp_path) as cluster:
        cluster.start(workers=2)
        client = Client(tmp_path, runs, points, "--cluster", cluster.address, slow=slow)
        client.wait_for(points // 10)
        cluster.workers[0].kill()
        client.wait_for(points // 4)
        cluster.scheduler.kill()
        status, lines = client.end()
        assert not any("Traceback" in line for line in lines), lines
        assert status == 1 and lines[-1] == (
            f"lanikai: --cluster '{cluster.address}': the scheduler has gone; "
            "the same command with the same --out goes on where this stopped"
        ), lines
        assert points // 4 <= client.done() < points
        cluster.kill()
        cluster.start(workers=1)
        client = Client(tmp_path, runs, points, "--cluster", cluster.address, slow=slow)
        client.wait_for(points // 2)
        client.kill()
        cluster.add_worker()
        status, lines = Client(tmp_path, runs, points, "--cluster", cluster.address).end()
        assert status == 0, lines
    assert tables(client.out) == quiet(points)


@pytest.mark.parametrize("points", (60, pytest.param(1000, marks=pytest.mark.full)))
@pytest.mark.xdist_group("dask")
def test_slurm_job_is_killed(tmp_path, runs, points, quiet):
    """Two jobs of a queue (of stand-ins): one that is killed is replaced, and none is left at the end."""
    environment = slurm_commands(tmp_path / "slurm")
    client = Client(
        tmp_path, runs, points, "--cluster", "slurm:2", slow=6.0 / points, environment=environment
    )
    client.wait_for(points // 10)
    os.killpg(jobs(tmp_path / "slurm")[0], signal.SIGKILL)
    status, lines = client.end()
    assert status == 0, lines
    submitted = jobs(tmp_path / "slurm")
    assert len(submitted) == 3 and not any(running(job) for job in submitted)
    script = (tmp_path / "slurm" / "queue" / str(submitted[0])).read_text()
    assert "#SBATCH --cpus-per-task=1" in script and "distributed.cli.dask_worker" in script
    assert tables(client.out) == quiet(points)


@pytest.mark.xdist_group("dask")
def test_slurm_that_takes_no_job(tmp_path, runs, monkeypatch):
    """A queue that refuses, commands that are not there, dask-jobqueue that is not set up: one line each, no folder."""
    environment = slurm_commands(tmp_path / "slurm")
    (tmp_path / "slurm" / "queue" / "refuse").write_text("sbatch: error: invalid partition specified: fast\n")
    client = Client(tmp_path, runs, 10, "--cluster", "slurm:2", environment=environment)
    status, lines = client.end()
    assert status == 1 and lines[-1] == (
        "lanikai: --cluster 'slurm:2': sbatch takes no job: sbatch: error: invalid partition specified: fast"
    )
    from lanikai.sim.errors import MissingTool, UserError
    from lanikai.sim.sweeps.slurm import slurm_jobs

    with pytest.raises(MissingTool, match="SLURM's command sbatch is missing"), slurm_jobs(2):
        pass
    monkeypatch.setenv("PATH", environment["PATH"])
    with (
        pytest.raises(UserError, match=r"^--cluster 'slurm:2': jobqueue.slurm in jobqueue\.yaml: "),
        slurm_jobs(2),
    ):
        pass
