"""Power in windows of the measured time: every one of 500 cycles that begins at a sample; and that of adapters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ...energy.activity import Activity
from ...energy.adapter import AdapterActivity, AdapterEnergies
from ...energy.table import published_energy

__all__ = ["adapters_w", "powers_w"]

ATTOJOULES_PER_NJ = 1e9


def powers_w(
    samples: Sequence[Sequence[int]],
    *,
    sample_cycles: int,
    window_cycles: int,
    flit_bits: int,
    cycle_ns: float,
) -> list[float]:
    """The mean power of every window of `window_cycles` that begins with a sample, W.

    `samples`: the routers' activity in `sample_cycles` each, as `Activity.as_list`. `sample_cycles` divides the window.
    """
    table = published_energy()
    energies = [Activity.from_list(one).attojoules(table, flit_bits=flit_bits) for one in samples]
    sums = [0, *accumulate(energies)]
    many = window_cycles // sample_cycles
    span_ns = window_cycles * cycle_ns
    return [
        (after - before) / ATTOJOULES_PER_NJ / span_ns
        for before, after in zip(sums, sums[many:], strict=False)
    ]


def adapters_w(
    samples: Sequence[Sequence[int]], *, sample_cycles: int, flit_bits: int, cycle_ns: float
) -> float | None:
    """The mean power of all adapters in the measured time, W; None without samples.

    `samples`: their activity in `sample_cycles` each, as `AdapterActivity.as_list`. Prices are those of
    `AdapterEnergies.derived`.
    """
    if not samples:
        return None
    energies = AdapterEnergies.derived(published_energy(), flit_bits=flit_bits)
    total = AdapterActivity.total(AdapterActivity.from_list(one) for one in samples)
    return total.attojoules(energies) / ATTOJOULES_PER_NJ / (len(samples) * sample_cycles * cycle_ns)
