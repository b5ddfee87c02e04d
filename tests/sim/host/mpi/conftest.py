"""Lets the tests of this folder use the transport beside them and the Python cluster of the firmware tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3] / "firmware")]
