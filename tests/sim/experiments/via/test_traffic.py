"""The run of channels, with cards in plain Python: what is due is sent, in order, and its times are told."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from lanikai.firmware.via.config import ViaConfig
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.via import traffic, workloads
from lanikai.sim.experiments.via.workloads import Channel
from support.sim.via_card import NIC, Net


def channel(**changes):
    fields = {
        "source": 0,
        "target": 1,
        "kind": "2 MB/s",
        "mb_per_s": 2.0,
        "message_bytes": 128,
        "traffic": "constant",
        "sends_mb_per_s": 2.0,
    }
    return Channel(**{**fields, **changes})


def run(monkeypatch, channels, *, until_us=2000.0, drops=0):
    config = ViaConfig(queue_entries=4)
    net = Net(2, nic=NIC, config=config, memory_bytes=1 << 20)
    programs = [SimpleNamespace(dropped=count, drops={"no buffer": count}) for count in (0, drops)]
    monkeypatch.setattr(traffic, "start_via", lambda cluster, program, kit, admit_all: (programs, net.agents))
    monkeypatch.setattr(traffic, "via_program", lambda name, order: config)
    monkeypatch.setattr(traffic, "RECEIVE_DESCRIPTORS", 2)
    told = []
    cluster = SimpleNamespace(
        clock=net.world,
        config=SimpleNamespace(nic=NIC),
        random=random.Random(1),
        progress=lambda fraction, text: told.append(fraction),
    )
    spec = {
        "design": "svia",
        "order": None,
        "film": "",
        "admit": False,
        "until_us": until_us,
        "channels": [one.spec() for one in channels],
    }
    found = net.world.run(traffic.measure(cluster, spec), 10_000_000)
    assert told[-1] == 1
    return found


def test_what_is_due_is_received_in_order(monkeypatch):
    found = run(
        monkeypatch,
        [channel(), channel(mb_per_s=None, traffic="poisson", kind="best effort", source=1, target=0)],
    )
    for one in found["channels"]:
        assert len(one["received_us"]) >= 20 and len(one["due_us"]) - len(one["received_us"]) <= 1
        waits = [there - here for here, there in zip(one["due_us"], one["received_us"], strict=False)]
        assert min(waits) > 0 and max(waits) < 60
        assert one["received_us"] == sorted(one["received_us"])
    assert found["end_us"] == 2000


def test_a_source_that_is_too_fast_is_posted_as_there_is_room(monkeypatch):
    monkeypatch.setattr(workloads, "GREEDY_US", 1.0)
    found = run(monkeypatch, [channel(traffic="greedy")], until_us=100)["channels"][0]
    # 100 are due, the card takes a fraction of them, and none is lost or passed.
    assert len(found["due_us"]) == 100 and 3 < len(found["received_us"]) < 100
    assert found["received_us"] == sorted(found["received_us"])


def test_a_lost_message_ends_the_run(monkeypatch):
    wanted = "^messages or doorbells were dropped, so no time of a channel is right: node 1: 3 .no buffer.$"
    with pytest.raises(SimulationError, match=wanted):
        run(monkeypatch, [channel()], drops=3)


def test_a_channel_that_the_cards_do_not_admit_sends_nothing(monkeypatch):
    # A tenth of the card is best effort's: of 30 + 30 MB/s in messages of 128 bytes no card carries the second.
    channels = [channel(mb_per_s=rate, traffic="greedy") for rate in (3.0, 300.0)]
    found = run(monkeypatch, channels, until_us=100)["channels"]
    assert found[0]["refused"] == "" and found[0]["received_us"]
    assert "300 MB/s in messages of 128 bytes take" in found[1]["refused"] and not found[1]["received_us"]
