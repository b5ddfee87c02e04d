# amaranth: UnusedElaboratable=no
"""Host DMA and programmed I/O on an SBus, in cycles of a LANai 4.1, against the clocks that it is derived from."""

from __future__ import annotations

import pytest
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.sim.models.pci_timing import PciTiming
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.moved import moved_us

NIC = preset(NicConfig, "lanai41")
SMALL, LARGE = 1024, 4096
CLOCK_US = 1 / 25


@pytest.mark.parametrize("to_host", [False, True])
@pytest.mark.parametrize(("streaming", "clocks"), [(False, 30), (True, 22)])
def test_a_burst_takes_the_clocks_of_the_sbus(streaming, clocks, to_host):
    """64 bytes take 22 clocks of 25 MHz, and 8 more where each burst waits for memory.

    Here the SRAM takes each word at once. A card's takes the first word of a burst a cycle later.
    """
    timing = PciTiming.of_sbus(NIC, streaming=streaming)
    found = moved_us(NIC, timing, (SMALL, LARGE), to_host=to_host)
    burst_us = (found[LARGE] - found[SMALL]) / ((LARGE - SMALL) / 64)
    assert burst_us == pytest.approx(clocks * CLOCK_US, abs=1.1e6 / NIC.clock_hz)


def test_the_preset_has_consistent_buffers():
    assert cluster_preset("lanai41").pci == PciTiming.of_sbus(NIC)
    assert cluster_preset("lanai41").nic == NIC


def test_waits_that_the_model_cannot_count_are_refused():
    with pytest.raises(
        ConfigError, match=r"read_wait_cycles = 30: .* clock 33, target_latency_cycles is 20$"
    ):
        PciTiming(read_wait_cycles=30, target_latency_cycles=20)
    with pytest.raises(ConfigError, match=r"write_wait_cycles = 17: PCI allows 16$"):
        PciTiming(write_wait_cycles=17)
