"""The experiments on GM, run for real by the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# One worker for all: they share one build.
pytestmark = pytest.mark.xdist_group("lanai4 cluster")


def run(name: str, *settings: str, folder) -> tuple[int, dict]:
    """Exit status and the JSON object of a run in its quick size."""
    arguments = [part for setting in settings for part in ("--set", setting)]
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        name,
        *arguments,
    ]
    done = subprocess.run([*command, "--out", "r", "--json", "-"], cwd=folder, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    "name",
    [
        "rate-table",
        "share-receiver",
        "share-bidir",
        pytest.param("best-effort", marks=pytest.mark.full),
        pytest.param("fair-queueing", marks=pytest.mark.full),
        pytest.param("idt-sweep", marks=pytest.mark.full),
        pytest.param("rate-overhead", marks=pytest.mark.full),
        pytest.param("wormhole-unfairness", marks=pytest.mark.full),
    ],
)
def test_an_experiment_reproduces_what_was_published(name, tmp_path):
    status, found = run(name, folder=tmp_path)
    assert False not in [point["within"] for point in found["points"]], found["points"]
    assert all(claim["holds"] for claim in found["claims"]), found["claims"]
    assert status == 0


@pytest.mark.full
def test_films_have_what_they_reserve(tmp_path):
    status, found = run("video-reservation", folder=tmp_path)
    assert all(claim["holds"] for claim in found["claims"]), found["claims"]
    assert status == 0


def test_the_rate_control_unit_costs_an_unregulated_flow_no_cycle(tmp_path):
    status, found = run("rate-overhead", "message_bytes=[4, 8192]", folder=tmp_path)
    assert status == 0, found["claims"]
    # Point by point: the three programs, which cut these messages alike, in every cycle the same.
    cycles = [(p["results"]["round_trips_cycles"], p["results"]["transfer_cycles"]) for p in found["points"]]
    assert len(set(cycles[:3])) == len(set(cycles[3:])) == 1 and len(cycles) == 6


def test_a_node_sends_what_was_published_while_it_receives(tmp_path):
    """The point of figure 5.4 that 5.4.3 gives: `packet_turn` is fitted to it."""
    status, found = run("incoming-rate", "idt_ticks=[500]", folder=tmp_path)
    (point,) = found["points"]
    assert status == 0 and point["within"], point
    # Flow 2 leaves flow 1 alone though it is not regulated.
    assert point["results"]["outgoing_idt_ticks"] == 0


@pytest.mark.full
def test_what_a_node_sends_falls_as_it_receives_more(tmp_path):
    _, found = run("incoming-rate", "idt_ticks=[96, 300]", folder=tmp_path)
    fast, slow = (point["results"] for point in found["points"])
    assert fast["incoming_mb_per_s"] > slow["incoming_mb_per_s"]
    # At its peak rate flow 1 is hurt by a flow 2 that is not regulated: the search had to look.
    assert fast["outgoing_idt_ticks"] > 96 and fast["trials"] > 2
    assert all(claim["holds"] for claim in found["claims"]), found["claims"]
