"""doorbell-latency, run for real by the command line: two builds, so not for every `make test`."""

import json
import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.xdist_group("doorbell latency")
def test_the_queue_waits_for_no_channel_and_polling_for_each(tmp_path):
    settings = ("--set", "channels=[4,128,1024]", "--out", "r", "--json", "-")
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "doorbell-latency",
        *settings,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [claim["holds"] for claim in found["claims"]] == [True, True, True]
    # 5 cycles of the look, 2 of the read, and the bus: arbitration, address, data, the queue.
    queued = [p["results"] for p in found["points"] if p["parameters"]["doorbell"] == "queue"]
    assert {result["latency_max_cycles"] for result in queued} == {13}
