"""The build and its cache: what is built once, which designs are errors, the remains of an interrupt."""

import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from lanikai.hdl.config import RouterConfig
from lanikai.sim.build import compiler as compiler_module
from lanikai.sim.build import model as build_module
from lanikai.sim.build.cache import Cache, content_key
from lanikai.sim.build.compact_memories import compact_memories
from lanikai.sim.build.compiler import BuildError, compiler, require_trace_header
from lanikai.sim.build.model import WRITERS, Design, Public, Recipe, build, sources_hash
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.machine import cores
from lanikai.sim.systems.cluster import cluster_preset
from lanikai.sim.systems.message_config import MessageNetworkConfig
from lanikai.sim.systems.rate_unit import RateUnitConfig
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

HERE = Path(__file__).parent
LITTLE = Design(top="little", sources={"little.v": "module little(input clk, output reg q);\nendmodule\n"})


@pytest.fixture
def fresh_compiler():
    """Have the choice of a compiler, which is made once a process, made anew, before and after."""
    compiler.cache_clear()
    yield
    compiler.cache_clear()


def test_built_once(tmp_path, monkeypatch):
    """A known recipe needs neither elaboration nor compiler; the same design by another recipe needs no compiler.

    Other content is built, with Verilator's library compiled once. All happens in a folder in which make could not
    work. Temporary files of the compilers stay inside the folders that are removed.
    """
    seen = []
    supervised = compiler_module.run_supervised

    def run_supervised(command, *, cwd, env, log):
        seen.append((cwd, Path(env["TMPDIR"])))
        assert seen[-1][1].is_dir()
        return supervised(command, cwd=cwd, env=env, log=log)

    monkeypatch.setattr(compiler_module, "run_supervised", run_supervised)
    cache = Cache(tmp_path / "a #folder:$HOME\t\u00e4")
    made, told = [], []

    def make():
        made.append(1)
        return LITTLE

    recipe = Recipe(name="little", config='{"a":1}', make=make)
    first = build(recipe, cache=cache, progress=lambda fraction, text: told.append((fraction, text)))
    assert not first.cached and first.executable.exists() and len(made) == 1
    assert told[0] == (0.0, "little: Amaranth to Verilog") and told[-1] == (1.0, "little: built")
    second = build(recipe, cache=cache)
    assert second.cached and second.seconds < 1 and len(made) == 1
    assert second.executable == first.executable
    assert build(replace(recipe, config='{"a":2}'), cache=cache).cached and len(made) == 2
    changed = replace(LITTLE, sources={"little.v": LITTLE.sources["little.v"].replace("reg q", "reg r")})
    third = build(changed, cache=cache)
    assert not third.cached and third.key != first.key
    assert len(list((cache.root / "runtimes").iterdir())) == 1
    assert not list((cache.root / "models").glob("*.partial"))
    assert all(not place.exists() and place.parent in (cwd, cwd.parent) for cwd, place in seen)
    assert not list(cache.root.rglob("scratch"))


def test_control_file():
    """Only the listed signals are visible, by their access, and only outside a debug build."""
    design = replace(
        LITTLE, public=(Public("little", "q"), Public("a", "b", writable=True)), no_inline=("a",)
    )
    assert design.control_file("fast").splitlines() == [
        "`verilator_config",
        'public_flat_rd -module "little" -var "q"',
        'public_flat_rw -module "a" -var "b"',
        'no_inline -module "a"',
    ]
    assert design.control_file("debug").splitlines() == ["`verilator_config", 'no_inline -module "a"']


def test_unknown_variant(tmp_path):
    """A wrong variant is named with the right ones."""
    with pytest.raises(ValueError, match=r"^variant = 'slow': one of fast, debug, waves$"):
        build(LITTLE, "slow", cache=Cache(tmp_path))


def test_error_names_the_log(tmp_path):
    """A design that Verilator refuses: a log that stays, its last lines, no entry."""
    broken = Design(top="little", sources={"little.v": "module little(input clk); nonsense endmodule\n"})
    with pytest.raises(BuildError, match=r"^verilator failed; the log is ") as caught:
        build(broken, cache=Cache(tmp_path))
    assert caught.value.log.exists() and "syntax error" in str(caught.value)
    assert not list((tmp_path / "models").iterdir())


