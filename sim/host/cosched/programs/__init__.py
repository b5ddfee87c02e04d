"""The parallel programs of nagar-thesis-2001 6.2.1, each by its name and part of time in communication.

The numbers behind a name set the granularity. They are chosen so that the program spends the published part of its time
in communication when it runs alone (`tests/sim/host/cosched/test_programs.py`). No result of a strategy plays a part.
"""

from __future__ import annotations

from collections.abc import Mapping

from .ep import Ep
from .life import Life
from .lu import Lu
from .multigrid import Multigrid
from .program import Program

__all__ = ["PROGRAMS", "PUBLISHED_PART"]

PROGRAMS: Mapping[str, Program] = {
    "life-lo": Life(275),
    "life-hi": Life(91),
    "mg": Multigrid(42),
    "lu": Lu(138_000),
    "ep": Ep(),
}
"""Every program, by name."""
PUBLISHED_PART: Mapping[str, float] = {"life-lo": 0.035, "life-hi": 0.12, "mg": 0.26, "lu": 0.16, "ep": 0.01}
"""The part of its time that each spends in communication, alone. That of EP is published as less than this."""
