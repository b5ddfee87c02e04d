"""The experiment dma-bandwidth: the peaks that it holds a measurement against, and its claims."""

from __future__ import annotations

from typing import Any

import pytest
from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.dma_bandwidth import (
    DmaBandwidth,
    DmaBandwidthParameters,
    bus_cycles,
    link_cycles,
    pieces,
)
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.models.pci_timing import PciTiming

NIC = preset(NicConfig, "lanai7")
PCI = PciTiming.at(NIC.clock_hz)


def test_a_transfer_is_cut_into_what_an_engine_takes():
    assert pieces("host read", 65536, NIC) == [32768, 32768]
    assert pieces("send", 12288, NIC) == [4096] * 3
    assert pieces("receive", 4, NIC) == [4]


def test_the_peak_is_that_of_bus_and_link():
    # Reads: address, turnaround, 10 wait states, idle clock; 64 words a burst.
    assert bus_cycles(4, NIC, PCI, to_host=False) == 1 + 13
    assert bus_cycles(4096, NIC, PCI, to_host=False) == 512 + 8 * 13
    # Writes: address, 2 wait states, idle clock, arbitration.
    assert bus_cycles(520, NIC, PCI, to_host=True) == 65 + 2 * 6
    # 2 flits of header, 512 of payload, 1 of CRC at 10 flits in 33 cycles.
    assert link_cycles(4096, NIC) == pytest.approx(515 * 3.3)


def test_sizes_that_would_end_in_a_smaller_packet_are_refused():
    with pytest.raises(UserError) as error:
        DmaBandwidth().points(DmaBandwidthParameters(transfer_bytes=[5000]), "quick")
    assert str(error.value) == "transfer_bytes = 5000: above 4096 a multiple of it (the MTU)"


def test_cards_with_and_without_queues():
    experiment, parameters = DmaBandwidth(), DmaBandwidthParameters(transfer_bytes=[4096])
    points = experiment.points(parameters, "quick")
    assert len(points) == 4 * 2
    for point in points:
        nic = experiment.system(parameters, point).nic
        entries = nic.host_dma_queue_entries, nic.send_queue_entries, nic.receive_queue_entries
        assert entries == ((32, 32, 2) if point.parameters["queue"] else (0, 0, 0))


def outcomes(**cycles: float) -> list[Outcome]:
    """Points of `host read` of 4096 bytes, with a queue and without, that took so many cycles a transfer."""
    experiment, parameters = DmaBandwidth(), DmaBandwidthParameters(transfer_bytes=[4096])
    found = []
    for point in experiment.points(parameters, "quick"):
        name = "queue" if point.parameters["queue"] else "none"
        if point.parameters["engine"] == "host read" and name in cycles:
            measured: dict[str, Any] = {"bytes": 4096 * 10, "cycles": cycles[name] * 10}
            results = experiment.results(parameters, point, measured)
            found.append(Outcome(point=point, results=results, seed=0, cycles=1, wall_seconds=1.0))
    return found


@pytest.mark.parametrize(
    ("cycles", "holds"),
    [
        ({"queue": 620, "none": 640}, [True, True]),
        ({"queue": 640, "none": 650}, [False, True]),
        ({"queue": 620, "none": 610}, [True, False]),
    ],
)
def test_claims_fail_when_an_engine_is_slow(cycles, holds):
    found = outcomes(**cycles)
    assert found[0].results["of_peak"] == pytest.approx(616 / cycles["queue"])
    assert found[0].results["bandwidth_mb_per_s"] == pytest.approx(4096 * 66 / cycles["queue"])
    judged = [claim.holds for claim in DmaBandwidth().claims(DmaBandwidthParameters(), found)]
    assert judged == [*holds, *[None] * 6]  # of the engines that have no point
