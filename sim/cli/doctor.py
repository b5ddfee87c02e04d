"""The needs of Lanikai: whether this machine has them, and the exact command that installs one that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingTool, UserError

__all__ = ["NEEDS", "Finding", "Need", "examine", "require"]

RUN, WAVES, VIEW = "run", "run --waves", "waves"
"""The commands that need something."""
CXX_VARIABLE = "LANIKAI_CXX"
"""Environment variable that names the C++ compiler."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """A need of a command.

    - `name`: its name.
    - `for_`: its use.
    - `commands`: the commands that cannot do without it.
    - `install`: the exact command that installs it.
    - `find`: says where it is or returns None.
    """

    name: str
    for_: str
    commands: tuple[str, ...]
    install: str
    find: Callable[[], str | None]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A need and where it was found (None: it is missing)."""

    need: Need
    found: str | None

    @property
    def remedy(self) -> str:
        """The remedy where the need is missing."""
        chosen = os.environ.get(CXX_VARIABLE)
        if self.need.find is _compiler and chosen:
            return f"{CXX_VARIABLE}={chosen}: no such compiler; name one that is there, or unset it"
        return self.need.install


def _program(*names: str) -> Callable[[], str | None]:
    def find() -> str | None:
        return next((path for name in names if (path := shutil.which(name))), None)

    return find


def _compiler() -> str | None:
    """The C++ compiler that a build takes: `$LANIKAI_CXX`, else clang++, else g++."""
    chosen = os.environ.get(CXX_VARIABLE)
    return _program(chosen)() if chosen else _program("clang++", "g++")()


def _header(name: str) -> Callable[[], str | None]:
    """Finds a C header as the compiler does."""

    def find() -> str | None:
        compiler = _compiler()
        if compiler is None:
            return None
        done = subprocess.run(
            [compiler, "-x", "c++", "-M", "-"],
            input=f"#include <{name}>\n",
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return None
        return next((word for word in done.stdout.split() if word.endswith(f"/{name}")), name)

    return find


def _libpython() -> str | None:
    """The shared library of this Python, which runs inside the simulator."""
    import find_libpython

    return find_libpython.find_libpython()


NEEDS = (
    Need(
        name="C++ compiler",
        for_="compiles the simulator (clang++ is used where there is one: it builds twice as fast)",
        commands=(RUN, WAVES),
        install="sudo apt-get install g++",
        find=_compiler,
    ),
    Need(
        name="make",
        for_="drives the compiler",
        commands=(RUN, WAVES),
        install="sudo apt-get install make",
        find=_program("make"),
    ),
    Need(
        name="perl",
        for_="Verilator's scripts are written in it",
        commands=(RUN, WAVES),
        install="sudo apt-get install perl",
        find=_program("perl"),
    ),
    Need(
        name="libpython",
        for_="Python runs inside the simulator",
        commands=(RUN, WAVES),
        install=f"sudo apt-get install libpython{sys.version_info.major}.{sys.version_info.minor}",
        find=_libpython,
    ),
    Need(
        name="lz4.h",
        for_="compresses waveforms (FST), for --waves",
        commands=(WAVES,),
        install="sudo apt-get install liblz4-dev",
        find=_header("lz4.h"),
    ),
    Need(
        name="zlib.h",
        for_="compresses waveforms (FST), for --waves",
        commands=(WAVES,),
        install="sudo apt-get install zlib1g-dev",
        find=_header("zlib.h"),
    ),
    Need(
        name="GTKWave",
        for_="shows waveforms, for `lanikai waves`",
        commands=(VIEW,),
        install="sudo apt-get install gtkwave",
        find=_program("gtkwave"),
    ),
    Need(
        name="Icarus Verilog",
        for_="a second opinion on the blocks, in `make test` (without it those tests are skipped)",
        commands=(),
        install="sudo apt-get install iverilog",
        find=_program("iverilog"),
    ),
    Need(
        name="Chromium",
        for_="opens reports, in `make test` (without it those tests are skipped)",
        commands=(),
        install="sudo apt-get install chromium",
        find=_program("chromium", "chromium-browser", "google-chrome"),
    ),
)
"""Everything outside Python that some command needs."""


def examine() -> list[Finding]:
    """Look for every need."""
    return [Finding(need=need, found=need.find()) for need in NEEDS]


def require(command: str) -> None:
    """Raise MissingTool for the first thing that `command` (`RUN`, `WAVES` or `VIEW`) needs and is not there. Raises
    UserError if the user named a compiler that is not there."""
    for need in NEEDS:
        if command in need.commands and need.find() is None:
            finding = Finding(need=need, found=None)
            if finding.remedy != need.install:
                raise UserError(finding.remedy)
            raise MissingTool(need.name, need.install)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below `folder`; 0 if it is not there."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # another run has just finished with it
    return total
