"""Workloads 1 to 12 of nagar-thesis-2001 (tables 6.2 and 6.3), by the names of their programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["ALONE_SECONDS", "WORKLOADS"]

ALONE_SECONDS = 25.0
"""Time of each job if it runs alone (6.2.1)."""

_LO, _HI, _EP, _MG, _LU = "life-lo", "life-hi", "ep", "mg", "lu"

WORKLOADS: Mapping[int, Sequence[str]] = {
    1: (_LO, _LO, _LO, _LO),
    2: (_LO, _LO, _LO, _HI),
    3: (_LO, _LO, _HI, _HI),
    4: (_LO, _HI, _HI, _HI),
    5: (_HI, _HI, _HI, _HI),
    6: (_EP, _EP, _EP, _EP),
    7: (_MG, _LU, _HI, _EP),
    8: (_MG, _MG, _EP, _EP),
    9: (_MG, _MG, _MG, _MG),
    10: (_LO, _LO),
    11: (_HI, _LO),
    12: (_HI, _HI),
}
"""Programs of the jobs of each workload."""
