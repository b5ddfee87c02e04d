"""rate-accuracy by the command line: both structures, in Verilator."""

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "settings",
    [["flows=[3,16]"], pytest.param(["flows=[16,200,1024]", "structure=tree"], marks=pytest.mark.full)],
)
def test_every_flow_gets_its_rate_or_its_part(tmp_path, settings):
    command = [sys.executable, "-m", "lanikai.sim", "run", "rate-accuracy", "--json", "-", "--out", "r"]
    command += [f"--set={setting}" for setting in settings]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0 and all(claim["holds"] for claim in found["claims"]), found["claims"]
    for point in found["points"]:
        load, use = point["parameters"]["load"], point["results"]["link_use"]
        # An IDT is a whole number of ticks.
        assert use == pytest.approx(min(load, 1), rel=0.01)
