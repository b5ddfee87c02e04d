"""VL arbitration tables of a link, from the sums of its connections (yum-2006 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lanikai.hdl.weights import high_priority_limit, small_frame, table_entries, vl_weights

from .config import DATA_VLS, AdmissionConfig

__all__ = ["Tables", "link_tables", "real_time_weights"]


class Tables(NamedTuple):
    """Rows of (VL, weight) of the high and the low table, and the limit of high priority."""

    high: tuple[tuple[int, int], ...]
    low: tuple[tuple[int, int], ...]
    limit: int


def real_time_weights(config: AdmissionConfig, units: Sequence[int]) -> list[int]:
    """The weight W_v = rho_v F of each data VL, from its sum of mean rates R_v.

    - Small frame: F = k N, and rho_v = R_v / B_r, where B_r is the sum of all R_v. So all weights change with every
      connection. Rounding is that of `vl_weights`: down, then the flits left over go to the largest remainders.
    - Large frame: B_r is fixed at `most_units`, so that only the connection's own VL changes. The weight is rounded
      down.

    A VL with any connection has at least 1 in both.
    """
    if config.frame == "small":
        return vl_weights(units, small_frame(config.frame_factor, len(config.real_time_vls)))
    return [max(1, one * config.large_frame // config.most_units) if one else 0 for one in units]


def link_tables(config: AdmissionConfig, units: Sequence[int], peak_units: int) -> Tables:
    """The tables of a link with these mean rates a data VL, and this sum of peak rates.

    Real-time VLs with a connection are in the high table. All other data VLs are in the low table with weight 1, in
    turn: best effort, and VLs of connections that are over, whose last flits may still be there.
    """
    weights = real_time_weights(config, units)
    low = tuple((vl, 1) for vl in range(DATA_VLS) if not weights[vl])
    high = tuple(table_entries(weights, config.table_entries))
    return Tables(high, low, high_priority_limit(config.link_units, peak_units))
