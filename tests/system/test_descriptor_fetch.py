"""descriptor-fetch, run for real by the command line: a build of its own, so not for every `make test`."""

import json
import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.xdist_group("descriptor fetch")
def test_a_descriptor_is_sooner_there_behind_data_and_soonest_by_programmed_io(tmp_path):
    settings = ("--set", "message_bytes=[128]", "--set", "bursts=[1,4]", "--out", "r", "--json", "-")
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "descriptor-fetch",
        *settings,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [claim["holds"] for claim in found["claims"]] == [True] * 4
    starts = {
        point["parameters"]["way"]: point["results"]["dma_starts_a_message"]
        for point in found["points"]
        if point["parameters"]["burst"] == 4
    }
    assert starts == {"fetched": 2, "tailgated": 1.25, "shadow": 1}
