"""Sweeps: the grid, failures, going on after an interrupt, the same table everywhere, Dask workers that die."""

import os
import signal
import socket
import sys
import threading
import time
from collections import Counter

import polars
import pytest
from lanikai.sim.cli import backend as cli_backend
from lanikai.sim.cli import program
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.registry import find
from lanikai.sim.sweeps.code import Code, code_here
from lanikai.sim.sweeps.grid import cases, tasks
from lanikai.sim.sweeps.store import SweepFolder
from lanikai.sim.sweeps.sweep import run_sweep
from lanikai.sim.sweeps.work import LocalExecutor

SIZES = "4096,8192,12288,16384"
TABLES = ("table.csv", "table.parquet", "claims.csv", "failures.csv")


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """Makes a `SweepBackend` whose runs are counted in a folder of the test."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from support.sim.sweep_backend import SweepBackend

    folder = tmp_path / "runs"
    folder.mkdir()
    return lambda **behaviour: SweepBackend(runs=str(folder), **behaviour)


def runs(tmp_path):
    """How often the points of each message size have been run."""
    return Counter(int(path.name.partition("-")[0]) for path in (tmp_path / "runs").iterdir())


@pytest.fixture
def sweep(tmp_path, backend, monkeypatch, capsys):
    """Runs `lanikai sweep` on the backend; status, standard error, the folder."""

    def run(*arguments, **behaviour):
        monkeypatch.setattr(cli_backend, "make", lambda threads: backend(**behaviour))
        with pytest.raises(SystemExit) as ended:
            program.main(["sweep", *arguments])
        return ended.value.code, capsys.readouterr()

    return run


def grid(*axes, settings=(), seed=1):
    return cases(find("share-senders"), "quick", grid=axes, settings=settings, seed=seed)


def test_grid():
    """Every combination, the last key fastest; JSON lists keep their commas; seeds are an axis like others."""
    found = grid("idt_over_T=[[2,2]],[[4,4],[3,3,3]]", "message_bytes=4096, 8192", "seed=7,8")
    settings = [
        (case.parameters.idt_over_T, case.parameters.message_bytes, case.seed, len(case.points))
        for case in found
    ]
    short, long = found[0].parameters.idt_over_T, found[4].parameters.idt_over_T
    assert [list(map(list, x)) for x in (short, long)] == [[[2, 2]], [[4, 4], [3, 3, 3]]]
    assert settings == [
        (lists, size, seed, len(lists)) for lists in (short, long) for size in (4096, 8192) for seed in (7, 8)
    ]
    listed = tasks(find("share-senders"), "quick", found)
    assert len({task.key for task in listed}) == len(listed) == 12
    assert listed[0].label.startswith("idt_over_T=[[2.0, 2.0]] message_bytes=4096 seed=7 ")


def test_a_point_is_the_one_that_run_runs():
    """Its seed and its key depend neither on the rest of the grid nor on the order of the axes."""
    experiment = find("share-senders")
    small = tasks(experiment, "quick", grid("message_bytes=8192"))
    large = tasks(experiment, "quick", grid("seed=3,1", "message_bytes=4096,8192"))
    assert {task.key for task in small} < {task.key for task in large}
    from lanikai.sim.experiments.framework.runner import point_seed

    assert [task.seed for task in small] == [point_seed(1, "share-senders", n) for n in range(len(small))]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["message_bytes"], "--grid 'message_bytes': not of the form key=a,b,c"),
        (["message_bytes="], "--grid 'message_bytes=': not of the form key=a,b,c"),
        (["message_bytes=4096,"], "--grid 'message_bytes=4096,': a value is empty"),
        (["message_bytes=1,1"], "--grid 'message_bytes=1,1': the value '1' is given twice"),
        (
            ["message_bytes=1", "message_bytes=2"],
            "--grid 'message_bytes=2': 'message_bytes' is in the grid twice",
        ),
        (["seed=1,x"], f"--grid seed: 'x': 0 to {2**63 - 1}"),
        (["seed=" + ",".join(map(str, range(100001)))], "--grid: 100001 combinations: at most 100000"),
    ],
)
def test_bad_grids(axes, message):
    """One line that names what is wrong."""
    with pytest.raises(UserError) as caught:
        grid(*axes)
    assert str(caught.value) == message


def test_same_combination_twice():
    """Two texts of one value are one point, not two rows."""
    with pytest.raises(UserError, match=r"^--grid: two combinations are the same: IDT 2T 2T"):
        tasks(find("share-senders"), "quick", grid("idt_over_T=[[2,2]],[[2.0,2.0]]"))


def test_bad_values_are_refused_before_anything_is_made(sweep, tmp_path):
    """A value of the last combination is one that the experiment refuses. No folder is left."""
    out = tmp_path / "sweep"
    for arguments, wrong in (
        (["share-senders", "--grid", "message_bytes=4096,0"], "message_bytes = 0"),
        (["share-senders", "--grid", "colour=1,2"], "unknown parameter 'colour'"),
        (["share-sender", "--grid", "message_bytes=4096"], "did you mean 'share-senders'"),
        (["share-senders"], "--grid KEY=A,B,C: give at least one"),
        (
            ["share-senders", "--grid", "seed=1,2", "--seed", "3"],
            "--seed and --grid seed=...: give one of them",
        ),
        (["share-senders", "--grid", "colour=1,2"], "--grid 'colour=1'"),
        (
            ["share-senders", "--grid", "message_bytes=4096", "--set", "message_bytes=8192"],
            "--grid 'message_bytes=4096': 'message_bytes' is given by --set too: give one of them",
        ),
        (["share-senders", "--grid", "message_bytes=1", "--cluster", "here"], "--cluster 'here': tcp://"),
        (
            ["share-senders", "--grid", "message_bytes=1", "--cluster", "local:0"],
            "--cluster 'local:0': local:N",
        ),
        (
            ["share-senders", "--grid", "message_bytes=1", "--cluster", "local:1", "-j", "2"],
            "give one of them",
        ),
    ):
        status, printed = sweep(*arguments, "--out", str(out))
        first, *names = printed.err.splitlines()
        assert status == 2 and wrong in first and all(row.startswith("  ") for row in names), printed.err
        assert not out.exists()


def test_failures(sweep, tmp_path):
    """A point that fails once has a result all the same; one that fails twice is reported; the others go
    on."""
    out = tmp_path / "sweep"
    status, printed = sweep(
        "share-senders", "--grid", f"message_bytes={SIZES}", "--set", "idt_over_T=[[2,2]]", "--out", str(out),
        flaky=(8192,), broken=(12288,), crash=(16384,),
    )  # fmt: skip
    assert status == 1
    assert runs(tmp_path) == {4096: 1, 8192: 2, 12288: 2, 16384: 2}
    text = printed.out
    assert (
        "message_bytes=8192 IDT 2T 2T failed: nothing has moved for 100000 cycles; it is run once more"
        in text
    )
    assert "message_bytes=12288 IDT 2T 2T failed: nothing has moved" in text
    assert "it stays without a result" in text and "ZeroDivisionError: a bug" in text
    assert "2 of 4 points have results, 0 of them from before" in text
    table = polars.read_csv(out / "table.csv")
    assert sorted(set(table["set_message_bytes"])) == [4096, 8192]
    failures = polars.read_csv(out / "failures.csv")
    assert failures["why"].to_list() == ["nothing has moved for 100000 cycles", "ZeroDivisionError: a bug"]
    logs = [path.read_text() for path in sorted((out / "points").glob("*.log"))]
    assert sum("its last words" in log for log in logs) == 1
    assert any("Traceback" in log for log in logs)


def test_table(sweep, tmp_path):
    """Every parameter is a column, CSV and Parquet are the same table."""
    out = tmp_path / "sweep"
    status, _ = sweep("share-senders", "--grid", "message_bytes=65536,4096", "--out", str(out))
    assert status == 0 and runs(tmp_path) == {65536: 3, 4096: 3}
    csv, parquet = polars.read_csv(out / "table.csv"), polars.read_parquet(out / "table.parquet")
    parameters = find("share-senders").Parameters.model_fields
    assert {f"set_{name}" for name in [*parameters, "seed"]} <= set(csv.columns)
    assert (
        csv.shape == parquet.shape
        and csv["bandwidth_mb_per_s"].to_list() == parquet["bandwidth_mb_per_s"].to_list()
    )
    assert csv["set_message_bytes"].to_list() == [65536] * 7 + [4096] * 7
    assert set(polars.read_csv(out / "claims.csv")["holds"]) == {True}


def whole(tmp_path, name, backend, executor, progress=lambda done, text: None):
    """A sweep of 6 points by the library. Returns the tables."""
    experiment = find("share-senders")
    found = grid(f"message_bytes={SIZES},20480,24576", settings=["idt_over_T=[[2,3]]"])
    with SweepFolder(tmp_path / name, {"experiment": experiment.name, "size": "quick"}) as folder:
        report = run_sweep(
            experiment,
            found,
            tasks(experiment, "quick", found),
            folder=folder,
            executor=executor,
            backend=backend,
            timeout_seconds=60,
            progress=progress,
            failed=lambda label, why, again: None,
        )
    assert report.exit_status == 0 and report.points == 6
    return {table: (tmp_path / name / table).read_bytes() for table in TABLES}


def test_goes_on_where_it_stopped(tmp_path, backend):
    """An interrupted sweep runs the missing points, and its table is that of one that was never interrupted."""

    class Stop(Exception):
        pass

    def stop(done, text):
        if done >= 2:
            raise Stop

    with pytest.raises(Stop):
        whole(tmp_path, "a", backend(), LocalExecutor(workers=1), stop)
    before = runs(tmp_path)
    assert 2 <= before.total() < 6
    resumed = whole(tmp_path, "a", backend(), LocalExecutor(workers=1))
    assert runs(tmp_path).total() - before.total() == 6 - 2
    assert resumed == whole(tmp_path, "b", backend(), LocalExecutor(workers=3))
    # A result that is not whole is no result.
    victim = next((tmp_path / "a" / "points").glob("*.json"))
    victim.write_text(victim.read_text()[:20])
    assert whole(tmp_path, "a", backend(), LocalExecutor(workers=1)) == resumed


def test_folder_of_something_else(tmp_path, monkeypatch):
    """No table mixes experiments, or results of different code; nobody's files are touched."""
    definition = {"experiment": "share-senders", "size": "quick"}
    begun = SweepFolder(tmp_path / "s", definition)
    with pytest.raises(UserError, match=r"^sweep folder '.*' is in use: another run writes into it"):
        SweepFolder(tmp_path / "s", definition)
    begun.__exit__()
    with pytest.raises(UserError, match="holds a sweep with size 'quick', not 'full': name a new folder"):
        SweepFolder(tmp_path / "s", definition | {"size": "full"})
    other = Code(digest="0" * 32, versions=code_here().versions)
    monkeypatch.setattr("lanikai.sim.sweeps.store.code_here", lambda: other)
    with pytest.raises(UserError, match="was begun with other sources"):
        SweepFolder(tmp_path / "s", definition)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(UserError, match="is not empty and holds no sweep"):
        SweepFolder(tmp_path / "mine", definition)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.xdist_group("dask")
