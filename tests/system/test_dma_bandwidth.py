"""dma-bandwidth for real: the engines of a card with queues reach their peaks, and lose nothing by them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from lanikai.sim.experiments.dma_bandwidth import RESOLUTION


@pytest.mark.full
def test_every_engine_reaches_its_peak_behind_a_queue(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "dma-bandwidth",
    ]
    command += ["--set", "transfer_bytes=[4, 4096]", "--out", "r", "--json", "-"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0 and all(claim["holds"] for claim in found["claims"]), found["claims"]
    by_point = {
        tuple(point["parameters"][key] for key in ("engine", "transfer_bytes", "queue")): point["results"]
        for point in found["points"]
    }
    assert len(by_point) == 16
    for (engine, length, queued), results in by_point.items():
        # A peak is one: beyond it is what a measurement cannot tell.
        assert results["of_peak"] < 1 + RESOLUTION, (engine, length, queued)
        if length == 4096 and queued:
            assert results["of_peak"] >= 0.98, (engine, results)
    # A queue is for small transfers.
    for engine in ("host read", "host write", "send"):
        assert by_point[engine, 4, True]["of_peak"] > by_point[engine, 4, False]["of_peak"]
