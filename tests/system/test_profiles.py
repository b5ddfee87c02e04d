"""The profiles of faster cards as clusters: GM moves a file over their buses, queues and links."""

from __future__ import annotations

import random

import pytest
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset


def transfer(name: str, folder) -> dict:
    """The measurement of `transfer` for a file of 24 KB and some bytes on a cluster of two nodes of a profile."""
    config = cluster_preset(name, nodes=2, memory_bytes=1 << 20)
    file = folder / "file"
    file.write_bytes(random.Random(5).randbytes(24 * 1024 + 13))
    job = config.job(
        "lanikai.sim.experiments.transfer:measure",
        {"file": str(file), "message_bytes": 8192},
    )
    return run(config.build(), *job, out_dir=folder, seed=1).value


@pytest.mark.full
@pytest.mark.parametrize("name", ["lanai7", "iba"])
def test_gm_moves_a_file_on_a_profile(name, tmp_path):
    found = transfer(name, tmp_path)
    assert found["sha256_sent"] == found["sha256_received"]
    assert found["payload_bytes"] == 24 * 1024 + 13 and found["clock_hz"] == 66_000_000
    # The link alone needs as long: a bus or link of another profile would be slower or faster.
    link = cluster_preset(name).nic.link
    flits = (24 * 1024 + 13) / link.flit_bytes
    assert flits / link.rate < found["transfer_cycles"] < 4 * flits / link.rate
