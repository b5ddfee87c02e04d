"""The parallel programs of nagar-thesis-2001 6.2.1, each by its name and part of time in communication.

The numbers behind a name set the granularity. They are chosen so that the program spends the published part of its time
in communication when it runs alone (`tests/sim/host/cosched/test_programs.py`).

**The fit.** Two numbers are not published: how uneven ranks compute (`program.IMBALANCE`), and the granularity of LIFE
with little communication. The published part of 3.5% leaves one of the two free. It is fitted to one completion time of
the 120: Local scheduling of workload 10, 83 s. A rank that computes 4% more or less waits for others 2.9% of its time,
and iterations of 180 ms make it 3.5% in all, and 82 s. All other completion times are predicted.
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
    "life-lo": Life(1000),
    "life-hi": Life(98),
    "mg": Multigrid(44),
    "lu": Lu(158_000),
    "ep": Ep(),
}
"""Every program, by name."""
PUBLISHED_PART: Mapping[str, float] = {"life-lo": 0.035, "life-hi": 0.12, "mg": 0.26, "lu": 0.16, "ep": 0.01}
"""The part of its time that each spends in communication, alone. That of EP is published as less than this."""
