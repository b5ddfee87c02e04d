"""A point's key: every input file by content, and the code. Nothing stale is taken up, no other code is run."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import lanikai.sim.sweeps.code
import polars
import pytest
from lanikai.sim.cli import backend as cli_backend
from lanikai.sim.cli import program
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.registry import find
from lanikai.sim.host.mpi.trace import example_traces
from lanikai.sim.input_files import InputFolder, input_files, marked, placed
from lanikai.sim.sweeps.code import CheckedBackend, Code, OtherCode, check_code, code_here
from lanikai.sim.sweeps.grid import cases, tasks
from lanikai.sim.sweeps.store import SweepFolder

PACKAGE = Path(lanikai.sim.sweeps.code.__file__).parents[2]
OTHER = Code(digest="0" * 32, versions=code_here().versions)


def keys(name, *settings):
    experiment = find(name)
    found = cases(experiment, "quick", grid=["seed=1"], settings=settings, seed=1)
    return {task.key for task in tasks(experiment, "quick", found)}


def network(path, nodes):
    """A file with one router and so many nodes."""
    path.write_text(json.dumps({"routers": 1, "nodes": [[0, port] for port in range(nodes)], "links": []}))


def test_every_file_that_a_parameter_names_is_in_the_key(tmp_path, monkeypatch):
    """A path, a list of paths, a text that names a file: each edit makes other points, undoing it the same again."""
    monkeypatch.chdir(tmp_path)
    sent = tmp_path / "sent.bin"
    ring = tmp_path / "ring.json"
    traces = [shutil.copy(path, tmp_path) for path in example_traces()]
    listed = json.dumps([Path(path).name for path in traces])

    def all_keys():
        return [
            keys("transfer", "file=sent.bin"),
            keys("mpi-replay", f"traces={listed}"),
            keys("network-load", "network=ring.json"),
        ]

    sent.write_bytes(b"one")
    network(ring, 4)
    first = all_keys()
    assert first == all_keys()
    sent.write_bytes(b"two")
    with Path(traces[2]).open("a") as file:
        file.write("# a comment\n")
    network(ring, 3)
    assert all(not before & after for before, after in zip(first, all_keys(), strict=True))
    sent.write_bytes(b"one")
    network(ring, 4)
    assert all_keys()[::2] == first[::2]


def test_code_is_in_the_key(monkeypatch):
    """Other sources or another version of what they run on: no point of the one is one of the other."""
    mine = keys("share-senders")
    monkeypatch.setattr("lanikai.sim.sweeps.grid.code_here", lambda: OTHER)
    assert not mine & keys("share-senders")
    newer = Code(digest=code_here().digest, versions=dict(code_here().versions) | {"cocotb": "9.0"})
    monkeypatch.setattr("lanikai.sim.sweeps.grid.code_here", lambda: newer)
    assert not mine & keys("share-senders")
    assert newer.difference(code_here()) == f"cocotb {code_here().versions['cocotb']}, not 9.0"
    assert OTHER.difference(code_here()) == f"sources {code_here().digest[:8]}, not 00000000"


def test_data_that_comes_along_is_code():
    """The digest has every file of the package that a result may follow from, not Python's alone."""
    listed = set(lanikai.sim.sweeps.code._listed()[1])
    films = [
        path for path in (PACKAGE / "sim/experiments/video").iterdir() if path.suffix in (".bits", ".bytes")
    ]
    sources = ("sim/published.toml", "sim/native/main.cpp", "hdl/nic/nic.rdl", "firmware/gm/engine.py")
    assert films and {*example_traces(), *films, *(PACKAGE / name for name in sources)} <= listed
    assert not any("__pycache__" in path.parts for path in listed)


class Edited:
    """A backend during whose point nothing else happens."""

    def run(self, model, job, progress):
        return None


