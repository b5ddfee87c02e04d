"""The times of VIA's peers: fitted to what full cards did, and kept by load."""

from __future__ import annotations

import json
import random
import tomllib

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.measure.via_peer_times import (
    FILE,
    STEPS,
    fitted,
    load_name,
    main,
    peer_file,
    peer_times,
)
from lanikai.sim.experiments.via.scalability import ViaScalability
from lanikai.sim.models.via_peer import PeerTimes


def served(came, latency, interval):
    """Messages of a server that is known."""
    last, found = came[0] - interval, []
    for one in came:
        last = max(one + latency, last + interval)
        found.append((one, last))
    return found


@pytest.mark.parametrize(("latency", "interval"), [(3000, 0), (2000, 1500), (0, 900)])
def test_a_server_is_found_again(latency, interval):
    """In bursts of 20 messages, 700 to 1000 cycles apart: the mean to the cycle, the interval to a step."""
    rng = random.Random(5)
    came = sorted(
        200_000 * burst + 700 * place + rng.randrange(300) for burst in range(4) for place in range(20)
    )
    times = served(came, latency, interval)
    found = fitted(rng.sample(times, len(times)))
    again = served(came, found.latency_cycles, found.interval_cycles)
    mean = sum(answer - one for one, answer in times) / len(times)
    assert abs(sum(answer - one for one, answer in again) / len(times) - mean) <= 1
    if interval > 700:  # else the messages themselves are further apart
        step = (times[-1][1] - times[0][1]) / (len(times) - 1) / STEPS
        assert abs(found.interval_cycles - interval) <= step


def test_no_messages_are_refused():
    with pytest.raises(ValueError, match=r"^times of a peer: no message was answered$"):
        fitted([])
    assert fitted([(5, 12)]) == PeerTimes(latency_cycles=7)


def test_every_quick_load_with_the_model_has_a_peer_and_others_are_refused():
    experiment = ViaScalability()
    points = experiment.points(experiment.Parameters(), "quick")
    loads = [load for point in points if point.parameters["peers"] == "model" for load in point.spec["loads"]]
    assert len(loads) > 20 and all(load["peer"]["latency_us"] > 0 for load in loads)
    assert {load_name(load) for load in loads} == set(tomllib.loads(FILE.read_text()))
    assert {point.parameters["design"] for point in points if point.parameters["peers"] == "card"} == {
        "Base",
        "Base+O",
        "Base+O+DMAQ",
    }
    strange = {**loads[0], "message_bytes": 77}
    with pytest.raises(
        UserError, match=r"^peers=model: no peer was measured under the load '.* 77 1'; peers=card "
    ):
        peer_times(strange)
    full = experiment.points(experiment.Parameters(), "full")
    assert all(load["peer"] is None for point in full for load in point.spec["loads"])


def test_the_file_is_made_of_full_cards_alone(tmp_path):
    experiment = ViaScalability()
    point = experiment.points(experiment.Parameters(peers="card"), "quick")[-1]
    names = [load_name(load) for load in point.spec["loads"]]
    results = {
        "peer_latency_us": [12.0 + place for place in range(len(names))],
        "peer_interval_us": [3.25] * len(names),
    }
    run = {"points": [{"parameters": dict(point.parameters), "results": results}]}
    (tmp_path / "results.json").write_text(json.dumps(run))
    main([str(tmp_path / "results.json"), "--out", str(tmp_path / "peers.toml")])
    found = tomllib.loads((tmp_path / "peers.toml").read_text())
    assert found == {
        name: {"latency_us": 12.0 + place, "interval_us": 3.25} for place, name in enumerate(names)
    }
    run["points"][0]["parameters"]["peers"] = "model"
    with pytest.raises(ValueError, match=r"^results of peers=model: "):
        peer_file(run)
