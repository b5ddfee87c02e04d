"""via-latency, run for real by the command line: builds of its own, so not for every `make test`."""

import json
import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.xdist_group("via5")
def test_the_stages_of_svia_take_the_published_times(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "via-latency",
        *("--set", 'designs=["svia"]', "--out", "r", "--json", "-"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    judged = [claim["holds"] for claim in found["claims"] if claim["text"].startswith("SVIA")]
    assert judged == [True, True]
    assert all(point["within"] for point in found["points"])
