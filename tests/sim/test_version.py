"""The version in a source tree is the one that setuptools-scm gives a wheel of it."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from lanikai.sim import version
from lanikai.sim.cli.program import main
from lanikai.sim.experiments.framework.results import versions
from setuptools_scm import get_version

ROOT = Path(__file__).resolve().parents[2]


def git(tree, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, "-C", str(tree), *arguments], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A git tree with one commit."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    git(tmp_path, "init", "--quiet")
    change(tmp_path)
    return tmp_path


def scm(tree):
    """The version that a wheel of the tree would have, by the settings of pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]
    return get_version(tree, **settings)


def change(tree, *, commit=True):
    """Make a change of a file that git knows."""
    with (tree / "file").open("a") as file:
        file.write("more\n")
    if commit:
        git(tree, "add", "file")
        git(tree, "commit", "--quiet", "--message", "More")


def test_without_a_tag(tree):
    assert version.tree_version(tree).startswith("0.1.dev1+g")
    assert version.tree_version(tree) == scm(tree)
    change(tree, commit=False)
    assert version.tree_version(tree) == scm(tree)


@pytest.mark.parametrize(
    ("tag", "following"), [("v1.2.3", "1.2.4"), ("0.9", "0.10"), ("v2.0.0rc1", "2.0.0rc2")]
)
def test_on_and_after_a_tag(tree, tag, following):
    git(tree, "tag", tag)
    assert version.tree_version(tree) == tag.removeprefix("v") == scm(tree)
    change(tree, commit=False)
    assert version.tree_version(tree).startswith(f"{following}.dev0+g")
    assert version.tree_version(tree) == scm(tree)
    change(tree)
    git(tree, "tag", "no-release")
    assert version.tree_version(tree).startswith(f"{following}.dev1+g")
    assert version.tree_version(tree) == scm(tree)


def test_files_that_git_does_not_know_are_no_change(tree):
    clean = version.tree_version(tree)
    (tree / "results.txt").write_text("mine\n")
    assert version.tree_version(tree) == clean == scm(tree)


def test_a_copy_within_the_repository_of_somebody_else(tree):
    (tree / "lanikai").mkdir()
    assert version.tree_version(tree / "lanikai") is None


@pytest.mark.parametrize(("installed", "expected"), [("4.5.6", "4.5.6"), (None, version.UNKNOWN)])
def test_without_git(monkeypatch, tmp_path, capsys, installed, expected):
    """The installed version, or that it is unknown, and no traceback."""

    def find(name):
        if installed is None:
            raise version.PackageNotFoundError(name)
        return installed

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(version, "installed_version", find)
    version.own_version.cache_clear()
    try:
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert (caught.value.code, capsys.readouterr().out) == (0, f"lanikai {expected}\n")
        assert versions()["lanikai"] == expected  # what run folders record
    finally:
        version.own_version.cache_clear()
