"""vl-isolation by the command line."""

import json
import subprocess
import sys

import pytest


@pytest.mark.full
def test_own_vls_isolate_and_the_arbiter_shows(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "vl-isolation",
    ]
    command += ["--set=network=router3", "--set=vls=2", "--json", "-", "--out", "r"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0 and all(claim["holds"] for claim in found["claims"]), found["claims"]
    mean = {
        (point["parameters"]["vl_arbiter"], point["parameters"]["setting"]): point["results"][
            "class_latency_mean_cycles"
        ][0]
        for point in found["points"]
    }
    for arbiter in ("round_robin", "fixed_priority"):
        assert mean[arbiter, "alone"] < mean[arbiter, "own VLs"]
        assert mean[arbiter, "same VLs"] is None
    # Ahead of the flood at the crossbar inputs and on the links, not only beside it.
    assert mean["fixed_priority", "own VLs"] < mean["round_robin", "own VLs"]