def test_an_edit_is_seen(tmp_path, monkeypatch):
    """A file that is edited, added or removed after the process has begun; a time alone is no edit."""
    root = tmp_path / "sim"
    root.mkdir()
    (root / "a.py").write_text("one = 1\n")
    monkeypatch.setattr("lanikai.sim.sweeps.code._ROOTS", (root,))
    monkeypatch.setattr("lanikai.sim.sweeps.code._PACKAGE", tmp_path)
    files = lanikai.sim.sweeps.code._Files()
    monkeypatch.setattr("lanikai.sim.sweeps.code._files", lambda: files)
    check_code(code_here())
    os.utime(root / "a.py", (1, 1))
    (root / "__pycache__").mkdir()
    check_code(code_here())
    (root / "a.py").write_text("one = 2\n")
    with pytest.raises(OtherCode, match=r"^other code: sim/a.py has been edited since the sweep began$"):
        check_code(code_here())
    (root / "a.py").write_text("one = 1\n")
    check_code(code_here())
    (root / "new.txt").write_text("")
    with pytest.raises(OtherCode, match=r"sim/new\.txt"):
        check_code(code_here())
    with pytest.raises(OtherCode, match=r"sim/new\.txt"):
        check_code(code_here(), recent_seconds=60)  # what was found once is not forgotten
    (root / "new.txt").unlink()
    check_code(code_here())
    # Just before a point, a look that is not old will do. The one after it is new.
    (root / "new.txt").write_text("")
    check_code(code_here(), recent_seconds=60)
    with pytest.raises(OtherCode, match=r"sim/new\.txt"):
        CheckedBackend(backend=Edited(), code=code_here()).run(None, None, lambda fraction, text: None)
    with pytest.raises(OtherCode, match=r"^other code: sources [0-9a-f]{8}, not 00000000$"):
        check_code(OTHER)


def test_marks(tmp_path):
    """Absolute paths in a spec are replaced, links resolved or not; other texts of the same name are not."""
    (tmp_path / "real").write_text("x")
    (tmp_path / "clock").symlink_to(tmp_path / "real")
    parameters = find("transfer").Parameters(file=tmp_path / "clock")
    (file,) = input_files(parameters)
    spec = {"case": "clock", "list": [str(tmp_path / "clock"), {"deep": str(tmp_path / "real")}], "n": 1}
    replaced = marked(spec, [file])
    assert replaced == {"case": "clock", "list": [file.mark, {"deep": file.mark}], "n": 1}
    assert placed(replaced, {file.mark: Path("/there")})["list"] == ["/there", {"deep": "/there"}]
    folder = InputFolder(tmp_path / "inputs")
    folder.copy(file)
    assert folder.place(file).read_text() == "x" and folder.content(file) == b"x"
    (tmp_path / "real").write_text("y")
    (tmp_path / "other").mkdir()
    with pytest.raises(
        UserError, match=r"clock' was edited while the sweep began: give the same command again$"
    ):
        InputFolder(tmp_path / "other").copy(file)
    assert list((tmp_path / "other").iterdir()) == []


@pytest.fixture
def transfer(tmp_path, monkeypatch, capsys):
    """Runs `lanikai sweep transfer` on a file; status, what was printed, the paths that points read."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from support.sim.file_backend import FileBackend

    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.setattr(cli_backend, "make", lambda threads: FileBackend(runs=str(runs)))

    def run(*arguments):
        for path in runs.iterdir():
            path.unlink()
        with pytest.raises(SystemExit) as ended:
            program.main(
                ["sweep", "transfer", "--set", f"file={tmp_path / 'sent.bin'}", "--out", str(tmp_path / "out"),
                 "--grid", "message_bytes=1024,4096", *arguments]
            )  # fmt: skip
        return ended.value.code, capsys.readouterr(), [Path(path.read_text()) for path in runs.iterdir()]

    return run


def hashes(tmp_path):
    return set(polars.read_csv(tmp_path / "out" / "table.csv")["sha256_sent"])


def test_an_edited_input_is_computed_anew(transfer, tmp_path):
    """Points of the file as it was are not taken up. When it is as it was, they are."""
    sent = tmp_path / "sent.bin"
    sent.write_bytes(b"one" * 1000)
    status, printed, read = transfer()
    assert status == 0 and len(read) == 2 and "0 of them from before" in printed.out
    before = hashes(tmp_path)
    assert transfer()[2] == []
    sent.write_bytes(b"two" * 1000)
    status, printed, read = transfer()
    assert status == 0 and len(read) == 2 and "0 of them from before" in printed.out
    assert not before & hashes(tmp_path)
    sent.write_bytes(b"one" * 1000)
    status, printed, read = transfer()
    assert read == [] and "2 of them from before" in printed.out and hashes(tmp_path) == before


@pytest.mark.xdist_group("dask")
def test_inputs_travel(transfer, tmp_path, monkeypatch):
    """Workers read copies of their own; the table is that of this machine's processes, which read one in the sweep's
    folder. The user's path is in no spec."""
    sent = tmp_path / "sent.bin"
    sent.write_bytes(os.urandom(100_000))
    _, _, read = transfer()
    inputs = tmp_path / "out" / "inputs"
    assert all(path.is_relative_to(inputs) and path.name == "sent.bin" for path in read)
    table = (tmp_path / "out" / "table.csv").read_bytes()
    (tmp_path / "out").rename(tmp_path / "here")
    monkeypatch.setenv("LANIKAI_CACHE_DIR", str(tmp_path / "cache"))
    status, printed, read = transfer("--cluster", "local:2")
    assert status == 0, printed.err
    cache = tmp_path / "cache" / "inputs"
    assert len(read) == 2 and all(path.is_relative_to(cache) for path in read)
    assert (tmp_path / "out" / "table.csv").read_bytes() == table


