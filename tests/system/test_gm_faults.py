"""GM and its managers on RTL cards when something goes wrong: stuck messages, puts out of bounds, nodes and managers
that end."""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.measure.gm_hosts import gm_cluster
from lanikai.sim.run import run

# One worker for all: they share one build with the experiments on GM.
pytestmark = pytest.mark.xdist_group("lanai4 cluster")

CARRIED_MB_PER_S = 113.06
"""Most that a node takes in (docs/manager.md)."""


@pytest.fixture
def history(tmp_path):
    """A function that runs a coroutine of `gm_faults` on the cluster. It returns the coroutine's value."""

    def play(name, config=None, **spec):
        config = config or gm_cluster()
        job = config.job(f"support.system.gm_faults:{name}", spec)
        return run(config.build(), *job, out_dir=tmp_path, seed=1, timeout_seconds=600).value

    return play


def test_puts_and_gets_move_their_bytes_and_keep_to_the_bounds(history):
    found = history("directed", bytes=20_000, moves=4)
    assert found["same"] == 4 and found["whole"]
    assert found["statuses"] == ["NOT_EXPOSED"] * 8


@pytest.mark.full
def test_many_puts_and_gets(history):
    found = history("directed", bytes=60_000, moves=60)
    assert found["same"] == 60 and found["whole"]


@pytest.mark.full
def test_a_stuck_message_takes_nothing_of_what_was_granted_and_can_be_ended(history):
    """The granted flow keeps at least 98% of the grant."""
    rates = [70.0, 40.0]
    found = history("stuck", rates=rates, settle_cycles=100_000, window_cycles=300_000)
    assert all(got >= 0.98 * rate for got, rate in zip(found["mb_per_s"], rates, strict=True))
    assert found["bytes"] and not found["wrong"]
    assert found["waiting"] == [True, True] and found["statuses"] == ["ABORTED", "ABORTED"]
    # Its time, and what an abort and a close take.
    assert 4000 <= found["close_ticks"] < 4000 + 1000


@pytest.mark.full
def test_a_node_that_dies_frees_tokens_and_reservations(history):
    """60 and 20 MB/s are promised into node 1: 50 more are not to be had before."""
    found = history("node_dies", halt=False, before_cycles=150_000, patience_cycles=5_000_000)
    assert found["refusals"] > 0 and found["granted_after_ticks"] is not None
    # The bound of a send, 20,000 ticks here, from the first one that is not answered; then what is left of a lease.
    assert 30_000 <= found["granted_after_ticks"] < 45_000
    assert found["premium"] == [
        f"flow from port {port} of node 3 to port {port} of node 1" for port in (1, 2)
    ]
    # The one receive token that the dead node's half message had is used by its heir.
    assert found["arrived_after_ticks"] is not None and found["halves"] == 0
    assert found["error"] == "NodeDeadError"
    assert found["beside_mb_per_s"] >= 0.98 * 20.0 and not found["wrong"]


@pytest.mark.full
def test_a_card_whose_processor_stops_holds_up_nobody(history):
    """The card takes nothing from the wire. Packets to it once stood in the router, and behind them all that their
    senders sent.

    Now the card throws them away after 1 ms. The others' reservations have their rates again after it.
    """
    found = history("node_dies", halt=True, before_cycles=150_000, patience_cycles=5_000_000)
    assert found["refusals"] > 0 and found["granted_after_ticks"] < 45_000
    assert found["error"] == "NodeDeadError" and found["halves"] == 0
    assert found["beside_after_mb_per_s"] >= 0.98 * 20.0 and not found["wrong"]
    assert found["discarded"] > 0


@pytest.mark.full
def test_managers_that_are_started_again_oversubscribe_no_card(history):
    """The IDTs in the cards' registers are looked at every 0.6 ms."""
    found = history("managers_end", forget=False)
    assert found["ends"] == ["RefusedError", "RefusedError", "granted", "RefusedError"]
    assert found["masters"] == [0, 0, 1]
    assert found["promised_mb_per_s"] <= 1.01 * CARRIED_MB_PER_S
    assert found["answer_silences"] <= 4
    # 163.84 and 273.07 ticks a packet for 50 and 30 MB/s, rounded down.
    assert found["idts"] == [163, 273]
    assert not found["wrong"] and min(found["messages"]) > 0


@pytest.mark.full
def test_managers_that_forget_are_seen_on_the_cards(history):
    found = history("managers_end", forget=True)
    assert "granted" in found["ends"][:2] and found["promised_mb_per_s"] > 1.01 * CARRIED_MB_PER_S
