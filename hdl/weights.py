"""Weights, frames and the limit of high priority, from bandwidth requirements (yum-2006 3.3). Plain Python.

Bandwidths are in any unit, the same for all arguments of a call; integers or fractions, so results are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, gcd

from .config import ConfigError

__all__ = [
    "LARGE_FRAME",
    "MAX_WEIGHT",
    "NO_LIMIT",
    "exact_weights",
    "high_priority_limit",
    "limit_for_low_share",
    "small_frame",
    "table_entries",
    "vl_weights",
]

MAX_WEIGHT = 255
"""Largest weight of a table's entry."""
TABLE_ENTRIES = 64
"""Entries of a VL arbitration table."""
LARGE_FRAME = MAX_WEIGHT * TABLE_ENTRIES
"""The largest frame that a table can hold: 64 entries of 255 (16320)."""
NO_LIMIT = 255
"""The limit of high priority that means: none."""

Bandwidth = int | Fraction


def small_frame(k: int, real_time_vls: int) -> int:
    """The small frame, k times the number of real-time VLs, in flits: k = 4 and 11 VLs give 44.

    Raises ConfigError for k or a number of VLs below 1.
    """
    for name, value in (("k", k), ("real_time_vls", real_time_vls)):
        if value < 1:
            raise ConfigError(f"small_frame: {name} = {value}: at least 1")
    return k * real_time_vls


def vl_weights(bandwidths: Sequence[Bandwidth], frame: int) -> list[int]:
    """Weights of VLs with these bandwidths R_v in a frame of F flits: W_v = floor(F * R_v / sum of R).

    Truncation is that of the document:

    - R = 100, 200 give 1, 2 for F = 3.
    - R = 100, 200 give 100, 200 for F = 300.
    - R = 100, 200 give 2, 4 for F = 6, as do 101, 200 (exactly 2.01 and 3.99).

    The flits that truncation leaves over go one each to the VLs with the largest remainders, ties to the lower VL. So
    the last weight is 4 and not 3: a plain floor would hand out a frame of F - 1. A VL that has any bandwidth gets at
    least weight 1, or it would be starved. So a frame with fewer flits than VLs comes out longer than F.

    Raises ConfigError for a negative bandwidth or a frame below 1.
    """
    if frame < 1:
        raise ConfigError(f"vl_weights: frame = {frame}: at least 1")
    for vl, bandwidth in enumerate(bandwidths):
        if bandwidth < 0:
            raise ConfigError(f"vl_weights: bandwidth of VL {vl} = {bandwidth}: at least 0")
    total = sum(bandwidths, Fraction(0))
    if total == 0:
        return [0] * len(bandwidths)
    exact = [Fraction(bandwidth) * frame / total for bandwidth in bandwidths]
    weights = [floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda vl: (weights[vl] - exact[vl], vl))
    for vl in by_remainder[: frame - sum(weights)]:
        weights[vl] += 1
    return [max(weight, 1) if share else 0 for weight, share in zip(weights, exact, strict=True)]


def exact_weights(bandwidths: Sequence[int]) -> list[int]:
    """The smallest weights in exactly these proportions; their sum is the frame without truncation.

    R = 100, 200 give 1, 2 (F = 3), and 101, 200 give 101, 200 (F = 301): F is the least common multiple of
    the proportions' denominators. Raises ConfigError for a negative bandwidth.
    """
    for vl, bandwidth in enumerate(bandwidths):
        if bandwidth < 0:
            raise ConfigError(f"exact_weights: bandwidth of VL {vl} = {bandwidth}: at least 0")
    common = gcd(*bandwidths) or 1
    return [bandwidth // common for bandwidth in bandwidths]


def high_priority_limit(link: Bandwidth, peak: Bandwidth) -> int:
    """The limit of high priority L for a link of bandwidth B and real-time traffic of peak B_p.

    L is 255, no limit, if B_p >= B. Otherwise it is B / (B - B_p), truncated, and 254 at most, as 255 would mean no
    limit. In the document low priority then has at least B / L. An arbiter that sends L units of high priority and
    then one of low gives it B / (L + 1): `limit_for_low_share` accounts for that.

    Raises ConfigError for a link of no bandwidth or a negative peak.
    """
    if link <= 0 or peak < 0:
        raise ConfigError(f"high_priority_limit: link = {link}, peak = {peak}: above 0, and at least 0")
    if peak >= link:
        return NO_LIMIT
    return min(NO_LIMIT - 1, floor(Fraction(link) / (link - peak)))


def limit_for_low_share(link: Bandwidth, low: Bandwidth) -> int:
    """The largest L that leaves low priority a bandwidth of `low` on `link` under `TwoLevelArbiter`.

    One of L + 1 units is low there, so B / (L + 1) >= `low`. L is 255, no limit, for `low` 0.

    Raises ConfigError if `low` is more than half the link, which L = 1 gives, or negative.
    """
    if link <= 0 or not 0 <= 2 * low <= link:
        raise ConfigError(f"limit_for_low_share: low = {low}: 0 to half the link's {link}")
    if low == 0:
        return NO_LIMIT
    return min(NO_LIMIT - 1, floor(Fraction(link) / low) - 1)


def table_entries(weights: Sequence[int], entries: int = TABLE_ENTRIES) -> list[tuple[int, int]]:
    """A table of (VL, weight) with these weights a VL: a weight above 255 is split over several entries.

    Raises ConfigError if they do not fit in `entries`, or a weight is negative.
    """
    table = []
    for vl, weight in enumerate(weights):
        if weight < 0:
            raise ConfigError(f"table_entries: weight of VL {vl} = {weight}: at least 0")
        table += [(vl, min(MAX_WEIGHT, weight - sent)) for sent in range(0, weight, MAX_WEIGHT)]
    if len(table) > entries:
        raise ConfigError(
            f"table_entries: weights {list(weights)} need {len(table)} entries; the table has {entries}"
        )
    return table
