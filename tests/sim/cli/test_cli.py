"""The command line: every kind of wrong input, exit statuses, the places of all output, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lanikai.sim.cli import backend, program
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.experiments.share_senders import ShareSenders
from lanikai.sim.experiments.transfer import Transfer
from lanikai.sim.published import CONSTANTS, tables

TESTS = Path(__file__).parents[2]
JSON_KEYS = {
    *("experiment", "size", "seed", "parameters", "command", "versions"),
    *("cycles", "wall_seconds", "cycles_per_second"),
    *("build_seconds", "build_cached", "points", "claims", "claims_not_judged", "failures", "notes", "files"),
}


def lanikai(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from lanikai.sim.cli.program import main; main()", *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Run commands in this process on a backend without RTL. `fake(*arguments, skew=..)` gives the exit status."""
    monkeypatch.chdir(tmp_path)
    from support.sim import fake_backend

    for experiment in (ShareSenders, Transfer):
        monkeypatch.setattr(experiment, "cluster", lambda self, parameters: None)

    def run(*arguments: str, **behaviour) -> int:
        monkeypatch.setattr(backend, "make", lambda threads: fake_backend.FakeBackend(**behaviour))
        with pytest.raises(SystemExit) as caught:
            program.main(arguments)
        return caught.value.code

    return run


