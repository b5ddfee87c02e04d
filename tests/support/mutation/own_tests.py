"""The tests and proofs of each file of the RTL: those of its name, and those that `own_tests.toml` names."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath

from .places import ROOT

__all__ = ["named", "own_tests", "rtl_files"]

_FILE = Path(__file__).with_suffix(".toml")


def rtl_files() -> list[str]:
    """The modules of `hdl`, as paths from the root."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "hdl").rglob("*.py"))


def named() -> dict[str, list[str]]:
    """The content of `own_tests.toml`: test files by the file of the RTL."""
    return tomllib.loads(_FILE.read_text())


def own_tests(file: str) -> list[str]:
    """The test files of `file`, those of its name first. Proofs come last: they take longest."""
    inside = PurePosixPath(file).relative_to("hdl")
    mirrored = [
        f"tests/hdl/{inside.parent / f'test_{inside.name}'}".replace("/./", "/"),
        f"tests/formal/test_{inside.name}",
    ]
    found = dict.fromkeys([one for one in mirrored if (ROOT / one).exists()] + named().get(file, []))
    return sorted(found, key=lambda one: one.startswith("tests/formal/"))
