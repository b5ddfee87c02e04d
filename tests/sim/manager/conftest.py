"""Lets the tests of this folder use the Python cluster of the firmware tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "firmware"))
