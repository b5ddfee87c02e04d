# amaranth: UnusedElaboratable=no
"""Host DMA on the bus of nagar-thesis-2001 5.4, against the times of its table 5.1."""

from __future__ import annotations

import pytest
from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.models.pci_timing import PciTiming
from lanikai.sim.published import table
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.moved import moved_us

NIC = preset(NicConfig, "via5")
SIZES = (4, 1024, 4096, 16384)


def table_us(*, to_host: bool) -> dict[int, float]:
    """The same of SVIA, which programs a transfer, then waits for it: the only one whose times do not overlap."""
    found = table("via-latency")["svia"]["receive" if to_host else "send"]
    ended = found["data_up" if to_host else "data_down"]
    return {size: ended[i] - found["program_data"][i] for i, size in enumerate(SIZES)}


def judge(sizes: tuple[int, ...], *, to_host: bool) -> None:
    """A transfer's time beyond that of 4 bytes is the table's, within 10% or 2 us."""
    timing = cluster_preset("via5").pci
    found, table = moved_us(NIC, timing, (4, *sizes), to_host=to_host), table_us(to_host=to_host)
    assert found[4] < table[4]
    for size in sizes:
        here, there = found[size] - found[4], table[size] - table[4]
        assert abs(here - there) <= max(0.1 * there, 2), (size, here, there)


def test_a_message_goes_down_as_fast_as_the_thesis_measured():
    """Wait states are fitted to 4 KB, and 1 KB judges."""
    judge((1024,), to_host=False)


@pytest.mark.full
@pytest.mark.parametrize("to_host", [False, True])
def test_all_sizes_move_as_fast_as_the_thesis_measured(to_host):
    """4 KB are fitted, 1 and 16 KB judge. (Here SRAM takes each word at once; a card's takes a cycle more a line.)"""
    judge(SIZES[1:], to_host=to_host)


def test_the_bus_is_that_of_the_card():
    timing = PciTiming.of_cache_lines(NIC)
    assert timing == PciTiming(burst_words=4, read_wait_cycles=8, write_wait_cycles=10)
    assert PciTiming.of_cache_lines(preset(NicConfig, "lanai4")).burst_words == 8
    line = 1 + timing.read_turnaround_cycles + timing.read_wait_cycles + 4 + timing.idle_cycles + 1
    assert 32 / line * NIC.clock_hz == pytest.approx(128e6, rel=0.05)
    line = 1 + timing.write_wait_cycles + 4 + timing.idle_cycles
    assert 32 / line * NIC.clock_hz == pytest.approx(128e6, rel=0.05)
