"""The bus ports against a third party's models (cocotbext-axi), with random stalls on every channel."""

from __future__ import annotations

import pytest
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.nic import Nic
from lanikai.sim.build.model import block_design, build
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("axi models")

CONFIG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=1),
    bus_bits=64,
    burst_beats=16,
    dma_alignment_bytes=1,
    host_dma_bursts=4,
    host_dma_queue_entries=4,
)


@pytest.fixture(scope="module")
def model():
    """A small card whose host DMA has all of its choices."""
    return build(block_design(Nic(CONFIG), name="card"))


@pytest.mark.parametrize("stall", [pytest.param(0.0, marks=pytest.mark.full), 0.4])
def test_the_master_port_moves_every_burst_length_at_every_alignment(model, stall, tmp_path):
    spec = {"stall": stall, "bus_bytes": CONFIG.bus_bits // 8, "burst_beats": CONFIG.burst_beats}
    found = run(model, "support.hdl.axi_points:master_port", spec, out_dir=tmp_path, seed=7, edges=True).value
    assert found["equal"] and found["error"] == 0
    assert found["ended"] == found["transfers"] % 256
    assert found["reads"] == found["writes"] == list(range(1, CONFIG.burst_beats + 1))


@pytest.mark.parametrize("stall", [pytest.param(0.0, marks=pytest.mark.full), 0.4])
def test_the_subordinate_port_keeps_bytes_and_refuses_what_it_must(model, stall, tmp_path):
    spec = {
        "stall": stall,
        "sram_bytes": CONFIG.sram_bytes,
        "used_bytes": 512,
        "channels": CONFIG.channels,
        "accesses": 100,
    }
    found = run(
        model, "support.hdl.axi_points:subordinate_port", spec, out_dir=tmp_path, seed=7, edges=True
    ).value
    assert found["equal"] and found["mask"] == 1
    assert found["answers"] == {
        "mask": "OKAY",
        "mask_bytes": "SLVERR",
        "nothing": "SLVERR",
        "doorbell": "OKAY",
        "no_channel": "SLVERR",
    }
