"""VIA's firmware from end to end on small cards, set up by a plain agent."""

import pytest
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS

pytestmark = pytest.mark.xdist_group("owners")
CONFIG = OWNERS.replace(firmware="via")
SIZES = [0, 1, 4, 108, 109, 111, 112, 113, 500, 4096]


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, module, name, spec, folder, seed=3, config=CONFIG):
    job = config.job(f"support.system.{module}:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


def parts(level, *, tries, patience_us=1000):
    """The parts of a run at a level, as `via_parts.parts` takes them."""
    every = {
        "messages": ("via_points:messages", {"level": level, "sizes": SIZES}),
        "immediate": ("via_points:messages", {"level": level, "sizes": SIZES, "immediate": True}),
        "rdma": ("via_points:rdma", {"level": level}),
        "refusals": ("via_fault_points:refusals", {"level": level}),
        "closing": ("via_fault_points:closing", {"level": level, "turns": 6}),
        "both ways": ("via_points:both_ways", {"levels": [0, level], "messages": 4, "rogue": True}),
        **{
            f"attacks {one}": ("via_attack_points:attacks", {"level": one, "tries": count})
            for one, count in tries.items()
        },
    }
    if level:
        every["deaths"] = ("via_fault_points:deaths", {"level": level})
    return {"config": {"patience_us": patience_us}, "parts": every}


PVIA = {"design": "parallel", "send_buffers": 2, "receive_buffers": 2}
DESIGNS = {
    "svia": {},
    "pvia": PVIA,
    "qosvia, one buffer": PVIA | {"order": "virtual_clock", "send_buffers": 1, "receive_buffers": 1},
    "tailgating": PVIA | {"descriptors": "tailgated"},
}
RUNS = [
    (2, "svia"),
    *(
        pytest.param((level, design), marks=pytest.mark.full)
        for design in DESIGNS
        for level in (0, 1, 2)
        if (level, design) != (2, "svia")
    ),
]


@pytest.fixture(scope="module", params=RUNS, ids=lambda one: f"{one[1]} {one[0]}")
def found(request, model, tmp_path_factory):
    """A reliability level, and the results of all parts at it, in one run of a design."""
    level, design = request.param
    spec = parts(level, tries={0: 240, 2: 60} if request.param == RUNS[0] else {level: 60})
    spec["config"] |= DESIGNS[design]
    results = point(model, "via_parts", "parts", spec, tmp_path_factory.mktemp("parts"))
    return level, results | {"design": design}


@pytest.mark.parametrize("kind", ["messages", "immediate"])
def test_messages_of_all_sizes_arrive(kind, found):
    """Shorter than a packet, of one packet to the byte, of many; with immediate data and without."""
    came = found[1][kind]
    good = "IMMEDIATE" if kind == "immediate" else "OK"
    assert came["drops"] == [{}, {}] and [one[0] for one in came["found"]] == SIZES
    for size, received, sent, same, word in came["found"]:
        assert (received, sent, same) == ([good, size], ["OK", size], True)
        assert word == ("abcd" if kind == "immediate" else None)


@pytest.mark.full
def test_pieces_are_gathered_and_scattered(model, tmp_path):
    found = point(model, "via_points", "pieces", {}, tmp_path)
    assert found == {
        "told": [["IMMEDIATE", 390], ["OK", 390]],
        "same": True,
        "immediate": list(range(12)),
        "odd": ["MISALIGNED", 0],
    }


def test_memory_of_the_other_end_is_written_and_read(found):
    level, rdma = found[0], found[1]["rdma"]["found"]
    assert found[1]["rdma"]["drops"] == [{}, {}]
    for name, size in (("one", 40), ("many", 700), ("end", 8), ("none", 0)):
        assert rdma[name] == [["OK", size], True], name
    assert rdma["immediate"] == [["WRITTEN", 300], ["OK", 300], True]
    if level:
        assert rdma["read"] == [["OK", 500], True]
        # It was posted with the read, and sends what the read has brought.
        assert rdma["behind"] == [["OK", 500], ["OK", 500], True]
    else:
        assert rdma["read"] == [["FORMAT", 0], False]


def test_what_may_not_be_changes_nothing_and_is_told_as_the_level_says(found):
    """Each case is on a new connection: the status at the sender, that at the receiver, what the agents hear, and the
    target's count of drops."""
    level, refused = found[0], found[1]["refusals"]
    assert refused.pop("afterwards") == [["OK", 100], ["OK", 100], True]
    assert all(case.pop() for case in refused.values()), refused
    for case in refused.values():
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
    assert refused == expected


def test_a_peer_that_is_dead_holds_up_nobody_for_long(found):
    if found[0] == 0:
        pytest.skip("an unreliable VI waits for nobody")
    dead = found[1]["deaths"]
    patience = dead["patience"]
    assert dead["told"] == ["TRANSPORT", "FLUSHED", "FLUSHED"]
    assert dead["received"] == ["FLUSHED", 0] and dead["late"] == ["FLUSHED", 0]
    assert dead["broken"] == "TRANSPORT" and dead["drops"] == {"closed": 3}
    assert patience < dead["took"] < 2 * patience
    assert dead["aside"][0] == ["OK", 64] and dead["aside"][1] < patience
    assert dead["pending"] == 0


def test_a_vi_that_is_closed_leaves_nothing_under_way(found):
    """A firmware with many messages under way may see the agent's word before it has begun with one. It drops that and
    those behind it, and the agent ends them."""
    one_by_one = found[1]["design"] == "svia"
    closed = found[1]["closing"]
    assert closed["under way"] == [0, 0]
    for turn in range(6):
        *open_ones, names, still, again = closed["told"][11 * turn : 11 * turn + 11]
        assert still and again == ["OK", "OK"]
        for queue in (open_ones[:4], open_ones[4:]):
            assert queue == sorted(queue) and not (one_by_one and any(queue))
        dropped = {"none"} if any(open_ones[:4]) else set()
        assert set(names) <= {"OK", "FLUSHED", "TRANSPORT", "NO_DESCRIPTOR"} | dropped


def check_attacks(found, tries):
    """Memory is as a model says, and another process has been at work all the time."""
    assert found["same"] and found["others"] and found["at work"] == tries // 4
    assert found["counts"]["allowed"] > tries // 20 and found["counts"]["refused"] > tries // 4
    assert found["dropped"] > tries // 5


def test_nobody_touches_what_is_not_open_to_him(found):
    """Tags and addresses at random, near good ones, beside another process at work: memory is as a model says."""
    attacked = [name for name in found[1] if name.startswith("attacks ")]
    assert attacked
    for name in attacked:
        check_attacks(
            found[1][name], found[1][name]["counts"]["allowed"] + found[1][name]["counts"]["refused"]
        )


@pytest.mark.full
@pytest.mark.parametrize(("level", "tries"), [(0, 90_000), (1, 10_000)])
def test_nobody_touches_what_is_not_open_to_him_in_many_tries(level, tries, model, tmp_path):
    """10^5 of them."""
    spec = {"level": level, "tries": tries}
    check_attacks(point(model, "via_attack_points", "attacks", spec, tmp_path), tries)


@pytest.mark.full
@pytest.mark.parametrize("level", [0, 2])
def test_the_rest_of_a_message_is_not_waited_for_for_ever(level, model, tmp_path):
    found = point(model, "via_fault_points", "partial", {"level": level}, tmp_path)
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
    found = point(model, "via_points", "queues", {"level": level, "both": both}, tmp_path)
    sent = [["OK", 300, i, True] for i in range(4)]
    assert found == sent + (
        [["OK", 300, i, True] for i in range(4)] + [["FLUSHED", 0, 4, True]] if both else []
    )


@pytest.mark.full
def test_an_agent_that_does_not_listen_still_hears_of_broken_vis(model, tmp_path):
    found = point(model, "via_fault_points", "deaf", {}, tmp_path)
    assert found["packets"] == [True] * 4 and found["drops"]["agent"] == 3
    here, there = found["channels"]
    assert found["broken"] == [{str(here): "NO_DESCRIPTOR"}, {str(there): "NO_DESCRIPTOR"}]


def test_both_ways_at_once_and_a_process_that_rings_what_it_has_not_posted(found):
    ways = found[1]["both ways"]
    assert ways["came"] == [True] * 16
    refused, others = ways["drops"]
    assert refused.pop("overrun") > ways["rings"] // 2 > 20 and refused == others == {}


@pytest.mark.full
def test_messages_go_first_come_first_served(model, tmp_path):
    """The sequential design once gave VIs turns, a message each, in whatever order their doorbells had come."""
    assert point(model, "via_points", "order", {}, tmp_path) == ["c"] * 3 + ["a"] * 3


@pytest.mark.full
def test_a_card_whose_doorbells_are_polled_and_whose_engines_have_no_queue(tmp_path):
    """Base of nagar-thesis-2001 4.3.3."""
    config = CONFIG.replace(
        nic=CONFIG.nic.replace(doorbell="polled", doorbell_priorities=1, host_dma_queue_entries=0)
    )
    spec = parts(1, tries={2: 60})
    base = point(config.build(), "via_parts", "parts", spec, tmp_path, config=config)
    assert [one[1:4] for one in base["messages"]["found"]] == [
        [["OK", size], ["OK", size], True] for size in SIZES
    ]
    assert base["messages"]["drops"] == [{}, {}]
    check_attacks(base["attacks 2"], 60)
    assert base["deaths"]["told"] == ["TRANSPORT", "FLUSHED", "FLUSHED"] and base["deaths"]["pending"] == 0