def test_missing_tools(tmp_path, monkeypatch, fresh_compiler):
    """Each missing tool is one line with the command that installs it."""
    monkeypatch.delenv("LANIKAI_CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool) as caught:
        build(LITTLE, cache=Cache(tmp_path))
    assert str(caught.value) == "C++ compiler is missing; install it with: sudo apt-get install g++"
    monkeypatch.setenv("LANIKAI_CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"^LANIKAI_CXX=no-such-compiler: no such compiler; name one"):
        build(LITTLE, cache=Cache(tmp_path))
    # A compiler that finds no header.
    fake = tmp_path / "fake-c++"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LANIKAI_CXX", str(fake))
    monkeypatch.setattr(compiler_module, "compiler", lambda: compiler_module.Compiler(str(fake), False, ""))
    with pytest.raises(MissingTool) as caught:
        require_trace_header()
    assert str(caught.value) == (
        "lz4.h (needed for wave files) is missing; install it with: sudo apt-get install liblz4-dev"
    )
    with pytest.raises(MissingTool, match=r"^make is missing; install it with: sudo apt-get install make$"):
        compiler_module.make_model(tmp_path, "x", [], flags=(), log=tmp_path / "log", runtime=None)


BUILDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_build import LITTLE, build, Cache
build(LITTLE, cache=Cache(Path(sys.argv[1])))
"""
MAKER = """
import sys, time
from pathlib import Path
from lanikai.sim.build.cache import Cache
def fill(folder):
    time.sleep(1)
    (folder / "content").write_text("whole")
_, cached = Cache(Path(sys.argv[1])).make("things", "key", fill, lambda: print("waiting", flush=True))
print("cached", cached)
"""


def start(program, folder):
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder), str(HERE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def processes_in(folder):
    """Processes whose working directory is below `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_two_at_once(tmp_path):
    """Two processes that want the same entry: one makes it, the other waits and says so, both have it."""
    both = [start(MAKER, tmp_path) for _ in range(2)]
    outputs = sorted(process.communicate()[0] for process in both)
    assert outputs == ["cached False\n", "waiting\ncached True\n"]


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_interrupted(tmp_path, kill):
    """An interrupted build leaves no process. A killed one leaves files, and whoever comes next sweeps them."""
    process = start(BUILDER, tmp_path)
    wait_until(lambda: processes_in(tmp_path / "models"))
    process.send_signal(kill)
    process.wait(60)
    wait_until(lambda: not processes_in(tmp_path / "models"))
    partial = list((tmp_path / "models").glob("*.partial"))
    assert len(partial) == (kill == signal.SIGKILL)
    Cache(tmp_path).make("models", "another", lambda folder: None)
    assert not list((tmp_path / "models").glob("*.partial"))


def test_failed_entry(tmp_path):
    """An entry whose making fails is not there, and can be made again."""
    cache = Cache(tmp_path)

    def fail(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.make("things", "key", fail)
    assert cache.find("things", "key") is None
    path, cached = cache.make("things", "key", lambda folder: None)
    assert not cached and path == cache.find("things", "key") and not list(path.iterdir())


def test_content_key():
    """The order of a mapping does not matter, its content does."""
    assert content_key({"a": 1, "b": [2]}) == content_key({"b": [2], "a": 1})
    assert content_key({"a": 1}) != content_key({"a": 2})


def test_compact_memories():
    """Runs of equal rows become a loop; short runs, other values and other text stay."""
    rows = [f"    m[{i}] = 8'h00;" for i in range(6)]
    text = "\n".join(["  initial begin", *rows, "    m[6] = 8'h01;", "    n[7] = 8'h00;", "  end"])
    assert compact_memories(text).splitlines() == [
        "  initial begin",
        "    for (int i = 0; i <= 5; i = i + 1) m[i] = 8'h00;",
        "    m[6] = 8'h01;",
        "    n[7] = 8'h00;",
        "  end",
    ]


def test_scratch_of_a_killed_build_is_swept(tmp_path):
    """The scratch folder of a living build stays."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = [f"lanikai-build-{gone.pid}-x", f"lanikai-build-{os.getpid()}-x", "lanikai-build-x"]
    for name in names:
        (tmp_path / name).mkdir()
    compiler_module._sweep_scratch(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_no_folder_to_build_in(tmp_path, monkeypatch):
    """The case is a cache whose name make cannot stand, and no other folder."""
    monkeypatch.setattr(compiler_module, "_scratch_places", lambda: [])
    with pytest.raises(
        UserError, match=r"^build cache '.*a b': make cannot work in a folder of this name; set TMPDIR"
    ):
        build(LITTLE, cache=Cache(tmp_path / "a b"))


def test_cores_of_a_container(monkeypatch):
    """A quota counts, and so does the set of processors that the process is bound to."""
    assert 1 <= cores() <= len(os.sched_getaffinity(0))
    monkeypatch.setattr("loky.backend.context.cpu_count", lambda: 1)
    assert cores() == 1


def models():
    """A system of every kind."""
    network = named_network("router2", RouterConfig())
    return {
        "cluster": cluster_preset("tiny"),
        "network": TrafficNetworkConfig(network=network),
        "messages": MessageNetworkConfig(network=network),
        "rate unit": RateUnitConfig(),
    }


def test_software_is_in_no_key():
    """Firmware, host libraries, managers and experiments are in no build's key: a change to them rebuilds nothing."""
    root = HERE.parents[2]
    for folder in ("firmware", "sim/host", "sim/manager", "sim/experiments"):
        assert not any(path.resolve().is_relative_to(root / folder) for path in WRITERS)


def test_a_renamed_file_is_another_key(tmp_path):
    """Contents, names and places of files are in the hash of a package; a missing one is an error."""
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "wires.py").write_text("WIRES = 1\n")
    (package / "table.rdl").write_text("addrmap table {};\n")
    (package / "notes.txt").write_text("no source\n")
    keys = [sources_hash(package)]
    (package / "notes.txt").write_text("changed\n")
    assert sources_hash(package) == keys[0]
    for change in (
        lambda: (package / "inner" / "wires.py").rename(package / "inner" / "lines.py"),
        lambda: (package / "inner" / "lines.py").rename(package / "lines.py"),
        lambda: (package / "lines.py").write_text("WIRES = 2\n"),
        lambda: (package / "new.py").write_text(""),
        lambda: (package / "table.rdl").unlink(),
    ):
        change()
        keys.append(sources_hash(package))
    assert len(set(keys)) == len(keys)
    with pytest.raises(ValueError, match="goes into a build's key, but no source file is there"):
        sources_hash(package, tmp_path / "gone.py")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty"):
        sources_hash(tmp_path / "empty")


@pytest.mark.parametrize("kind", ["cluster", "network", "messages", "rate unit"])
def test_a_renamed_writer_is_built_anew(kind, tmp_path, monkeypatch):
    """A system whose design is written by a file that was renamed is made again, and not taken from the cache."""
    writers = tmp_path / "writers"
    writers.mkdir()
    (writers / "structure.py").write_text("TOP = 1\n")
    monkeypatch.setattr(build_module, "WRITERS", (writers,))
    cache, made = Cache(tmp_path / "cache"), []
    monkeypatch.setattr(build_module, "Cache", lambda: cache)

    def built(design, variant, *_):
        made.append(design)
        (cache.root / "models" / "k").mkdir(parents=True, exist_ok=True)
        return build_module.Model(
            top="t", variant=variant, executable=tmp_path, cached=False, seconds=0, key="k"
        )

    monkeypatch.setattr(build_module, "_build_design", built)
    system = models()[kind]
    for name in ("structure.py", "structure.py", "wiring.py"):
        for file in writers.iterdir():
            file.rename(writers / name)
        build_module._writers_hash.cache_clear()
        system.build()
    build_module._writers_hash.cache_clear()
    assert len(made) == 2
