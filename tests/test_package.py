"""The wheel: built from a clean copy of the tree, installed in a fresh environment, and every module imported from it.

The environment has the wheel's declared dependencies and nothing else. A subpackage, a data file or a dependency that
pyproject.toml does not list works in a checkout and not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("constraints", "hdl", "firmware", "sim")

IMPORT_ALL = """
import importlib, pathlib, pkgutil, sys
import lanikai
place = pathlib.Path(list(lanikai.__path__)[0])
assert place.is_relative_to(sys.prefix), place
names = [module.name for module in pkgutil.walk_packages(lanikai.__path__, "lanikai.")]
for name in names:
    importlib.import_module(name)
from lanikai.sim.published import tables
from lanikai.sim.paths import checkout
assert tables() and checkout() is None
print("\\n".join(names))
"""


def tracked() -> list[Path]:
    """The files that git knows of, or that it would know of if they were added: those of a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def pip(*arguments: str | Path) -> None:
    """Run this environment's pip."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this tree."""
    copy = tmp_path_factory.mktemp("tree")
    for path in tracked():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", out, copy)
    (made,) = out.glob("*.whl")
    return made


def test_the_wheel_holds_every_source_and_data_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    expected = {
        f"lanikai/{path.relative_to(ROOT)}"
        for path in tracked()
        if path.relative_to(ROOT).parts[0] in PARTS and not path.is_symlink()
    }
    assert expected - held == set()


def test_every_module_of_the_installed_wheel_imports(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    lock = ROOT / "requirements.lock"
    pip("--python", python, "install", "-c", lock, wheel)
    done = subprocess.run(
        [python, "-c", IMPORT_ALL],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    for part in PARTS:
        for path in (ROOT / part).rglob("*.py"):
            steps = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("lanikai", *(steps[:-1] if steps[-1] == "__init__" else steps)))
            assert name in imported
    script = tmp_path / "venv" / "bin" / "lanikai"
    listed = subprocess.run([script, "list"], cwd=tmp_path, capture_output=True, text=True)
    assert listed.returncode == 0 and "share-senders" in listed.stdout


def test_every_dependency_is_bounded():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for line in [line for group in groups for line in group]:
        assert ",<" in line, line


def test_the_lock_pins_every_dependency_and_names_no_host():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    pinned = {line.split("==")[0].lower() for line in text.splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {line.split(">=")[0].split("[")[0].lower() for group in groups for line in group}
    assert wanted - pinned == set()
