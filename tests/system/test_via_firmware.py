"""VIA's firmware from end to end on small cards, set up by a plain agent."""

import pytest
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS

pytestmark = pytest.mark.xdist_group("owners")
CONFIG = OWNERS.replace(firmware="via")
OTHERS = [pytest.param(level, marks=pytest.mark.full) for level in (0, 1)]
"""Reliability levels beside the one that every `make test` tries."""


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, name, spec, folder, seed=3, config=CONFIG):
    job = config.job(f"support.system.via_points:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


@pytest.mark.parametrize("level", [2, *OTHERS])
def test_messages_of_all_sizes_arrive(level, model, tmp_path):
    """Shorter than a packet, of one packet to the byte, of many; with immediate data and without."""
    for immediate in (False, True):
        sizes = [0, 1, 4, 108, 109, 111, 112, 113, 500, 4096]
        spec = {"level": level, "sizes": sizes, "immediate": immediate}
        found = point(model, "messages", spec, tmp_path)
        good = "IMMEDIATE" if immediate else "OK"
        assert found["drops"] == [{}, {}]
        for size, received, sent, same, word in found["found"]:
            assert (received, sent, same) == ([good, size], ["OK", size], True)
            assert word == ("abcd" if immediate else None)


@pytest.mark.full
def test_pieces_are_gathered_and_scattered(model, tmp_path):
    found = point(model, "pieces", {}, tmp_path)
    assert found == {
        "told": [["IMMEDIATE", 390], ["OK", 390]],
        "same": True,
        "immediate": list(range(12)),
        "odd": ["MISALIGNED", 0],
    }


@pytest.mark.parametrize("level", [2, *OTHERS])
def test_memory_of_the_other_end_is_written_and_read(level, model, tmp_path):
    found = point(model, "rdma", {"level": level}, tmp_path)
    assert found["drops"] == [{}, {}]
    rdma = found["found"]
    for name, size in (("one", 40), ("many", 700), ("end", 8), ("none", 0)):
        assert rdma[name] == [["OK", size], True], name
    assert rdma["immediate"] == [["WRITTEN", 300], ["OK", 300], True]
    if level:
        assert rdma["read"] == [["OK", 500], True]
        # It was posted with the read, and sends what the read has brought.
        assert rdma["behind"] == [["OK", 500], ["OK", 500], True]
    else:
        assert rdma["read"] == [["FORMAT", 0], False]


@pytest.mark.parametrize("level", [2, *OTHERS])
def test_what_may_not_be_changes_nothing_and_is_told_as_the_level_says(level, model, tmp_path):
    """Each case is on a new connection: the status at the sender, that at the receiver, what the agents hear, and the
    target's count of drops."""
    found = point(model, "refusals", {"level": level}, tmp_path)
    assert found.pop("afterwards") == [["OK", 100], ["OK", 100], True]
    assert all(case.pop() for case in found.values()), found
    for case in found.values():
        case[3].pop("closed", None)  # packets that come after the one for which the connection has ended

    def told(sender, receiver, count, *, broken=None):
        """A case that the target refuses. `broken`: the reason for which both ends of a reliable VI break."""
        ends = [broken or sender] * 2 if level else [0, 0]
        return [sender if level else "OK", receiver, ends, {count: 1}]

    none, access = "NO_DESCRIPTOR", "REMOTE_ACCESS"
    # A card that only has to have a message has acknowledged it when its buffer turns out to be a bad one.
    acknowledged = "OK" if level == 1 else none
    expected = {
        "nothing posted": told(none, None, "no descriptor"),
        "nothing posted, many packets": told(none, None, "no descriptor"),
        "too small": told(none, "TOO_LONG", "descriptor"),
        "too small, many packets": told(none, "TOO_LONG", "descriptor"),
        "bad format": told(none, "FORMAT", "descriptor"),
        "foreign buffer": told(acknowledged, "NOT_OWNER", "descriptor", broken=none),
        "write: immediate, none posted": told(none, None, "no descriptor"),
    }
    names = ("wrong key", "foreign", "deregistered", "read only", "not enabled", "past the end")
    for name in (*names, "past the end, many packets", "before the start"):
        expected[f"write: {name}"] = told(access, None, "remote access")
    if level:
        for name in ("wrong key", "foreign", "past the end", "past the end, many packets", "not enabled"):
            expected[f"read: {name}"] = told(access, None, "remote access")
    own = {"own buffer foreign": "NO_REGION", "own length wrong": "TOO_LONG", "own format": "FORMAT"}
    for name, status in own.items() if level else (own | {"read": "FORMAT"}).items():
        expected[name] = [status, None, [status, None] if level else [0, 0], {}]
    assert found == expected


@pytest.mark.parametrize("level", [2, OTHERS[1]])
def test_a_peer_that_is_dead_holds_up_nobody_for_long(level, model, tmp_path):
    found = point(model, "deaths", {"level": level}, tmp_path)
    patience = 300 * 33
    assert found["told"] == ["TRANSPORT", "FLUSHED", "FLUSHED"]
    assert found["received"] == ["FLUSHED", 0] and found["late"] == ["FLUSHED", 0]
    assert found["broken"] == "TRANSPORT" and found["drops"] == {"closed": 3}
    assert patience < found["took"] < 2 * patience
    assert found["aside"][0] == ["OK", 64] and found["aside"][1] < patience
    assert found["pending"] == 0


@pytest.mark.parametrize("level", [2, OTHERS[0]])
def test_a_vi_that_is_closed_leaves_nothing_under_way(level, model, tmp_path):
    found = point(model, "closing", {"level": level, "turns": 6}, tmp_path)
    assert found["under way"] == [0, 0]
    for turn in range(6):
        *open_ones, names, still, again = found["told"][11 * turn : 11 * turn + 11]
        assert not any(open_ones) and still and again == ["OK", "OK"]
        assert set(names) <= {"OK", "FLUSHED", "TRANSPORT", "NO_DESCRIPTOR"}


@pytest.mark.parametrize(
    ("level", "tries"),
    [
        (0, 240),
        (2, 60),
        pytest.param(0, 90_000, marks=pytest.mark.full),
        pytest.param(1, 10_000, marks=pytest.mark.full),
    ],
)
def test_nobody_touches_what_is_not_open_to_him(level, tries, model, tmp_path):
    """Tags and addresses at random, near good ones, beside another process at work: memory is as a model says."""
    found = point(model, "attacks", {"level": level, "tries": tries}, tmp_path)
    assert found["same"] and found["others"] and found["at work"] == tries // 4
    assert found["counts"]["allowed"] > tries // 20 and found["counts"]["refused"] > tries // 4
    assert found["dropped"] > tries // 5


@pytest.mark.full
@pytest.mark.parametrize("level", [0, 2])
def test_the_rest_of_a_message_is_not_waited_for_for_ever(level, model, tmp_path):
    found = point(model, "partial", {"level": level}, tmp_path)
    (first, took), together, sent, *again = found["told"]
    assert first == ["PARTIAL", first[1]] and 0 < first[1] < 4096
    patience = 600 * 33
    assert 0.9 * patience < took < 1.2 * patience
    if level:
        # The connection has ended at this end, and the other one is told.
        assert together == ["PARTIAL", "FLUSHED"] and sent in ("TRANSPORT", "FLUSHED")
    else:
        assert together == ["PARTIAL", "OK"] and sent == "OK"
        assert again == [["PARTIAL", "OK"], "OK"] and found["drops"]["partial"] == 2


@pytest.mark.full
@pytest.mark.parametrize(("level", "both"), [(0, True), (2, False)])
def test_completion_queues_tell_every_end_once_and_in_order(level, both, model, tmp_path):
    found = point(model, "queues", {"level": level, "both": both}, tmp_path)
    sent = [["OK", 300, i, True] for i in range(4)]
    assert found == sent + (
        [["OK", 300, i, True] for i in range(4)] + [["FLUSHED", 0, 4, True]] if both else []
    )


@pytest.mark.full
def test_an_agent_that_does_not_listen_still_hears_of_broken_vis(model, tmp_path):
    found = point(model, "deaf", {}, tmp_path)
    assert found["packets"] == [True] * 4 and found["drops"]["agent"] == 3
    here, there = found["channels"]
    assert found["broken"] == [{str(here): "NO_DESCRIPTOR"}, {str(there): "NO_DESCRIPTOR"}]


def test_both_ways_at_once_and_a_process_that_rings_what_it_has_not_posted(model, tmp_path):
    spec = {"levels": [0, 2], "messages": 4, "rogue": True}
    found = point(model, "both_ways", spec, tmp_path)
    assert found["came"] == [True] * 16
    refused, others = found["drops"]
    assert refused.pop("overrun") > found["rings"] // 2 > 20 and refused == others == {}


@pytest.mark.full
def test_messages_go_first_come_first_served(model, tmp_path):
    """The sequential design once gave VIs turns, a message each, in whatever order their doorbells had come."""
    assert point(model, "order", {}, tmp_path) == ["c"] * 3 + ["a"] * 3


@pytest.mark.full
def test_a_card_whose_doorbells_are_polled_and_whose_engines_have_no_queue(tmp_path):
    """Base of nagar-thesis-2001 4.3.3."""
    config = CONFIG.replace(
        nic=CONFIG.nic.replace(doorbell="polled", doorbell_priorities=1, host_dma_queue_entries=0)
    )
    model = config.build()
    sizes = [0, 1, 112, 113, 500]
    found = point(model, "messages", {"level": 2, "sizes": sizes}, tmp_path, config=config)
    assert [one[1:4] for one in found["found"]] == [[["OK", size], ["OK", size], True] for size in sizes]
    assert found["drops"] == [{}, {}]
    found = point(model, "attacks", {"level": 2, "tries": 60}, tmp_path, config=config)
    assert found["same"] and found["others"]
    found = point(model, "deaths", {"level": 1}, tmp_path, config=config)
    assert found["told"] == ["TRANSPORT", "FLUSHED", "FLUSHED"] and found["pending"] == 0
