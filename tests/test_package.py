"""The wheel: built from the source archive of a clean clone, installed in a fresh environment, and all of it imported.

The environment has the wheel's declared dependencies and nothing else. A subpackage, a data file or a dependency that
pyproject.toml does not list works in a checkout and not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "9.8.7"
"""A version that no release has."""
PARTS = ("constraints", "hdl", "firmware", "sim", "api")

IMPORT_ALL = """
import importlib, pathlib, pkgutil, sys
import lanikai
place = pathlib.Path(list(lanikai.__path__)[0])
assert place.is_relative_to(sys.prefix), place
names = [module.name for module in pkgutil.walk_packages(lanikai.__path__, "lanikai.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Of the extra `report`, which `lanikai report` says how to install.
        assert name.startswith("lanikai.sim.report") and error.name.partition(".")[0] in ("plotly", "jinja2"), name
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


def build(tree: Path, out: Path, kind: str) -> Path:
    """The `kind` (wheel or sdist) of a tree, as `make dist` makes it, with the tools of this environment."""
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(out), str(tree)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


def git(tree: Path, *arguments: str) -> None:
    """Run git in `tree`, whoever the user is."""
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(tree), *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A clone of this tree as it is now, in git, with the tag of a release."""
    copy = tmp_path_factory.mktemp("tree")
    for path in tracked():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--message", "All")
    git(copy, "tag", f"v{RELEASE}")
    return copy


@pytest.fixture(scope="module")
def source_archive(tree, tmp_path_factory) -> Path:
    """The source archive of this tree."""
    return build(tree, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="module")
def wheel(source_archive, tmp_path_factory) -> Path:
    """The wheel of the unpacked source archive: what a packager makes, without git."""
    out = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source_archive) as archive:
        archive.extractall(out, filter="data")
    (unpacked,) = out.iterdir()
    return build(unpacked, tmp_path_factory.mktemp("wheel"), "wheel")


def test_the_wheel_holds_every_source_and_data_file_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        f"lanikai/{path.relative_to(ROOT)}"
        for path in tracked()
        if path.relative_to(ROOT).parts[0] in PARTS and not path.is_symlink()
    } | {"lanikai/__init__.py"}
    assert held == expected


def test_the_source_archive_holds_what_a_clone_does(source_archive):
    with tarfile.open(source_archive) as archive:
        held = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    expected = {
        str(path.relative_to(ROOT)) for path in tracked() if path.relative_to(ROOT).parts[0] != ".typing"
    }
    assert expected - held == set()
    made = {"PKG-INFO", "setup.cfg"}
    assert {name for name in held - expected if ".egg-info/" not in name} == made


def test_a_tree_and_its_source_archive_give_the_same_wheel_with_the_version_of_the_tag(tree, wheel, tmp_path):
    assert wheel.name == f"lanikai-{RELEASE}-py3-none-any.whl"
    assert build(tree, tmp_path / "out", "wheel").read_bytes() == wheel.read_bytes()


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
    version = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert version.stdout == f"lanikai {RELEASE}\n"


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
