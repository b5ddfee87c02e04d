"""Settings that every test shares: Hypothesis runs whose failing case is printed and can be given back."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # modules beside the tests, `references`

# No deadline: the tests share their processors, and a slow case is no wrong one.
settings.register_profile("default", deadline=None, print_blob=True)
# In continuous integration the same cases every time.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
