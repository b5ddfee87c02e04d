"""Files for others' tools: the citation, the changelog, the public CI's workflow, the container."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from lanikai.sim.cli.doctor import NEEDS, VIEW

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
AUTHOR_KEYS = {"family-names", "given-names", "name"}
REFERENCE_KEYS = {
    "type", "title", "authors", "year", "institution", "doi", "collection-title", "journal", "volume", "issue",
    "start", "end",
}  # fmt: skip


def test_the_citation_is_of_the_format():
    """The format's schema 1.2.0: keys that are required, and none that it has not; types of the values."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "software"
    assert all(isinstance(cited[key], str) for key in ("message", "title", "abstract", "license"))
    assert cited["license"] == PROJECT["license"]
    known = {
        "cff-version",
        "message",
        "title",
        "abstract",
        "type",
        "license",
        "authors",
        "keywords",
        "references",
    }
    assert cited.keys() <= known | {"version", "date-released"}
    assert len(cited["references"]) == 5  # the documents
    for work in [cited, *cited["references"]]:
        assert work["authors"] and all(author.keys() <= AUTHOR_KEYS for author in work["authors"])
    for work in cited["references"]:
        assert work.keys() <= REFERENCE_KEYS and {"type", "title", "year"} <= work.keys()
        assert work["type"] in ("thesis", "article", "conference-paper") and isinstance(work["year"], int)
        assert all(isinstance(work.get(key, ""), str) for key in ("start", "end", "doi", "journal"))
        assert isinstance(work.get("institution", {}), dict)
        assert f"doi {work['doi']}" in (ROOT / "docs/sources.md").read_text() if "doi" in work else True


def test_the_changelog_is_of_the_form():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    heads = [line for line in lines if line.startswith("## ")]
    assert heads[0] == "## [Unreleased]"
    kinds = {line.removeprefix("### ") for line in lines if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def make_targets(text: str) -> set[str]:
    """The targets of every `make` command in a text."""
    found = re.findall(r"(?:run: |RUN |exec )make ([a-z -]+)|\"make\", \"([a-z-]+)\"", text)
    return {target for match in found for target in " ".join(match).split()}


@pytest.mark.parametrize("name", [".github/workflows/test.yml", "Containerfile", ".ci/run"])
def test_targets_of_make_exist(name):
    targets = make_targets((ROOT / name).read_text())
    assert targets
    done = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_public_ci_runs_every_python_that_is_named_and_the_same_command():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    named = {line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line}
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == named
    lowest = min(named, key=lambda version: int(version.partition(".")[2]))
    assert PROJECT["requires-python"] == f">={lowest}"
    assert "bash .ci/run" in [step.get("run") for step in jobs["test"]["steps"]]
    for job in jobs.values():  # versions come from tags, which a shallow clone has not
        (checkout,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
        assert checkout["with"]["fetch-depth"] == 0


@pytest.mark.parametrize("name", ["Containerfile", ".github/workflows/test.yml"])
def test_what_lanikai_needs_outside_python_is_installed(name):
    """Every need of `lanikai doctor`, without the viewer of waveforms; setup-python brings its own libpython."""
    words = set((ROOT / name).read_text().split())
    for need in NEEDS:
        package = re.sub(r"^libpython3\.\d+$", "libpython3.11", need.install.split()[-1])
        if VIEW not in need.commands and not (package.startswith("libpython") and name != "Containerfile"):
            assert {package, f"{package}-browser"} & words, need.name  # as Ubuntu calls Chromium's
