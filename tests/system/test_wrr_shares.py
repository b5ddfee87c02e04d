"""wrr-shares by the command line, on a router small enough to build quickly, with links as fast as the crossbar."""

import json
import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.parametrize("variants", ["small_fast,large_fast", "small_slow,large_slow", "iba", "deficit"])
def test_shares_follow_the_weights_and_idle_vls_waste_nothing(tmp_path, variants):
    command = [sys.executable, "-m", "lanikai.sim", "run", "wrr-shares", f"--set=variants={variants}"]
    command += ["--set=inputs=2", "--set=bandwidths=[2,3,7]", "--json", "-", "--out", "r"]
    # All sets of VLs, one that leaves, one that returns, new weights under load: `WrrShares.points`.
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0 and all(claim["holds"] for claim in found["claims"]), found["claims"]
    for point in found["points"]:
        idle = set(range(3)) - set(point["parameters"]["active_vls"])
        assert all((share == 0) == (vl in idle) for vl, share in enumerate(point["results"]["share"]))
        # With all VLs active, weights are what tells the VLs apart.
        if not idle:
            share = point["results"]["share"]
            assert (share[0] < share[1] < share[2]) == (point["parameters"]["event"] != "rewritten")