def test_an_edit_ends_the_sweep(tmp_path, monkeypatch, transfer):
    """A process that finds other code than the sweep's ends it with one line; the folder is free afterwards."""
    (tmp_path / "sent.bin").write_bytes(b"one")
    monkeypatch.setattr("lanikai.sim.sweeps.sweep.code_here", lambda: OTHER)
    status, printed, _ = transfer()
    assert status == 1 and printed.err.count("\n") == 1
    assert "other code: sources" in printed.err and "not 00000000" in printed.err
    SweepFolder(
        tmp_path / "out",
        {"experiment": "transfer", "size": "quick"},
    ).__exit__()


def copied_package(folder, edit):
    """The environment of a process that has a copy of the package, with an edit."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE / "lanikai", folder / "lanikai", ignore=ignore)
    for part in ("sim", "hdl", "firmware", "constraints", "api"):
        shutil.copytree(PACKAGE / part, folder / "lanikai" / part, ignore=ignore)
    with (folder / "lanikai" / "sim" / "units.py").open("a") as file:
        file.write(edit)
    tests = Path(__file__).parents[2]
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(folder), str(tests)])}


@pytest.mark.xdist_group("dask")
def test_workers_with_other_code_are_refused(tmp_path):
    """Two workers of a running cluster, one with an edited copy: that one is named in a line and given no point, the
    other one all. Alone, it ends the sweep. One that comes later is refused, too."""
    from distributed import LocalCluster
    from lanikai.sim.errors import SimulationError
    from lanikai.sim.sweeps.dask_cluster import connect
    from support.sim.sweep_points import run_points

    def worker(name, environment):
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--name", name,
             "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path / name)],
            # The current folder comes before PYTHONPATH, and in the clone it has the package itself.
            cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    said = []
    mine = copied_package(tmp_path / "copy", "")
    edited = copied_package(tmp_path / "edit", "# edited\n")
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        processes = [worker("edited", edited)]
        try:
            cluster.get_client().wait_for_workers(1, timeout=60)
            with (
                pytest.raises(SimulationError, match="no worker has this machine's code"),
                connect(cluster.scheduler_address, said.append),
            ):
                pass
            assert len(said) == 1 and "is refused: other code: sources" in said[0]
            processes.append(worker("mine", mine))
            cluster.get_client().wait_for_workers(2, timeout=60)
            late = threading.Event()

            def come(done, text):
                if done >= 2 and not late.is_set():
                    late.set()
                    processes.append(worker("late", edited))
                    cluster.get_client().wait_for_workers(3, timeout=60)

            with connect(cluster.scheduler_address, said.append) as executor:
                where = run_points(tmp_path, executor, points=12, slow=0.3, progress=come)
            assert len(said) == 3 and all("is refused: other code" in line for line in said)
            assert set(where.values()) == {processes[1].pid}
        finally:
            for process in processes:
                process.kill()
                process.wait()
