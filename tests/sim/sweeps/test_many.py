"""Sweeps of very many points: what each adds, and what is shown meanwhile."""

import contextlib
import os
import sys
import time

import psutil
import pytest
from lanikai.sim.cli.sweep_display import LINE_SECONDS, Pace, SweepProgress
from lanikai.sim.sweeps.work import LocalExecutor
from rich.console import Console
from support.sim.sweep_points import sweep_points, tables

SIZES = (200, pytest.param(10_000, marks=pytest.mark.full))
"""Points of a sweep."""
ADDED_SECONDS = 0.020
"""Most processor time that a point may add beside what its simulation takes, on a machine at rest."""
BARE_SECONDS = 0.008
"""Processor time that Dask alone takes for a task that does nothing, on a machine at rest (two cores)."""


def processor_seconds():
    """Processor time of this process and of its children: those that have ended, and those that run."""
    mine = psutil.Process()
    times = [mine.cpu_times()]
    for child in mine.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times.append(child.cpu_times())
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def bare_task(client, tasks=100):
    """Seconds of processor time that Dask takes for a task that does nothing."""
    began = processor_seconds()
    for _ in range(tasks):
        client.submit(abs, 1, pure=False).result()
    return (processor_seconds() - began) / tasks


@pytest.fixture
def backend(monkeypatch):
    """A backend that answers at once."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from support.sim.fake_backend import FakeBackend

    return FakeBackend()


@pytest.mark.parametrize("points", SIZES)
@pytest.mark.xdist_group("dask")
def test_what_a_point_adds(tmp_path, backend, points):
    """Processes of this machine and a Dask cluster: all that is not the simulation itself, with the start of the
    workers' Python (which is told apart). The tables are the same, and going on with a sweep that is done reads its
    points in a fraction of the time."""
    from lanikai.sim.sweeps.dask_cluster import connect

    def added(folder, executor, count):
        began = processor_seconds()
        report = sweep_points(tmp_path / folder, executor, points=count, backend=backend)
        assert report.points == count and not report.failures
        return processor_seconds() - began

    start = added("start", LocalExecutor(workers=1), 1)
    here = added("here", LocalExecutor(workers=1), points) - start
    # One cluster for all: to start one takes seconds, which differ by more than what is measured.
    with connect("local:1") as executor:
        added("start-dask", executor, 1)
        bare = [bare_task(executor.client)]
        spread = added("dask", executor, points)
        bare.append(bare_task(executor.client))
    again = added("here", LocalExecutor(workers=1), points)
    # A machine that others use as well takes more processor time for the same work: for Dask's own as for a point's.
    slower = max(1.0, sum(bare) / len(bare) / BARE_SECONDS)
    print(
        f"ms a point: {1e3 * here / points:.1f}, {1e3 * again / points:.1f} again, "
        f"on Dask {1e3 * spread / points:.1f}; a bare task of Dask {1e3 * bare[0]:.1f} and {1e3 * bare[1]:.1f}"
    )
    assert max(here, spread) / points < ADDED_SECONDS * slower
    assert again / points < ADDED_SECONDS / 4 * slower
    assert tables(tmp_path / "here") == tables(tmp_path / "dask")


def test_pace():
    """The rate is of the points that ended here, over the last minute; the time left is of the rest."""
    now = [0.0]
    pace = Pace(1000, lambda: now[0])
    pace.report(400)  # from before
    assert pace.text() == "" and pace.points_per_second is None
    for done in range(401, 411):
        now[0] += 2.0
        pace.report(done)
    assert pace.points_per_second == 0.5 and pace.text() == "30.0 a minute, 0:19:40 left"
    # Faster now: after a minute, nothing of the slow ones is left.
    for done in range(420, 1000, 10):
        now[0] += 2.0
        pace.report(done)
    assert pace.points_per_second == pytest.approx(5.0)
    assert pace.text() == "5.0 a second, 0:00:02 left"
    # Nothing ends any more: the rate falls.
    now[0] += 180
    pace.report(990)
    assert pace.points_per_second < 0.1
    slow = Pace(100_000, lambda: now[0])
    slow.report(0)
    now[0] += 60
    slow.report(1)
    assert slow.text() == "1.0 a minute, 1666:39:00 left"


def test_lines_where_no_bar_can_be_drawn(monkeypatch, tmp_path, capsys):
    """Ten thousand points that end quickly are some lines, each with rate and time left, and the last."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with SweepProgress(Console(width=200), 10_000, tmp_path) as bars:
        for done in range(10_001):
            now[0] += 0.002
            bars.report(done, "a point")
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 2 + int(20 // LINE_SECONDS) - 1
    assert lines[0] == "0 of 10000 points    a point"
    assert lines[2].startswith("5001 of 10000 points  500.0 a second, 0:00:10 left  a point")
    assert lines[-1].startswith("10000 of 10000 points  500.0 a second, 0:00:00 left")