def test_dask_cluster_survives_a_worker(tmp_path, backend):
    """Two workers of a local Dask cluster, one killed in the middle: every point has its result, and the table
    is byte for byte that of this machine's own processes."""
    from lanikai.sim.sweeps.dask_cluster import connect

    killed = threading.Event()
    with connect("local:2") as executor:

        def kill(done, text):
            if done >= 1 and not killed.is_set():
                pids = executor.client.run(os.getpid)
                os.kill(min(pids.values()), signal.SIGKILL)
                killed.set()

        spread = whole(tmp_path, "dask", backend(slow=0.3), executor, kill)
    assert killed.is_set()
    assert spread == whole(tmp_path, "here", backend(), LocalExecutor(workers=2))


@pytest.mark.xdist_group("dask")
def test_cluster_command(sweep, tmp_path):
    """`--cluster local:2` from the command line; a failing point behaves as it does at home."""
    out = tmp_path / "sweep"
    status, _ = sweep(
        "share-senders", "--grid", f"message_bytes={SIZES}", "--set", "idt_over_T=[[2,2]]", "--out", str(out),
        "--cluster", "local:2", flaky=(8192,), crash=(16384,),
    )  # fmt: skip
    assert status == 1 and runs(tmp_path) == {4096: 1, 8192: 2, 12288: 1, 16384: 2}
    assert polars.read_csv(out / "failures.csv")["why"].to_list() == ["ZeroDivisionError: a bug"]


def test_no_scheduler(sweep, tmp_path):
    """An address where nothing listens: one line in a few seconds, no folder."""
    out, began = tmp_path / "sweep", time.monotonic()
    status, printed = sweep(
        "share-senders", "--grid", "message_bytes=1", "--out", str(out), "--cluster", "tcp://127.0.0.1:9"
    )
    assert status == 2 and "no Dask scheduler answers there" in printed.err and not out.exists()
    assert time.monotonic() - began < 8


def test_something_else_than_a_scheduler(sweep, tmp_path):
    """A machine that takes connections and says nothing: one line in a few seconds."""
    out, began = tmp_path / "sweep", time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        status, printed = sweep(
            "share-senders", "--grid", "message_bytes=1", "--out", str(out), "--cluster", address
        )
    assert status == 2 and "no Dask scheduler answers there" in printed.err and not out.exists()
    assert time.monotonic() - began < 15
