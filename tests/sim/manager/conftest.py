"""Lets the tests of this folder use the fake GM beside them, and the Python cluster of the firmware tests."""

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[2] / "firmware"):
    sys.path.insert(0, str(folder))
