"""`python -m support.coverage [--again] [TEST ...]`: line and toggle coverage of the RTL in runs of these tests."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..mutation.places import ROOT
from .marks import MARKS_FILE
from .report import report, table
from .suite import SUITE

FOLDER = ROOT / ".cache" / "coverage"
RESULT = ROOT / "docs" / "coverage.json"


def main() -> int:
    """Run it. Returns the exit status: 0, or that of the tests if one failed."""
    parser = argparse.ArgumentParser(prog="python -m support.coverage", description=__doc__)
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="tests as pytest names them; without one, the suite"
    )
    parser.add_argument("--again", action="store_true", help="add to the counts of earlier runs")
    parser.add_argument("--json", type=Path, default=RESULT, help="file that the coverage goes to")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of simulators and counts")
    given = parser.parse_args()
    data, builds = given.folder / "data", given.folder / "builds"
    if not given.again:
        shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True, exist_ok=True)
    # Two folders that belong together: a simulator's marks were noted when it was built.
    environment = {"LANIKAI_CACHE_DIR": str(builds), "LANIKAI_COVERAGE": str(data), "CI": "1"}
    tests = given.tests or list(SUITE)
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "support.coverage.plugin",
            *tests,
        ],
        cwd=ROOT,
        env=os.environ | environment,
    )
    if ended.returncode:
        return ended.returncode
    found = report(data, builds / "models", builds / MARKS_FILE)
    given.json.write_text(json.dumps({"tests": tests, "files": found}, indent=1) + "\n")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