SHARE = ("run", "share-senders")
BAD_INPUT = [
    (
        ("run", "share-sender"),
        "unknown experiment 'share-sender' (did you mean 'share-senders'?); built are:\n  share-senders ",
    ),
    (("run", "xyzzy"), "unknown experiment 'xyzzy'; built are:\n"),
    (("run", "substrates"), "experiment 'substrates' is not built yet; built are:\n"),
    (("run", "router"), "'router' holds the constants of a set-up"),
    (("run",), "Missing argument 'NAME'."),
    (("walk",), "unknown command 'walk'; valid commands:"),
    ((*SHARE, "--fast"), "No such option: --fast"),
    ((*SHARE, "--quick", "--full"), "--quick and --full: give one of them"),
    ((*SHARE, "--waves", "--debug"), "--waves and --debug: give one of them"),
    ((*SHARE, "--seed", "x"), "Invalid value for '--seed'"),
    ((*SHARE, "--seed", "-1"), "Invalid value for '--seed'"),
    ((*SHARE, "-j", "0"), "Invalid value for '-j'"),
    ((*SHARE, "--threads", "0"), "Invalid value for '--threads'"),
    ((*SHARE, "--threads", "65"), "Invalid value for '--threads'"),
    ((*SHARE, "--threads", "two"), "Invalid value for '--threads'"),
    (("bench", "--threads", "1"), "Invalid value for '--threads'"),
    (("bench", "--threads", "2", "--full"), "--threads: not with --build, --full, --compare or --beside"),
    (("sweep", "share-senders", "--grid", "seed=1", "--threads", "-1"), "Invalid value for '--threads'"),
    (
        (*SHARE, "--set", "size=1"),
        "unknown parameter 'size' of share-senders; valid: idt_over_T, message_bytes\n",
    ),
    ((*SHARE, "--set", "message_bytes"), "not of the form key=value; valid: idt_over_T, message_bytes\n"),
    ((*SHARE, "--set", "message_bytes=0"), "message_bytes = 0: must be 1 to 262144\n"),
    ((*SHARE, "--set", f"idt_over_T={[[2] * 17]}"), "has 17 flows: the rate control unit holds 16"),
    (
        (*SHARE, "--set", "idt_over_T=[[1e308]]"),
        "idt_over_T[0][0] = 1e+308: an IDT is 1 to 1073741823 ticks, ",
    ),
    ((*SHARE, "--set", "idt_over_T=[[true]]"), "idt_over_T.0.0 = True: idt_over_T must be a list of 1 to 64"),
    ((*SHARE, "--set", 'idt_over_T=[["2"]]'), "idt_over_T.0.0 = '2': idt_over_T must be a list of 1 to 64"),
    ((*SHARE, "--set", "message_bytes=true"), "message_bytes = True: must be a whole number, 1 to 262144\n"),
    (
        (*SHARE, "--set", 'message_bytes="4096"'),
        "message_bytes = '4096': must be a whole number, 1 to 262144\n",
    ),
    ((*SHARE, "--set", f"message_bytes={'9' * 5000}"), "message_bytes = '999"),
    (
        (*SHARE, "--set", f"idt_over_T={[[2]] * 65}"),
        "must be a list of 1 to 64 settings, each a list of 1 to 16 IDTs",
    ),
    ((*SHARE, "--set", "idt_over_T=[[0, 2]]"), "an IDT is 1 to 1073741823 ticks"),
    (("run", "transfer"), "transfer needs --set file=VALUE: a file of 1 byte to 16 MiB\n"),
    (("run", "transfer", "--set", "file=none"), "file 'none' cannot be sent: there is no such file"),
    (("run", "transfer", "--set", "file=."), "file '.' cannot be sent: it is not a file"),
    (("run", "transfer", "--set", "file=empty"), "file 'empty' cannot be sent: it is empty"),
    ((*SHARE, "--out", "empty/run"), "output folder 'empty/run' cannot be written: "),
    ((*SHARE, "--out", "empty"), "output folder 'empty' cannot be written: "),
    ((*SHARE, "--out", ""), "--out '': give the name of a folder"),
    ((*SHARE, "--out", "."), "output folder '.' is not empty and no run made it: name a new folder"),
    ((*SHARE, "--json", "none/r.json"), "--json 'none/r.json' cannot be written: there is no folder"),
    ((*SHARE, "--json", "."), "--json '.' cannot be written: it is a folder"),
    (("waves", "none"), "there is no folder 'none'"),
    (("waves", "."), "no waveform (*.fst) in '.'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT, ids=[" ".join(a)[:60] for a, _ in BAD_INPUT])
def test_wrong_input_is_one_line_and_status_2_and_leaves_nothing(fake, tmp_path, capsys, arguments, message):
    (tmp_path / "empty").touch()
    assert fake(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *names = captured.err.splitlines()
    # What would be right may be a list of names: it stands below the line, indented.
    assert first.startswith("lanikai: ") and all(row.startswith("  ") for row in names)
    assert not names or first.endswith(("valid:", "are:", "commands:"))
    assert message in captured.err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize(
    "setting",
    [
        "x" * 5000,
        f"{'x' * 5000}=1",
        f"message_bytes={'9' * 5000}",
        f"message_bytes={'x' * 5000}",
        f"idt_over_T={[[2.5] * 400]}",
        f"idt_over_T={[[2]] * 400}",
    ],
    ids=lambda text: text[:24],
)
def test_wrong_input_is_not_repeated_at_length(fake, capsys, setting):
    assert fake("run", "share-senders", "--set", setting) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and len(error) < 500


def test_wrong_input_in_a_process_of_its_own(tmp_path):
    done = lanikai("run", "share-senders", "--set", "a=1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("lanikai: --set 'a=1': unknown parameter 'a'")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cache", ["/proc/none", "file", "file/below"])
def test_an_unusable_cache_is_one_line_and_leaves_nothing(fake, tmp_path, capsys, monkeypatch, cache):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LANIKAI_CACHE_DIR", cache)
    assert fake("run", "share-senders", "--out", "here") == 2
    error = capsys.readouterr().err
    path = Path(cache).absolute()
    assert error.startswith(f"lanikai: build cache {str(path)!r} cannot be written: ")
    assert error.endswith("; set LANIKAI_CACHE_DIR to a folder that can\n") and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_one_line(fake, tmp_path, capsys):
    assert fake("run", "share-senders", "--out", "points", fault="full") == 1
    error = capsys.readouterr().err
    assert error.endswith("point.fst cannot be written: No space left on device\n") and error.count("\n") == 1
    assert fake("run", "share-senders", "--out", "here", "--json", "/dev/full") == 1
    assert capsys.readouterr().err.endswith("--json '/dev/full' cannot be written: No space left on device\n")
    code = "from lanikai.sim.cli.program import main; main(['list'])"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
    assert done.returncode == 1
    assert done.stderr == "lanikai: standard output cannot be written: No space left on device\n"


def test_list_names_every_table_and_is_quick(tmp_path):
    started = time.monotonic()
    done = lanikai("list", cwd=tmp_path)
    took = time.monotonic() - started
    assert done.returncode == 0 and done.stderr == ""
    names = [line.split()[0] for line in done.stdout.splitlines() if line[0] != " "]
    assert {"experiment", *tables(), *EXPERIMENTS} - CONSTANTS == set(names)
    # A second on an idle machine; the tests have no idle machine. What makes it slow is named below.
    assert took < 10


def test_list_imports_nothing_heavy(tmp_path):
    heavy = ("cocotb", "matplotlib", "polars")
    code = (
        "import sys\nfrom lanikai.sim.cli.program import main\ntry:\n    main(['list'])\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "[]\n"


def test_json_alone_on_standard_output(fake, tmp_path, capsys):
    assert fake("run", "share-senders", "--json", "-", "--out", "here") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert set(found) == JSON_KEYS
    assert (found["experiment"], found["size"], found["seed"]) == ("share-senders", "quick", 1)
    assert all(Path(found["files"][kind]).is_file() for kind in ("csv", "json", "plot", "log"))
    assert json.loads((tmp_path / "here" / "results.json").read_text()) == found
    assert "within" in captured.err


def test_json_to_a_file_and_the_table_on_standard_output(fake, tmp_path, capsys):
    assert fake("run", "share-senders", "--full", "--seed", "5", "--json", "r.json", "--out", "a/b") == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["size"], found["seed"]) == ("full", 5)
    captured = capsys.readouterr()
    text = captured.out
    for flow in ("40.91", "24.96", "56.88", "39.81", "20.50"):
        assert flow in text
    assert "holds: bandwidth is shared" in text
    for name in ("results.csv", "results.json", "plot.png", "run.log"):
        assert f"a/b/{name}" in text
    assert (tmp_path / "a" / "b" / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_parameters_versions_and_seed_stand_in_the_log(fake, tmp_path):
    assert fake("run", "share-senders", "--seed", "9", "--set", "idt_over_T=[[2, 3]]", "--out", "r") == 0
    log = (tmp_path / "r" / "run.log").read_text()
    assert "seed 9" in log and "parameter idt_over_T = [[2.0, 3.0]]" in log
    assert "version of verilator: " in log
    assert "the simulator's own words" in log


def test_out_of_tolerance_is_status_1_and_said(fake, capsys):
    assert fake("run", "share-senders", "--out", "r", skew=1.1) == 1
    printed = capsys.readouterr()
    assert "OUT" in printed.out and "DOES NOT HOLD" in printed.out
    assert printed.err == (
        "lanikai: share-senders: 3 of 3 points not within the tolerance of a published value, 1 of 1 claims not held\n"
    )


def test_whoever_reads_the_output_may_go_at_any_time(fake, tmp_path, monkeypatch):
    """In `lanikai run ... | head -1` no folder is left half made, whether rich or the pipe itself says so."""
    monkeypatch.setattr(program, "_drop_output", lambda: None)
    for error in (BrokenPipeError(), SystemExit(1)):

        def report(self, index, fraction, text, error=error):
            raise error

        monkeypatch.setattr("lanikai.sim.experiments.framework.display.RunProgress.report", report)
        assert fake("run", "share-senders", "--out", "r") == 1
        assert not (tmp_path / "r").exists()


def test_a_name_that_is_not_utf_8_is_refused_before_anything_is_made(fake, tmp_path, capsys):
    assert fake("run", "share-senders", "--out", os.fsdecode(b"r\xff")) == 2
    assert capsys.readouterr().err == "lanikai: argument 'r\\xff' is not in UTF-8: give a name that is\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_leaves_the_earlier_one_as_it_was(fake, tmp_path, monkeypatch):
    assert fake("run", "share-senders", "--out", "r") == 0
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}

    def interrupt(self, index, fraction, text):
        if index >= 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("lanikai.sim.experiments.framework.display.RunProgress.report", interrupt)
    assert fake("run", "share-senders", "--out", "r") == 130
    assert {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()} == before


def test_a_failed_simulation_is_one_line_and_status_1(fake, capsys):
    assert fake("run", "share-senders", "--out", "r", fault="simulation") == 1
    assert capsys.readouterr().err == "lanikai: nothing has moved for 100000 cycles\n"


def test_an_internal_error_is_one_line_with_the_path_of_a_log(fake, capsys):
    assert fake("run", "share-senders", "--out", "r", fault="crash") == 1
    error = capsys.readouterr().err
    assert error.startswith("lanikai: internal error: ") and error.count("\n") == 1
    log = Path(error.rstrip(")\n").rpartition(" ")[2])
    assert "ZeroDivisionError: a bug" in log.read_text()
    log.unlink()


def test_a_missing_piece_is_one_line_with_its_command_and_status_3(tmp_path):
    done = lanikai("run", "share-senders", cwd=tmp_path, PATH="/nonexistent")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "lanikai: C++ compiler is missing; install it with: sudo apt-get install g++\n"
    assert list(tmp_path.iterdir()) == []


def test_waves_without_gtkwave_says_how_to_get_it(tmp_path):
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / "a.fst").touch()
    done = lanikai("waves", ".", cwd=tmp_path, PATH="/nonexistent")
    assert done.returncode == 3
    assert done.stderr == "lanikai: GTKWave is missing; install it with: sudo apt-get install gtkwave\n"


def test_waves_opens_the_waveform_with_its_save_file(tmp_path):
    viewer = tmp_path / "bin" / "gtkwave"
    viewer.parent.mkdir()
    viewer.write_text('#!/bin/sh\necho "$PWD:" "$@" > $SEEN\n')
    viewer.chmod(0o755)
    (tmp_path / "run").mkdir()
    for name in ("a.fst", "a.gtkw", "b.fst"):
        (tmp_path / "run" / name).touch()
    environment = {
        "PATH": f"{viewer.parent}:{os.environ['PATH']}",
        "SEEN": str(tmp_path / "seen"),
        "DISPLAY": ":9",
    }
    done = lanikai("waves", "run", cwd=tmp_path, **environment)
    assert (done.returncode, done.stdout) == (0, "--point 0: run/a.fst  (opened)\n--point 1: run/b.fst\n")
    seen = (tmp_path / "seen").read_text()
    assert seen == f"{tmp_path / 'run'}: a.fst a.gtkw --rcvar do_initial_zoom_fit yes\n"
    done = lanikai("waves", "run", "--point", "1", cwd=tmp_path, **environment)
    assert done.returncode == 0 and "b.fst --rcvar" in (tmp_path / "seen").read_text()
    done = lanikai("waves", "run", "--point", "2", cwd=tmp_path, **environment)
    assert (done.returncode, done.stderr) == (2, "lanikai: --point 2: 'run' has waveforms 0 to 1\n")
    # A display that is not there: said before, or by GTKWave in many lines with status 0.
    done = lanikai("waves", "run", cwd=tmp_path, **environment | {"DISPLAY": "", "WAYLAND_DISPLAY": ""})
    assert done.returncode == 3
    assert done.stderr == (
        "lanikai: no display (DISPLAY is not set): copy 'run' to a machine with one, and run there: "
        "gtkwave a.fst a.gtkw\n"
    )
    viewer.write_text(
        '#!/bin/sh\necho "Could not initialize GTK!  Is DISPLAY env var/xhost set?"\necho usage\n'
    )
    done = lanikai("waves", "run", cwd=tmp_path, **environment)
    assert done.returncode == 1
    assert done.stderr == "lanikai: GTKWave ended with status 0 and showed nothing: usage\n"


def test_options_of_waves_without_waves(fake, capsys):
    assert fake("run", "share-senders", "--waves-cycles", "5") == 2
    assert capsys.readouterr().err == "lanikai: --waves-cycles: give --waves too, or there is no waveform\n"
    assert fake("run", "share-senders", "--waves", "--waves-of", "cpu1") == 2
    assert capsys.readouterr().err.startswith("lanikai: --waves-of 'cpu1': node0, node1, ...")


def start_sleeping(tmp_path: Path) -> subprocess.Popen[str]:
    """Start a run whose points sleep. Returns once two of them have started."""
    code = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.sim.fake_backend import FakeBackend\n"
        "from lanikai.sim.cli import backend, program as cli\n"
        "from lanikai.sim.experiments.share_senders import ShareSenders\n"
        "ShareSenders.cluster = lambda self, parameters: None\n"
        "backend.make = lambda threads: FakeBackend(fault='sleep')\n"
        "if __name__ == '__main__': cli.main(['run', 'share-senders', '-j', '2', '--out', 'r'])\n"
    )
    (tmp_path / "program.py").write_text(code)
    process = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("started"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
    return process


def left_behind(process: subprocess.Popen[str]) -> list[str]:
    """Command lines of the processes in the program's group that live on after it.

    They are those still there after a moment: Python's own resource tracker ends when it sees that the program has.
    """
    deadline = time.monotonic() + 5
    while (found := group(process)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def group(process: subprocess.Popen[str]) -> list[str]:
    """Command lines of the living processes in the process's group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _parent, pgid = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(pgid) == process.pid and state != "Z":
                found.append((entry / "cmdline").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize("to_all", [True, False], ids=["as a terminal does", "to the program alone"])
def test_ctrl_c_is_status_130_a_line_and_no_process_left(tmp_path, to_all):
    process = start_sleeping(tmp_path)
    if to_all:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "lanikai: interrupted\n")
    assert left_behind(process) == []
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_sigterm_ends_the_points_too(tmp_path):
    process = start_sleeping(tmp_path)
    process.terminate()
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (143, "lanikai: terminated\n")
    assert left_behind(process) == []


def test_the_module_is_the_program(tmp_path):
    command = [sys.executable, "-m", "lanikai.sim", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("lanikai ")


def test_nothing_is_written_into_the_users_home(tmp_path):
    """The case has matplotlib and the WebAssembly tools of Amaranth, in a run's own processes, with a new home."""
    code = (
        "from lanikai.sim.cli import program as cli\n"
        "def use():\n"
        "    import matplotlib.font_manager\n"
        "    from support.sim.counter import counter_design\n"
        "    counter_design()\n"
        "    return []\n"
        "import lanikai.sim.experiments.registry as registry\n"
        "registry.listing = use\n"
        "cli.main(['list'])\n"
    )
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    names = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "YOWASP_CACHE_DIR")
    environment = {key: value for key, value in os.environ.items() if key not in names}
    environment |= {"HOME": str(home), "LANIKAI_CACHE_DIR": str(cache), "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(home.iterdir()) == []
    assert (cache / "matplotlib").is_dir() and (cache / "xdg").is_dir()


def test_an_interrupted_conversion_says_no_more_than_that(tmp_path):
    code = (
        "import os, signal\n"
        "from lanikai.sim.cli import program as cli\n"
        "def use():\n"
        "    from amaranth import Module\n"
        "    module = Module()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "import lanikai.sim.experiments.registry as registry\n"
        "registry.listing = use\n"
        "cli.main(['list'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "lanikai: terminated\n")


def test_help_and_version(tmp_path, fake, capsys):
    assert fake("--version") == 0
    assert capsys.readouterr().out.startswith("lanikai ")
    for arguments in ([], ["--help"], ["run", "--help"]):
        assert fake(*arguments) == 0
        assert "Usage: lanikai" in capsys.readouterr().out
