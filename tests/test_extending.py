"""Every kind of extension is one file and one line: one of each, in a copy of the package; and the page says so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from support.extensions import EXTENSIONS
from support.references import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text()
pytestmark = pytest.mark.xdist_group("extending")
ROWS = {
    row[0].removeprefix("an ").removeprefix("a "): row[1:]
    for line in PAGE.partition("| to add |")[2].partition("\n\n")[0].splitlines()[2:]
    for row in [[cell.strip() for cell in line.strip("|").split(" | ")]]
}
"""The page's table: kind -> where its file goes, where it is named, which test holds it."""
RUN = """
import json, sys, traceback
from pathlib import Path

found = {}
for kind, check in json.loads(Path("checks.json").read_text()).items():
    try:
        exec(compile(check, kind, "exec"), {"__name__": kind, "Path": Path})
        found[kind] = ""
    except Exception:
        found[kind] = traceback.format_exc()
import lanikai.hdl
assert Path(lanikai.hdl.__file__).is_relative_to(Path.cwd()), lanikai.hdl.__file__
Path("found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, str]:
    """Faults that each extension's check found, all in one copy of the package."""
    folder = tmp_path_factory.mktemp("extended")
    package = folder / "lanikai"
    shutil.copytree(ROOT / "lanikai", package, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("constraints", "hdl", "firmware", "sim", "api"):
        shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    for extension in EXTENSIONS.values():
        assert not (package / extension.file).exists()
        (package / extension.file).write_text(extension.text.lstrip("\n"))
        if extension.registry:
            registry = package / extension.registry
            text = registry.read_text()
            for line, before in (
                (extension.imports, extension.imports_before),
                (extension.entry, extension.before),
            ):
                if line:
                    assert text.count(before) == 1, f"{extension.registry}: {before!r}"
                    text = text.replace(before, line + before)
            registry.write_text(text)
    (folder / "checks.json").write_text(json.dumps({kind: one.check for kind, one in EXTENSIONS.items()}))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, str] = json.loads((folder / "found.json").read_text())
    return read


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_an_extension_is_one_file_and_one_line(found, kind):
    assert found[kind] == ""


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_the_page_says_where_its_file_and_its_line_go(kind):
    extension = EXTENSIONS[kind]
    file, line, held = ROWS[kind]
    assert f"`{extension.file.rpartition('/')[0]}/`" in file and "tests/test_extending.py" in held
    assert extension.registry in line and extension.entry.count("\n") <= 1


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_names_what_is_there(kind):
    file, line, held = ROWS[kind]
    places = re.findall(r"`([^`]*/[^`]*)`", " ".join((file, line, held)))
    assert places and not [place for place in places if not (ROOT / place).exists()]
    tests = re.findall(r"`(tests/[^`]*)`", held)
    assert tests and (kind in EXTENSIONS or "tests/test_extending.py" not in tests)
    for path, name in re.findall(r"`(\w+)` in `([^`]*)`", line):
        assert re.search(rf"\b{path}\b", (ROOT / name).read_text()), f"{path} is not in {name}"
